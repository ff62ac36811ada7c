/// \file Komvos_TuningCache.hpp
/// What was decided for a halo, kept so that the next run need not measure again.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "Komvos_Exchange.hpp"
#include "Komvos_NodePairing.hpp"
#include "Komvos_RouteChoice.hpp"

namespace Komvos {

/// How values shall travel between ranks of a node: one way, or the one that is faster on this halo.
struct OnNodeWish {
  OnNodeWish(IntraNode one) : way(one) {}  // options.onNode = IntraNode::messages
  static const OnNodeWish automatic;

  std::optional<IntraNode> way;  ///< empty: automatic

 private:
  OnNodeWish() = default;
};
inline const OnNodeWish OnNodeWish::automatic{};

/// How one halo is exchanged.
struct TuningDecision {
  RouteChoice route;  ///< not automatic
  Pairing pairing = Pairing::byVolume;
  IntraNode onNode = IntraNode::messages;
};

/// Where a decision is valid.
struct HaloKey {
  std::uint64_t pattern = 0;   ///< a hash over the patterns of all ranks
  std::uint64_t topology = 0;  ///< NodeTopology::fingerprint, of the nodes
  std::string topologyText;    ///< NodeTopology::describe
  std::string machine;         ///< processor and MPI library of rank 0
};

/// The identity of a halo. \param pattern normalized \note Collective on `comm`.
HaloKey identify(MPI_Comm comm, const Pattern& pattern, const NodeTopology& topology);

/// Decisions by halo, and their file: JSON, {"format": "komvos-tuning-cache", "version": 1, "decisions": [...]}.
class TuningCache {
 public:
  /// Rank 0 reads. \throws BadInput on all ranks if the file cannot be read, is not such a file, or is damaged.
  /// \note Collective on `comm`.
  static TuningCache load(MPI_Comm comm, const std::string& file);
  /// The same from text. \param name for error messages
  static TuningCache parse(const std::string& text, const std::string& name);

  /// Replaces `file` as a whole, or leaves it as it was and throws Error. Call it on one rank.
  void save(const std::string& file) const;
  std::string toText() const;

  /// Adds a decision; a former one for the same halo, topology and machine goes.
  void add(const HaloKey& halo, const TuningDecision& method);
  /// The decision for this halo.
  /// \throws BadInput with the reason if there is none: another pattern, topology or machine.
  const TuningDecision& find(const HaloKey& halo) const;
  std::size_t size() const { return entries_.size(); }
  /// Where the decisions come from, for errors.
  const std::string& name() const { return name_; }

 private:
  struct Entry {
    HaloKey halo;
    TuningDecision method;
  };
  std::string name_ = "(not saved)";
  std::vector<Entry> entries_;
};

/// "messages" or "shared-memory".
std::string toString(IntraNode onNode);
/// \throws BadInput unless `text` is "messages" or "shared-memory".
IntraNode parseIntraNode(const std::string& text);
/// The same for a wish, or "auto".
OnNodeWish parseOnNodeWish(const std::string& text);

}  // namespace Komvos
