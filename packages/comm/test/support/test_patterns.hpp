/// \file test_patterns.hpp
/// The topologies and patterns that the tests of packages/comm run on: the same on every rank for the same seed.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "Komvos_NodePairing.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_Pattern.hpp"
#include "Komvos_RouteChoice.hpp"

namespace KomvosTest {

/// Numbers that are the same with every standard library.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }
  /// In [-1, 1).
  double unit() { return static_cast<double>(engine_()) / 2147483648.0 - 1.0; }
  template <class T>
  void shuffle(std::vector<T>& list) {
    for (std::size_t i = list.size(); i > 1; --i) {
      std::swap(list[i - 1], list[below(static_cast<int>(i))]);
    }
  }

 private:
  std::mt19937 engine_;
};

/// For each rank the values of other ranks it needs, and each value's owner: the text-book description.
/// \return the patterns of all ranks, targets numbered from 0 in order of `needs`.
/// \param owner   rank of each global index
/// \param needs   for each rank, the global indices it needs; its own are ignored
inline std::vector<Komvos::Pattern> patternsFromNeeds(const std::vector<int>& owner,
                                                      const std::vector<std::vector<int>>& needs) {
  std::vector<Komvos::Pattern> patterns(needs.size());
  std::vector<int> local(owner.size());
  for (int rank = 0; rank < static_cast<int>(patterns.size()); ++rank) {
    patterns[rank].rank = rank;
  }
  for (std::size_t i = 0; i < owner.size(); ++i) {
    local[i] = patterns.at(owner[i]).numOwned++;
  }
  for (int rank = 0; rank < static_cast<int>(patterns.size()); ++rank) {
    for (const int index : needs[rank]) {
      if (owner.at(index) == rank) {
        continue;
      }
      patterns[owner[index]].sends.push_back({rank, local[index]});
      patterns[rank].receives.push_back({{owner[index], local[index]}, patterns[rank].numTarget++});
    }
  }
  for (Komvos::Pattern& pattern : patterns) {
    pattern.normalize();
  }
  return patterns;
}

struct NamedTopology {
  std::string name;
  Komvos::NodeTopology topology;
};

/// One to four ranks per node, uneven nodes (5/2, 6/4 and 7/4 where that many ranks are there), round robin, shuffled.
inline std::vector<NamedTopology> topologiesFor(int numRanks) {
  using Komvos::NodeTopology;
  std::vector<NamedTopology> list;
  for (int ppn = numRanks < 10 ? 1 : 4; ppn <= std::min(4, numRanks); ++ppn) {
    list.push_back({"ranks per node " + std::to_string(ppn), NodeTopology::uniform(numRanks, ppn)});
  }
  if (numRanks < 3) {
    return list;
  }
  const int first = numRanks == 10 ? 6 : numRanks == 11 ? 7 : std::min(numRanks - 1, (5 * numRanks + 6) / 7);
  const std::string uneven = std::to_string(first) + "," + std::to_string(numRanks - first);
  list.push_back({"uneven " + uneven, NodeTopology::parse(uneven, numRanks)});
  if (numRanks > 4) {
    const std::string three = "1," + std::to_string(numRanks - 3) + ",2";
    list.push_back({"uneven " + three, NodeTopology::parse(three, numRanks)});
  }
  std::vector<int> node(numRanks);
  for (int rank = 0; rank < numRanks; ++rank) {
    node[rank] = rank % (numRanks > 5 ? 3 : 2);
  }
  list.push_back({"round robin", NodeTopology::fromMap(node)});
  for (int rank = 0; rank < numRanks; ++rank) {
    node[rank] = 3 * ((numRanks - 1) / 3 - rank / 3);  // labels with gaps, falling
  }
  Random(static_cast<unsigned>(numRanks)).shuffle(node);
  list.push_back({"shuffled", NodeTopology::fromMap(node)});
  return list;
}

/// The standard route and three steps. On many ranks one of them, the other at the next `turn`: runs are slow there.
inline std::vector<Komvos::RouteChoice> routesInTurn(int numRanks, int turn) {
  using Komvos::RouteChoice;
  if (numRanks < 5) {
    return {RouteChoice::standard, RouteChoice::threeStep};
  }
  return {turn % 2 == 0 ? RouteChoice::standard : RouteChoice::threeStep};
}

