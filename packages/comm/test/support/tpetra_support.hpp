/// \file tpetra_support.hpp
/// Maps, vectors and comparisons for the tests that hold Komvos against Tpetra.
#pragma once

#include <Teuchos_DefaultMpiComm.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <Tpetra_Map.hpp>
#include <Tpetra_MultiVector.hpp>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "Komvos_HaloPlanner.hpp"
#include "Komvos_TpetraShim.hpp"
#include "support/test_patterns.hpp"

namespace KomvosTest {

using Teuchos::RCP;
using Teuchos::rcp;
using GO = Komvos::DefaultGlobalOrdinal;
using LO = Komvos::DefaultLocalOrdinal;
using Map = Tpetra::Map<>;
template <class Scalar>
using MultiVector = Tpetra::MultiVector<Scalar, LO, GO, Komvos::DefaultNode>;
using TeuchosComm = RCP<const Teuchos::Comm<int>>;

inline RCP<const Map> makeMap(const std::vector<GO>& mine, const TeuchosComm& comm) {
  const auto all = Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid();
  return rcp(new Map(all, Teuchos::ArrayView<const GO>(mine.data(), mine.size()), 0, comm));
}

/// The options of a test: never what the machine says.
inline Komvos::ExchangeOptions optionsFor(const NamedTopology& where, const Komvos::RouteChoice& route,
                                          Komvos::IntraNode onNode = Komvos::IntraNode::messages) {
  Komvos::ExchangeOptions options;
  options.route = route;
  options.pairing = Komvos::Pairing::byVolume;
  options.intraNode = onNode;
  options.topology = std::make_shared<const Komvos::NodeTopology>(where.topology);
  return options;
}

/// A number in [-1, 1) that looks random, for each key.
inline double noise(unsigned long long key) {
  key += 0x9E3779B97F4A7C15ULL;
  key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9ULL;
  key = (key ^ (key >> 27)) * 0x94D049BB133111EBULL;
  return static_cast<double>(key >> 11) / 4503599627370496.0 - 1.0;
}

/// Different numbers for every entry, the same for the same seed on any number of ranks.
template <class Scalar>
void fill(MultiVector<Scalar>& vector, unsigned seed) {
  const auto map = vector.getMap();
  const auto view = vector.getLocalViewHost(Tpetra::Access::OverwriteAll);
  for (std::size_t i = 0; i < view.extent(0); ++i) {
    const auto gid = static_cast<unsigned long long>(map->getGlobalElement(static_cast<LO>(i)));
    for (std::size_t j = 0; j < view.extent(1); ++j) {
      view(i, j) = static_cast<Scalar>(1000 * noise(gid * 1000003ULL + 131 * j + seed));
    }
  }
}

template <class Scalar>
std::vector<Scalar> entries(const MultiVector<Scalar>& vector) {
  std::vector<Scalar> list;
  for (std::size_t j = 0; j < vector.getNumVectors(); ++j) {
    const auto column = vector.getVector(j);
    const auto view = column->getLocalViewHost(Tpetra::Access::ReadOnly);
    for (std::size_t i = 0; i < view.extent(0); ++i) {
      list.push_back(view(i, 0));
    }
  }
  return list;
}

template <class Scalar>
bool sameBits(const std::vector<Scalar>& a, const std::vector<Scalar>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Scalar)) == 0);
}

/// The largest difference, in units of `scale`; not a number counts as infinite.
template <class Scalar>
double difference(const std::vector<Scalar>& a, const std::vector<Scalar>& b, double scale) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double one = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])) / scale;
    largest = std::isnan(one) ? INFINITY : std::max(largest, one);
  }
  return largest;
}

/// Of this rank's entries, in order.
inline std::vector<GO> globalIds(const Map& map) {
  std::vector<GO> list;
  for (std::size_t i = 0; i < Komvos::Impl::localLength(map); ++i) {
    list.push_back(map.getGlobalElement(static_cast<LO>(i)));
  }
  return list;
}

/// A map where every entry belongs to one rank, and one that overlaps it.
struct MapPair {
  std::string name;
  RCP<const Map> owned, overlapping;
};

/// What MapPair to make.
struct MapKind {
  std::string name;
  GO base = 0, stride = 1;  ///< global index k is base + stride * k
  bool scattered = false;   ///< owners at random, else consecutive
  bool emptyRanks = false;  ///< even ranks own nothing
  bool lastOwnsAll = false;
  int prefix = 0;                          ///< entries that start the overlapping map in order: "same"
  int ownPercent = 30, otherPercent = 20;  ///< of own and other entries that are in the overlapping map
};

inline std::vector<MapKind> mapKinds() {
  const bool wide = sizeof(GO) > 4;
  const GO past31 = wide ? static_cast<GO>(3000000000LL) : 1000;
  const GO past33 = wide ? static_cast<GO>(9000000000LL) : 5000;
  return {
      {"consecutive, same first", 0, 1, false, false, false, 5, 40, 20},
      {"scattered, permuted", 0, 3, true, false, false, 3, 70, 25},
      {"past 2^31", past31, 1, true, false, false, 2, 50, 20},
      {"past 2^33 with gaps", past33, 7, true, false, false, 0, 50, 30},
      {"empty ranks", 0, 1, false, true, false, 2, 50, 30},
      {"the last rank owns all", 0, 1, false, false, true, 0, 20, 30},
      {"everything everywhere", 0, 1, true, false, false, 0, 100, 100},
      {"no halo, permuted", 0, 1, false, false, false, 0, 100, 0},
      {"no halo, same", 0, 1, false, false, false, 1000, 100, 0},
  };
}

inline MapPair makeMaps(const MapKind& kind, unsigned seed, const TeuchosComm& comm) {
  const int rank = comm->getRank();
  const int size = comm->getSize();
  const int perRank = 14;
  Random shared(seed);
  std::vector<std::vector<GO>> owned(size);
  for (int k = 0; k < perRank * size; ++k) {
    int owner = kind.scattered ? shared.below(size) : k / perRank;
    owner = kind.emptyRanks && owner % 2 == 0 ? std::min(owner + 1, size - 1) : owner;
    owner = kind.lastOwnsAll ? size - 1 : owner;
    owned[owner].push_back(kind.base + kind.stride * k);
  }
  if (kind.scattered) {
    shared.shuffle(owned[rank]);
  }
  Random mine(1000 * seed + static_cast<unsigned>(rank));
  const std::size_t same = std::min<std::size_t>(kind.prefix, owned[rank].size());
  std::vector<GO> first(owned[rank].begin(), owned[rank].begin() + same);
  std::vector<GO> rest;
  for (int other = 0; other < size; ++other) {
    for (std::size_t i = other == rank ? same : 0; i < owned[other].size(); ++i) {
      if (mine.below(100) < (other == rank ? kind.ownPercent : kind.otherPercent)) {
        rest.push_back(owned[other][i]);
      }
    }
  }
  mine.shuffle(rest);
  first.insert(first.end(), rest.begin(), rest.end());
  return {kind.name + " (seed " + std::to_string(seed) + ")", makeMap(owned[rank], comm), makeMap(first, comm)};
}

}  // namespace KomvosTest
