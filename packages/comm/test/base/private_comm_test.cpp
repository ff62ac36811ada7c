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

TEST(PrivateComm, IsFreedWithTheUsersCommunicator) {
  const int before = Kept::alive;
  for (int repeat = 0; repeat < 3; ++repeat) {
    MPI_Comm mine = newComm();
    const PrivateComm* const first = PrivateComm::of(mine).get();
    keepOneWith(*PrivateComm::of(mine));
    EXPECT_EQ(first, PrivateComm::of(mine).get());
    EXPECT_EQ(before + 1, Kept::alive);
    MPI_Comm_free(&mine);
    EXPECT_EQ(before, Kept::alive);
  }
}

TEST(PrivateComm, StaysOnAllRanksWhereOneStillUsesIt) {
  const int before = Kept::alive;
  MPI_Comm mine = newComm();
  auto ours = PrivateComm::of(mine);
  keepOneWith(*ours);
  if (worldRank() != worldSize() - 1) {
    ours.reset();
  }
  MPI_Comm_free(&mine);
  EXPECT_EQ(before + 1, Kept::alive);
  if (ours) {
    ours.reset();  // waits for nobody, although the others are elsewhere
  }
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(before + 1, Kept::alive) << "until MPI_Finalize";
}

}  // namespace
