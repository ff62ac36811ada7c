// Memory that the ranks of a node share: where its blocks lie, and that all ranks see the same.
#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "Komvos_DetectedTopology.hpp"
#include "Komvos_NodeMemory.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_PrivateComm.hpp"

namespace {

MPI_Aint mostInAWindow = std::numeric_limits<MPI_Aint>::max();

}  // namespace

/// MPI with little shared memory.
extern "C" int MPI_Win_allocate_shared(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base,
                                       MPI_Win* window) {
  return size > mostInAWindow ? MPI_ERR_NO_MEM : PMPI_Win_allocate_shared(size, unit, info, comm, base, window);
}

namespace {

/// Signals of a message stand on lines of their own, for the sender as for the receiver.
TEST(NodeMemory, BlocksStartOnCacheLinesInTheEyesOfAllRanks) {
  const auto comm = Komvos::Impl::PrivateComm::of(MPI_COMM_WORLD);
  Komvos::Impl::NodeMemory memory(comm->get());
  int others = 0;
  for (const std::size_t bytes : {1, 64, 100, 3 << 18}) {  // the last one does not fit into the first window
    const Komvos::Impl::NodeMemory::Block block = memory.allocate(bytes);
    ASSERT_NE(nullptr, block.data);
    EXPECT_GE(block.bytes, bytes);
    block.data[0] = static_cast<char>(1 + comm->rank());
    block.data[bytes - 1] = static_cast<char>(1 + comm->rank());
    memory.sync(block.place.window);
    std::array<std::int64_t, 2> mine{block.place.window, block.place.offset};
    std::vector<std::int64_t> all(2 * comm->size());
    MPI_Allgather(mine.data(), 2, MPI_INT64_T, all.data(), 2, MPI_INT64_T, comm->get());
    memory.sync(block.place.window);
    for (int rank = 0; rank < comm->size(); ++rank) {
      const int peer = memory.nodeRank(rank);
      if (peer >= 0) {
        const char* const seen = memory.at(peer, {all[2 * rank], all[2 * rank + 1]});
        EXPECT_EQ(0u, reinterpret_cast<std::uintptr_t>(seen) % 64) << bytes << " bytes of rank " << rank;
        EXPECT_EQ(1 + rank, seen[0]);
        EXPECT_EQ(1 + rank, seen[bytes - 1]);
        others += rank != comm->rank() ? 1 : 0;
      }
    }
    MPI_Barrier(comm->get());
  }
  const auto nodes = Komvos::Impl::detectedTopology(*comm);
  EXPECT_EQ(4 * (nodes->numRanksOn(nodes->nodeOf(comm->rank())) - 1), others);
}

TEST(NodeMemory, FreesWindowsThatNoRankOfTheNodeUses) {
  const auto comm = Komvos::Impl::PrivateComm::of(MPI_COMM_WORLD);
  Komvos::Impl::NodeMemory memory(comm->get());
  const std::size_t bytes = 1 << 20;  // a window for each
  const auto first = memory.allocate(bytes);
  const auto second = memory.allocate(bytes);
  ASSERT_NE(nullptr, second.data);
  ASSERT_NE(first.place.window, second.place.window);
  EXPECT_EQ(2 * bytes, memory.memoryBytes());
  second.data[bytes - 1] = 7;
  bool used = true;
  memory.release(first, [&used] { return used; });
  memory.freeUnused();
  EXPECT_EQ(2 * bytes, memory.memoryBytes()) << "others may still read it";
  used = comm->rank() == 0;
  memory.freeUnused();
  const auto nodes = Komvos::Impl::detectedTopology(*comm);
  const bool withRankZero = nodes->nodeOf(comm->rank()) == nodes->nodeOf(0);
  EXPECT_EQ(withRankZero ? 2 * bytes : bytes, memory.memoryBytes()) << "one rank of the node uses it";
  used = false;
  memory.freeUnused();
  EXPECT_EQ(bytes, memory.memoryBytes());
  EXPECT_EQ(first.place.window, memory.allocate(bytes).place.window) << "the number is given again";
  EXPECT_EQ(7, second.data[bytes - 1]);
}

TEST(NodeMemory, ReplacesWindowsThatAreTooSmall) {
  const auto comm = Komvos::Impl::PrivateComm::of(MPI_COMM_WORLD);
  Komvos::Impl::NodeMemory memory(comm->get());
  const std::size_t bytes = 1 << 20;
  const auto kept = memory.allocate(bytes), givenUp = memory.allocate(bytes);
  ASSERT_NE(nullptr, givenUp.data);
  kept.data[bytes - 1] = 7;
  memory.release(givenUp, [] { return false; });
  const auto larger = memory.allocate(2 * bytes);
  ASSERT_NE(nullptr, larger.data);
  EXPECT_EQ(3 * bytes, memory.memoryBytes());
  larger.data[2 * bytes - 1] = 5;
  EXPECT_EQ(7, kept.data[bytes - 1]);
}

TEST(NodeMemory, GivesAllRanksAsMuchAsTheLeastOfThemWants) {
  const auto comm = Komvos::Impl::PrivateComm::of(MPI_COMM_WORLD);
  Komvos::Impl::NodeMemory memory(comm->get());
  const auto nodes = Komvos::Impl::detectedTopology(*comm);
  const int numHere = nodes->numRanksOn(nodes->nodeOf(comm->rank()));
  std::int64_t expected = -1;
  for (int i = 0; i < 3; ++i) {  // with a new window, and without
    int amount = 3 + (nodes->localRankOf(comm->rank()) + i) % numHere;
    const auto block = memory.allocate(amount, [](int number) { return static_cast<std::size_t>(100 * number); });
    ASSERT_NE(nullptr, block.data);
    EXPECT_EQ(3, amount);
    EXPECT_EQ(320u, block.bytes);
    EXPECT_TRUE(i == 0 || block.place.offset == expected) << "what was not needed is free again";
    expected = block.place.offset + 320;
  }
}

/// The third window would be as large as the two before.
TEST(NodeMemory, TakesASmallWindowWhereThereIsNoRoomForALargeOne) {
  const auto comm = Komvos::Impl::PrivateComm::of(MPI_COMM_WORLD);
  Komvos::Impl::NodeMemory memory(comm->get());
  const std::size_t bytes = 1 << 18;
  mostInAWindow = 3 * (1 << 17);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(nullptr, memory.allocate(bytes).data) << i;
  }
  mostInAWindow = bytes;
  const auto none = memory.allocate(bytes);
  mostInAWindow = std::numeric_limits<MPI_Aint>::max();
  EXPECT_EQ(nullptr, none.data);
  EXPECT_EQ(3 * bytes, memory.memoryBytes());
  EXPECT_NE(nullptr, memory.allocate(bytes).data);
  EXPECT_EQ(6 * bytes, memory.memoryBytes()) << "as large as all before";
}

}  // namespace
