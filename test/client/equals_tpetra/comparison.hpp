// What the parts of this program share: types, numbers that look random, and counted comparisons with Tpetra.
#pragma once

#include <Komvos_NodeAwareImport.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_Map.hpp>
#include <Tpetra_MultiVector.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace twin {

using Map = Tpetra::Map<>;
using LO = Map::local_ordinal_type;
using GO = Map::global_ordinal_type;
using Node = Map::node_type;
template <class Scalar>
using Vectors = Tpetra::MultiVector<Scalar, LO, GO, Node>;
using Comm = Teuchos::RCP<const Teuchos::Comm<int>>;
using Teuchos::RCP;
using Teuchos::rcp;

/// A number from 0 to 2^53 that looks random, for each key.
inline unsigned long long hash(unsigned long long key) {
  key += 0x9E3779B97F4A7C15ULL;
  key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9ULL;
  key = (key ^ (key >> 27)) * 0x94D049BB133111EBULL;
  return (key ^ (key >> 31)) >> 11;
}
inline int below(int n, unsigned long long key) { return static_cast<int>(hash(key) % static_cast<unsigned>(n)); }
/// In [-1, 1).
inline double noise(unsigned long long key) { return static_cast<double>(hash(key)) / 4503599627370496.0 - 1.0; }

inline RCP<const Map> mapOf(const std::vector<GO>& mine, const Comm& comm) {
  const auto all = Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid();
  return rcp(new Map(all, Teuchos::ArrayView<const GO>(mine.data(), mine.size()), 0, comm));
}

/// Numbers for each global index and column, and where several ranks have an index, the same there; for each rank its
/// own if `rank` is not 0.
template <class Scalar>
void fill(Vectors<Scalar>& vectors, unsigned seed, int rank = 0) {
  const auto map = vectors.getMap();
  for (std::size_t j = 0; j < vectors.getNumVectors(); ++j) {
    const auto column = vectors.getVectorNonConst(j);
    const auto view = column->getLocalViewHost(Tpetra::Access::OverwriteAll);
    for (std::size_t i = 0; i < view.extent(0); ++i) {
      const auto index = static_cast<unsigned long long>(map->getGlobalElement(static_cast<LO>(i)));
      view(i, 0) = static_cast<Scalar>(1000 * noise(index * 1000003ULL + 131 * j + 7919 * rank + seed));
    }
  }
}

/// All entries of this rank, column by column.
template <class Scalar>
std::vector<Scalar> entriesOf(const Vectors<Scalar>& vectors) {
  std::vector<Scalar> list;
  for (std::size_t j = 0; j < vectors.getNumVectors(); ++j) {
    const auto column = vectors.getVector(j);
    const auto view = column->getLocalViewHost(Tpetra::Access::ReadOnly);
    for (std::size_t i = 0; i < view.extent(0); ++i) {
      list.push_back(view(i, 0));
    }
  }
  return list;
}

/// Counts comparisons group by group, and prints what differs.
class Comparisons {
 public:
  explicit Comparisons(int rank) : rank_(rank) {}

  /// From here on; `where` is printed with what differs.
  void enter(const std::string& group, const std::string& where) {
    group_ = &groups_[group];
    name_ = group;
    where_ = where;
  }

  template <class Scalar>
  void sameBits(const Vectors<Scalar>& expected, const Vectors<Scalar>& found, const std::string& what) {
    const std::vector<Scalar> a = entriesOf(expected), b = entriesOf(found);
    double largest = a.size() == b.size() ? 0 : INFINITY;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (std::memcmp(&a[i], &b[i], sizeof(Scalar)) != 0) {
        const double one = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
        largest = one > 0 ? std::max(largest, one) : INFINITY;
      }
    }
    note(largest, 0, what);
  }

  /// \param scale of the numbers that were added: the largest difference is counted in units of it
  void close(const Vectors<double>& expected, const Vectors<double>& found, double scale, const std::string& what) {
    const std::vector<double> a = entriesOf(expected), b = entriesOf(found);
    double largest = a.size() == b.size() ? 0 : INFINITY;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      const double one = a[i] == b[i] ? 0 : std::abs(a[i] - b[i]) / scale;
      largest = std::isnan(one) ? INFINITY : std::max(largest, one);
    }
    note(largest, 1e-14, what);
  }

  /// One line a group. \return whether all were equal on all ranks \note Collective.
  bool report() {
    bool right = true;
    for (auto& [name, group] : groups_) {
      MPI_Allreduce(MPI_IN_PLACE, &group.largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      MPI_Allreduce(MPI_IN_PLACE, &group.different, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
      if (rank_ == 0) {
        std::printf("  %-34s %6ld comparisons, %ld different, largest deviation %.1e\n", name.c_str(), group.count,
                    group.different, group.largest);
      }
      right = right && group.different == 0 && group.count > 0;
    }
    return right;
  }

 private:
  struct Group {
    long count = 0, different = 0;
    double largest = 0;
  };

  void note(double largest, double allowed, const std::string& what) {
    ++group_->count;
    group_->largest = std::max(group_->largest, largest);
    if (!(largest <= allowed)) {
      ++group_->different;
      if (group_->different <= 3) {
        std::fprintf(stderr, "[rank %d] %s, %s, %s: differs by %g\n", rank_, name_.c_str(), where_.c_str(),
                     what.c_str(), largest);
      }
    }
  }

  int rank_;
  std::map<std::string, Group> groups_;
  Group* group_ = nullptr;
  std::string name_, where_;
};

/// How Komvos is told to exchange, besides the environment.
struct Setting {
  std::string name;
  Komvos::ExchangeOptions options;
  int turn;  ///< varies what is too much to be done each time
};

/// The parts of the program. \note Collective.
void compareMatrices(Comparisons& comparisons, const Comm& comm, const Setting& setting);
void compareTransfers(Comparisons& comparisons, const Comm& comm, const Setting& setting);

}  // namespace twin
