/// \file Komvos_TuningCache.hpp
/// Decisions of earlier runs, so that the next run need not measure again.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "Komvos_HaloCounts.hpp"
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
  bool settled = true;                        ///< else online tuning had more to try: a first guess
  /// For vectors of a width class, named by its fewest columns: 1 (alone), 2 (and 3), 4 (and more); 0: for all vectors.
  int columnsFrom = 0;
};

/// Where a decision is valid.
struct HaloKey {
  std::uint64_t pattern = 0;   ///< a hash over the patterns of all ranks
  std::uint64_t topology = 0;  ///< NodeTopology::fingerprint, of the nodes
  std::string topologyText;    ///< NodeTopology::describe
  std::string machine;         ///< processor and MPI library of rank 0
  // By which halos are alike; 0 in files of version 1.
  int numRanks = 0;
  int numNodes = 0;
  HaloCounts counts = {};  ///< the most on any rank
};

/// A hash of one rank's pattern, which is normalized. The hash of a halo is the sum over ranks, modulo 2^64.
std::uint64_t hashOf(const Pattern& pattern);

/// \param patterns the hash of the halo \note Collective on `comm` the first time.
HaloKey makeHaloKey(MPI_Comm comm, std::uint64_t patterns, const HaloCounts& counts, const NodeTopology& topology);

/// How unlike two halos on the same machine are: the sum over their numbers of ranks, nodes, messages and values of by
/// how many powers of two they differ.
/// \return nothing if a number differs by more than a factor of two, or the machines differ: then what is best for one
/// says little about the other
std::optional<double> difference(const HaloKey& a, const HaloKey& b);

/// Decisions by halo and width class, and their file: JSON, {"format": "komvos-tuning-cache", "version": 3,
/// "decisions": [...]}. Version 2, without width classes, and version 1, also without what makes halos similar, are
/// read, too.
///
/// A halo for which there are decisions for vectors of some widths only is tuned for the other ones, unless the cache
/// is required (ExchangeOptions::requireTuningCache): then all take the decision for ExchangeOptions::columns, or for
/// the narrowest vectors that there is one for.
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

  /// Adds a decision, in place of an earlier one for the same halo, topology, machine and width class. One for all
  /// vectors takes the place of those for each width class, one for a width class that of a guess for all.
  void add(const HaloKey& halo, const TuningDecision& decision);
  /// The decisions of another one, in the same way.
  void add(const TuningCache& newer);
  /// The decisions of all ranks: some halos are of some ranks only, as those of the coarse levels of a rebalanced
  /// hierarchy. Afterwards all ranks have the same.
  /// \note Collective on `comm`; a few broadcasts for each set of ranks that has halos of its own.
  void addOfAllRanks(MPI_Comm comm);
  /// \param columns of the vectors \return the decision for their width class, else that for all vectors, else null
  const TuningDecision* find(const HaloKey& halo, int columns) const;
  /// The decision for the narrowest vectors that there is one for; null if there is none.
  const TuningDecision* find(const HaloKey& halo) const;
  /// Why find() found none: another pattern, topology or machine.
  std::string whyNone(const HaloKey& halo) const;
  /// The settled decision for the halo that differs least, whatever its pattern and topology. It may not suit these
  /// nodes.
  /// \param columns of the vectors; of decisions for the same halo, that for their width class is preferred
  /// \return null if none is similar
  const TuningDecision* findSimilar(const HaloKey& halo, int columns = 1) const;
  std::size_t size() const { return entries_.size(); }
  /// Decisions that are not settled.
  std::size_t numGuesses() const;
  /// The file it was read from, for messages.
  const std::string& name() const { return name_; }

 private:
  struct Entry {
    HaloKey halo;
    TuningDecision decision;

    bool isFor(const HaloKey& other) const;
  };
  const TuningDecision* findExactly(const HaloKey& halo, int columnsFrom) const;
  std::string name_ = "(not saved)";
  std::vector<Entry> entries_;
};

}  // namespace Komvos
