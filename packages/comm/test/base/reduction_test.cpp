// Maxima, minima and sums in one operation, against the numbers of all ranks. (MPI's own operations are no reference:
// the MPI_MAX of MPICH 4.0 takes MPI_UINT64_T for a signed type.)
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "Komvos_PrivateComm.hpp"
#include "Komvos_Reduction.hpp"
#include "support/mpi_support.hpp"

namespace {

using namespace KomvosTest;
using Komvos::Impl::PrivateComm;
using Komvos::Impl::Reduction;

template <class Number>
std::vector<Number> ofAllRanks(Number mine) {
  std::vector<Number> all(worldSize());
  MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
  return all;
}

/// Different on each rank and for each seed; the largest is not always on the last rank.
std::uint64_t scattered(int seed) {
  return (static_cast<std::uint64_t>(worldRank()) + 3) * 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(2 * seed + 1);
}

TEST(Reduction, GivesWhatOneOperationForEachGives) {
  const std::shared_ptr<PrivateComm> comm = PrivateComm::of(MPI_COMM_WORLD);
  for (const int repeats : {1, 2, 300}) {
    std::vector<std::uint64_t> most(repeats), least(repeats), sum(repeats);
    std::vector<long> mostLong(repeats), sumLong(repeats);
    std::vector<double> mostDouble(repeats), leastDouble(repeats);
    Reduction round;
    for (int i = 0; i < repeats; ++i) {
      most[i] = least[i] = sum[i] = scattered(i);
      mostLong[i] = static_cast<long>(scattered(i) >> 1);
      sumLong[i] = static_cast<long>(scattered(i) % 1000) - 500;
      mostDouble[i] = leastDouble[i] = std::ldexp(static_cast<double>(scattered(i) % 1000), worldRank() * 50 - 100);
      round.sum(sum[i]);
      round.maximum(most[i]);
      round.minimum(least[i]);
      round.maximum(mostLong[i]);
      round.sum(sumLong[i]);
      round.minimum(leastDouble[i]);
      round.maximum(mostDouble[i]);
    }
    const auto expect = [](const auto& before, const auto& after, const auto& reduce) {
      for (std::size_t i = 0; i < before.size(); ++i) {
        EXPECT_EQ(reduce(ofAllRanks(before[i])), after[i]);
      }
    };
    const auto largest = [](const auto& all) { return *std::max_element(all.begin(), all.end()); };
    const auto smallest = [](const auto& all) { return *std::min_element(all.begin(), all.end()); };
    const auto total = [](const auto& all) { return std::accumulate(all.begin() + 1, all.end(), all.front()); };
    const auto words = most;
    const auto longs = mostLong;
    const auto signs = sumLong;
    const auto doubles = mostDouble;
    round.run(*comm);
    expect(words, most, largest);
    expect(words, least, smallest);
    expect(words, sum, total);
    expect(longs, mostLong, largest);
    expect(signs, sumLong, total);
    expect(doubles, mostDouble, largest);
    expect(doubles, leastDouble, smallest);
  }
}

TEST(Reduction, KeepsExtremes) {
  double infinite = worldRank() == 0 ? std::numeric_limits<double>::infinity() : 0.0;
  double tiny = worldRank() == 0 ? std::numeric_limits<double>::denorm_min() : 1.0;
  std::uint64_t largest = worldRank() == worldSize() - 1 ? ~std::uint64_t{0} : 0;
  Reduction round;
  round.maximum(infinite);
  round.minimum(tiny);
  round.maximum(largest);
  round.run(*PrivateComm::of(MPI_COMM_WORLD));
  EXPECT_EQ(std::numeric_limits<double>::infinity(), infinite);
  EXPECT_EQ(std::numeric_limits<double>::denorm_min(), tiny);
  EXPECT_EQ(~std::uint64_t{0}, largest);
}

TEST(Reduction, OfNothingIsAllowed) { Reduction().run(*PrivateComm::of(MPI_COMM_WORLD)); }

}  // namespace
