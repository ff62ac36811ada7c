// Maxima, minima and sums in one operation, against one MPI operation for each.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "Komvos_PrivateComm.hpp"
#include "Komvos_Reduction.hpp"
#include "support/mpi_support.hpp"

namespace {

using namespace KomvosTest;
using Komvos::Impl::PrivateComm;
using Komvos::Impl::Reduction;

template <class Number>
Number reduced(Number mine, MPI_Datatype type, MPI_Op operation) {
  MPI_Allreduce(MPI_IN_PLACE, &mine, 1, type, operation, MPI_COMM_WORLD);
  return mine;
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
    const auto expect = [](auto before, auto after, MPI_Datatype type, MPI_Op operation) {
      for (std::size_t i = 0; i < before.size(); ++i) {
        EXPECT_EQ(reduced(before[i], type, operation), after[i]);
      }
    };
    const auto words = most;
    const auto longs = mostLong;
    const auto signs = sumLong;
    const auto doubles = mostDouble;
    round.run(*comm);
    expect(words, most, MPI_UINT64_T, MPI_MAX);
    expect(words, least, MPI_UINT64_T, MPI_MIN);
    expect(words, sum, MPI_UINT64_T, MPI_SUM);
    expect(longs, mostLong, MPI_LONG, MPI_MAX);
    expect(signs, sumLong, MPI_LONG, MPI_SUM);
    expect(doubles, mostDouble, MPI_DOUBLE, MPI_MAX);
    expect(doubles, leastDouble, MPI_DOUBLE, MPI_MIN);
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
