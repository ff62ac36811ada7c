/// \file Komvos_TuningCache.hpp
/// Decisions of earlier runs, so that the next run need not measure again.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "Komvos_IntraNode.hpp"
#include "Komvos_Pairing.hpp"
#include "Komvos_RouteChoice.hpp"

namespace Komvos {

class NodeTopology;
struct Pattern;

/// How one halo is exchanged.
struct TuningDecision {
  RouteChoice route;  ///< not automatic
  Pairing pairing = Pairing::byVolume;
  IntraNode intraNode = IntraNode::messages;  ///< not automatic
};

/// Where a decision is valid.
struct HaloKey {
  std::uint64_t pattern = 0;   ///< a hash over the patterns of all ranks
  std::uint64_t topology = 0;  ///< NodeTopology::fingerprint, of the nodes
  std::string topologyText;    ///< NodeTopology::describe
  std::string machine;         ///< processor and MPI library of rank 0
};

/// \param pattern normalized \note Collective on `comm`.
HaloKey makeHaloKey(MPI_Comm comm, const Pattern& pattern, const NodeTopology& topology);

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

  /// Adds a decision, in place of an earlier one for the same halo, topology and machine.
  void add(const HaloKey& halo, const TuningDecision& decision);
  /// \throws BadInput with the reason if there is none: another pattern, topology or machine.
  const TuningDecision& find(const HaloKey& halo) const;
  std::size_t size() const { return entries_.size(); }
  /// The file it was read from, for errors.
  const std::string& name() const { return name_; }

 private:
  struct Entry {
    HaloKey halo;
    TuningDecision decision;
  };
  std::string name_ = "(not saved)";
  std::vector<Entry> entries_;
};

}  // namespace Komvos
