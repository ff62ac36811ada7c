// Tags: the same on all ranks, nobody else's on any rank, used again, and an error everywhere when they run out.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_TagPool.hpp"
#include "support/mpi_support.hpp"

namespace {

using namespace KomvosTest;
using Komvos::Impl::TagPool;
using Komvos::Impl::TagRange;

constexpr int firstTag = 5;
constexpr int lastTag = 44;

struct Held {
  TagRange range;
  int count;
};

/// For each tag, on how many ranks it belongs to somebody.
std::vector<int> owners(const std::vector<Held>& held) {
  std::vector<int> number(lastTag + 1);
  for (const Held& one : held) {
    for (int tag = one.range.first(); tag < one.range.first() + one.count; ++tag) {
      EXPECT_EQ(0, number.at(tag)++) << "tag " << tag << " belongs to two";
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, number.data(), lastTag + 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return number;
}

/// Takes `count` tags and compares them with those of all ranks. \return whether there were so many
bool takeAndCheck(TagPool& pool, int count, std::vector<Held>& held) {
  const std::vector<int> before = owners(held);
  int first = -1;
  try {
    held.push_back({pool.take(MPI_COMM_WORLD, count), count});
    first = held.back().range.first();
  } catch (const Komvos::Error&) {
  }
  int bounds[2] = {first, -first};
  MPI_Allreduce(MPI_IN_PLACE, bounds, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  EXPECT_EQ(bounds[0], -bounds[1]) << "not the same on all ranks";
  int longest = 0;
  for (int tag = firstTag, length = 0; tag <= lastTag; ++tag) {
    length = before[tag] == 0 ? length + 1 : 0;
    longest = std::max(longest, length);
  }
  if (first < 0) {
    EXPECT_LT(longest, count) << "tags are free";
    return false;
  }
  EXPECT_GE(first, firstTag);
  EXPECT_LE(first + count - 1, lastTag);
  for (int tag = first; tag < first + count; ++tag) {
    EXPECT_EQ(0, before.at(tag)) << "tag " << tag << " is in use on a rank";
  }
  return true;
}

TEST(TagPool, NeverHandsOutTagsThatAnyRankStillHasWhateverIsGivenBackFirst) {
  TagPool pool(firstTag, lastTag);
  std::mt19937 common(7);
  std::mt19937 own(100 + worldRank());
  std::vector<Held> held;
  int taken = 0;
  int refused = 0;
  for (int step = 0; step < 400; ++step) {
    const int count = 1 + static_cast<int>(common() % 7);
    (takeAndCheck(pool, count, held) ? taken : refused) += 1;
    for (int k = static_cast<int>(own() % 3); k > 0 && !held.empty(); --k) {
      held.erase(held.begin() + static_cast<int>(own() % held.size()));
    }
  }
  EXPECT_GT(taken, 100) << "they are used again";
  held.clear();
  EXPECT_TRUE(takeAndCheck(pool, lastTag - firstTag + 1, held)) << "nothing is lost";
  EXPECT_FALSE(takeAndCheck(pool, 1, held));
}

TEST(TagPool, SaysHowManyExchangesHoldTheTags) {
  TagPool pool(1, 10);
  const TagRange six = pool.take(MPI_COMM_WORLD, 6);
  std::string text;
  try {
    pool.take(MPI_COMM_WORLD, 5);
  } catch (const Komvos::Error& error) {
    text = error.what();
  }
  EXPECT_EQ(0u, text.find("no 5 consecutive MPI tags are free: 1 exchanges on this communicator hold most of the 10"))
      << text;
  EXPECT_EQ(7, pool.take(MPI_COMM_WORLD, 4).first()) << "the others can still be had";
}

}  // namespace