/// Up to `perNode` sockets on each node: blocks of neighbours, or dealt out in turn. The last may be small.
inline Komvos::NodeTopology socketsOf(const Komvos::NodeTopology& nodes, int perNode, bool blocks = true) {
  std::vector<int> socket(nodes.numRanks());
  for (int rank = 0; rank < nodes.numRanks(); ++rank) {
    const int local = nodes.localRankOf(rank);
    const int ranksEach = (nodes.numRanksOn(nodes.nodeOf(rank)) + perNode - 1) / perNode;
    socket[rank] = nodes.nodeOf(rank) * perNode + (blocks ? local / ranksEach : local % perNode);
  }
  return Komvos::NodeTopology::fromMap(socket);
}

/// Every kind of route but auto, and the numbers that make them differ on small halos.
inline std::vector<Komvos::RouteChoice> routesFor(int numRanks) {
  std::vector<Komvos::RouteChoice> list;
  for (const char* text : {"standard", "two-step", "three-step", "split", "split:1", "split:5", "axis", "sockets"}) {
    list.push_back(Komvos::parseRoute(text));
  }
  const auto grids = Komvos::AxisFactors::all(numRanks);
  list.push_back(Komvos::parseRoute("axis:" + grids[grids.size() / 2].text()));
  return list;
}

struct NamedPatterns {
  std::string name;
  std::vector<Komvos::Pattern> patterns;  ///< of all ranks
};

/// The text-book description of a halo.
struct Needs {
  std::vector<int> owner;               ///< rank of each global index
  std::vector<std::vector<int>> needs;  ///< of each rank
};

/// Values dealt out at random, `density` of 100 of them needed. Some are needed for two targets of a rank, some lists
/// name values of the rank itself, and some ranks own or need nothing.
inline Needs randomNeeds(int numRanks, int valuesPerRank, int density, unsigned seed) {
  Random random(seed);
  Needs result;
  const int idle = random.below(numRanks + 1);  // owns nothing; numRanks: nobody
  for (int i = 0; i < numRanks * valuesPerRank; ++i) {
    const int owner = random.below(numRanks);
    result.owner.push_back(owner == idle ? (owner + 1) % numRanks : owner);
  }
  result.needs.resize(numRanks);
  for (int rank = 0; rank < numRanks; ++rank) {
    const bool needsNothing = random.below(5) == 0;
    for (int i = 0; i < static_cast<int>(result.owner.size()) && !needsNothing; ++i) {
      if (random.below(100) < density) {
        result.needs[rank].insert(result.needs[rank].end(), 1 + (random.below(6) == 0), i);
      }
    }
    random.shuffle(result.needs[rank]);
  }
  return result;
}

inline Needs allToAll(int numRanks, int valuesPerRank) {
  Needs result;
  result.needs.resize(numRanks);
  for (int i = 0; i < numRanks * valuesPerRank; ++i) {
    result.owner.push_back(i % numRanks);
    for (std::vector<int>& list : result.needs) {
      list.push_back(i);
    }
  }
  return result;
}

inline std::vector<NamedPatterns> patternsFor(int numRanks, unsigned seed) {
  std::vector<NamedPatterns> list;
  const auto add = [&](const std::string& name, const Needs& halo) {
    list.push_back({name, KomvosTest::patternsFromNeeds(halo.owner, halo.needs)});
  };
  add("sparse", randomNeeds(numRanks, 12, 8, seed));
  add("half of everything", randomNeeds(numRanks, 6, 50, seed + 1));
  add("all to all", allToAll(numRanks, 3));
  Needs popular{{numRanks - 1, 0}, std::vector<std::vector<int>>(numRanks, std::vector<int>{0})};
  add("one value for everybody", popular);
  add("no halo", {std::vector<int>(4, 0), std::vector<std::vector<int>>(numRanks)});
  return list;
}

inline const std::vector<Komvos::Pairing>& allPairings() {
  static const std::vector<Komvos::Pairing> pairings{Komvos::Pairing::byVolume, Komvos::Pairing::leastLoaded,
                                                     Komvos::Pairing::majority};
  return pairings;
}

}  // namespace KomvosTest
