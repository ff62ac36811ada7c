// The duplicate of a communicator, and what is kept with it: found again, and freed by all ranks together or by none.
#include <gtest/gtest.h>
#include <mpi.h>

#include <memory>

#include "Komvos_PrivateComm.hpp"
#include "support/mpi_support.hpp"

namespace {

using namespace KomvosTest;
using Komvos::Impl::PrivateComm;

/// Counts those that live on this rank; its destruction is collective, as that of shared memory is.
struct Kept {
  static int alive;
  MPI_Comm comm;
  explicit Kept(MPI_Comm on) : comm(on) { ++alive; }
  ~Kept() {
    MPI_Barrier(comm);
    --alive;
  }
};
int Kept::alive = 0;

MPI_Comm newComm() {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  return made;
}

void keepOneWith(PrivateComm& ours) {
  ours.attached<Kept>([&ours] { return std::make_shared<Kept>(ours.get()); });
}

/// As a communicator that the user makes and hands to us for the first time.
void useNewComm() {
  MPI_Comm mine = newComm();
  PrivateComm::of(mine);
  MPI_Comm_free(&mine);
}

TEST(PrivateComm, IsFoundAgainAndFreedWhereTheNextIsMade) {
  const int before = Kept::alive;
  for (int repeat = 0; repeat < 3; ++repeat) {
    MPI_Comm mine = newComm();
    const PrivateComm* const first = PrivateComm::of(mine).get();
    EXPECT_EQ(before, Kept::alive) << "that of the round before is gone";
    keepOneWith(*PrivateComm::of(mine));
    EXPECT_EQ(first, PrivateComm::of(mine).get());
    EXPECT_EQ(before + 1, Kept::alive);
    MPI_Comm_free(&mine);
  }
  useNewComm();
  EXPECT_EQ(before, Kept::alive);
}

// What is made later, when the user has freed his communicator, is made on the duplicate.
TEST(PrivateComm, OfADuplicateIsTheDuplicateItself) {
  const int before = Kept::alive;
  MPI_Comm mine = newComm();
  auto ours = PrivateComm::of(mine);
  keepOneWith(*ours);
  EXPECT_EQ(ours, PrivateComm::of(ours->get()));
  MPI_Comm_free(&mine);
  EXPECT_EQ(ours, PrivateComm::of(ours->get()));
  useNewComm();
  EXPECT_EQ(before + 1, Kept::alive) << "in use";
  ours.reset();
  useNewComm();
  EXPECT_EQ(before, Kept::alive);
}

TEST(PrivateComm, StaysOnAllRanksWhileOneUsesIt) {
  const int before = Kept::alive;
  MPI_Comm mine = newComm();
  auto ours = PrivateComm::of(mine);
  keepOneWith(*ours);
  if (worldRank() != worldSize() - 1) {
    ours.reset();
  }
  MPI_Comm_free(&mine);
  useNewComm();
  EXPECT_EQ(before + 1, Kept::alive);
  if (ours) {
    ours.reset();  // waits for nobody, although the others are elsewhere
  }
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(before + 1, Kept::alive);
  useNewComm();
  EXPECT_EQ(before, Kept::alive);
}

// A level of a hierarchy goes with its last Teuchos::RCP, on each rank when that likes.
TEST(PrivateComm, WaitsForNobodyWhereTheUsersCommunicatorIsFreed) {
  const int before = Kept::alive;
  MPI_Comm mine = newComm();
  keepOneWith(*PrivateComm::of(mine));
  if (worldRank() == 0) {
    MPI_Comm_free(&mine);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  useNewComm();
  EXPECT_EQ(before + (worldSize() > 1 ? 1 : 0), Kept::alive) << "one rank only has freed it";
  if (worldRank() != 0) {
    MPI_Comm_free(&mine);
  }
  useNewComm();
  EXPECT_EQ(before, Kept::alive);
}

// Pairs of neighbours overlap: most ranks have two. Each is freed where both of its ranks meet.
TEST(PrivateComm, OfSomeRanksIsFreedWhereTheseMeet) {
  const int size = worldSize();
  const int rank = worldRank();
  if (size < 3) {
    GTEST_SKIP() << "needs 3 ranks";
  }
  const int before = Kept::alive;
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int pairs = 0;
  for (int first = 0; first + 1 < size; ++first) {
    if (rank == first || rank == first + 1) {
      const int both[] = {first, first + 1};
      MPI_Group group = MPI_GROUP_NULL;
      MPI_Group_incl(world, 2, both, &group);
      MPI_Comm pair = MPI_COMM_NULL;
      MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &pair);
      keepOneWith(*PrivateComm::of(pair));
      MPI_Comm_free(&pair);
      MPI_Group_free(&group);
      ++pairs;
      EXPECT_EQ(before + pairs, Kept::alive) << "the rank before is no rank of this pair";
    }
  }
  MPI_Group_free(&world);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2 ? 0 : 1, rank, &half);
  PrivateComm::of(half);
  const int acrossHalves = rank == size / 2 - 1 || rank == size / 2 ? 1 : 0;
  EXPECT_EQ(before + acrossHalves, Kept::alive);
  MPI_Comm_free(&half);
  useNewComm();
  EXPECT_EQ(before, Kept::alive);
}

}  // namespace
