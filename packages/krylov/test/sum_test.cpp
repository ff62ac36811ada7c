// Sums that travel in the background: right on any shape of nodes, with as few messages as promised.
#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_NonBlockingSum.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_ProgressHook.hpp"
#include "support/mpi_counter.hpp"

namespace {

using namespace KomvosTest;
using Komvos::NodeTopology;
using Komvos::Impl::NonBlockingSum;
using Komvos::Impl::PrivateComm;
using Komvos::Impl::ProgressHook;

/// A communicator of its own for each test: what is set up once for a communicator is set up again.
class Sums : public testing::Test {
 protected:
  void SetUp() override {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  void TearDown() override { MPI_Comm_free(&comm_); }

  /// Of (rank + 1) * factor, over all ranks.
  double expected(double factor) const { return factor * size_ * (size_ + 1) / 2; }

  /// Ranks on each node: all, two, one less than all, one.
  std::vector<NodeTopology> shapes() const {
    std::vector<NodeTopology> shapes;
    for (const int perNode : {size_, 2, size_ - 1, 1}) {
      std::vector<int> nodes(size_);
      for (int rank = 0; rank < size_; ++rank) {
        nodes[rank] = perNode > 0 ? rank / perNode : 0;
      }
      shapes.push_back(NodeTopology::fromMap(nodes));
    }
    return shapes;
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
};

TEST_F(Sums, AreRightOnAnyShapeOfNodesHoweverOneWaits) {
  for (const NodeTopology& shape : shapes()) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(comm_, &comm);
    {
      NonBlockingSum<double> sum(PrivateComm::of(comm), 3, &shape);
      for (int turn = 1; turn < 200; ++turn) {
        const int count = 1 + turn % 3;
        for (int i = 0; i < count; ++i) {
          sum.own()[i] = (rank_ + 1.0) * turn * (i + 1);
        }
        if (turn % 4 == 0) {
          sum.run(count);
        } else {
          sum.start(count);
          for (int i = 0; i < (turn + rank_) % 5; ++i) {
            turn % 2 == 0 ? sum.progress() : ProgressHook::runAll();
          }
          sum.wait();
        }
        for (int i = 0; i < count; ++i) {
          ASSERT_EQ(expected(turn * (i + 1)), sum.sums()[i]) << shape.describe() << ", turn " << turn;
        }
      }
      EXPECT_FALSE(ProgressHook::any());
    }
    MPI_Comm_free(&comm);
  }
}

TEST_F(Sums, TwoAtOnceDoNotMeet) {
  const NodeTopology shape = shapes()[1];
  NonBlockingSum<double> one(PrivateComm::of(comm_), 1, &shape), other(PrivateComm::of(comm_), 1, &shape);
  for (int turn = 1; turn < 50; ++turn) {
    one.own()[0] = (rank_ + 1.0) * turn;
    other.own()[0] = (rank_ + 1.0) * 1000;
    one.start(1);
    other.start(1);
    turn % 2 == 0 ? one.wait() : other.wait();
    turn % 2 == 0 ? other.wait() : one.wait();
    ASSERT_EQ(expected(turn), one.sums()[0]);
    ASSERT_EQ(expected(1000), other.sums()[0]);
  }
}

// A solver within the preconditioner of another one: the outer sum arrives early where somebody looks.
TEST_F(Sums, WithinAnotherAreInStepThoughThatArrivesEarlyOnSomeRanks) {
  for (const NodeTopology& shape : shapes()) {
    NonBlockingSum<double> outer(PrivateComm::of(comm_), 1, &shape), inner(PrivateComm::of(comm_), 1, &shape);
    for (int turn = 1; turn < 20; ++turn) {
      outer.own()[0] = (rank_ + 1.0) * turn;
      outer.start(1);
      const bool looks = rank_ < size_ - 1 || size_ == 1 || shape.leaderOf(shape.nodeOf(rank_)) == rank_;
      while (looks && outer.sums()[0] != expected(turn)) {
        outer.progress();
        std::this_thread::yield();
      }
      inner.own()[0] = (rank_ + 1.0) * 1000;
      inner.run(1);
      outer.wait();
      ASSERT_EQ(expected(1000), inner.sums()[0]) << shape.describe() << ", turn " << turn;
      ASSERT_EQ(expected(turn), outer.sums()[0]) << shape.describe() << ", turn " << turn;
    }
  }
}

// As after an exception: the memory is given back on some ranks and not on others.
TEST_F(Sums, GoOnAfterOneThatARankHasLeft) {
  const NodeTopology shape = shapes()[0];
  {
    NonBlockingSum<double> left(PrivateComm::of(comm_), 1, &shape);
    left.own()[0] = rank_ + 1.0;
    left.start(1);
    if (rank_ > 0) {
      left.wait();
      EXPECT_EQ(expected(1), left.sums()[0]);
    }
  }
  NonBlockingSum<double> sum(PrivateComm::of(comm_), 1, &shape);
  for (int turn = 1; turn < 10; ++turn) {
    sum.own()[0] = (rank_ + 1.0) * turn;
    turn % 2 == 0 ? sum.run(1) : sum.start(1);
    sum.wait();
    ASSERT_EQ(expected(turn), sum.sums()[0]);
  }
}

// Nobody waits for a rank that is slow to read, and it reads what it should.
TEST_F(Sums, KeepTheirNumbersWhereARankReadsLate) {
  const NodeTopology shape = shapes()[0];
  NonBlockingSum<double> sum(PrivateComm::of(comm_), 1, &shape);
  for (int turn = 1; turn < 40; ++turn) {
    sum.own()[0] = (rank_ + 1.0) * turn;
    sum.start(1);
    if (turn % size_ == rank_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    sum.wait();
    ASSERT_EQ(expected(turn), sum.sums()[0]) << "turn " << turn;
  }
}

TEST_F(Sums, LetOneRankOfANodeReduce) {
  for (const NodeTopology& shape : shapes()) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(comm_, &comm);
    {
      NonBlockingSum<double> sum(PrivateComm::of(comm), 1, &shape);
      startCounting();
      for (int turn = 0; turn < 10; ++turn) {
        sum.own()[0] = 1;
        sum.start(1);
        sum.wait();
      }
      const Counts counts = stopCounting();
      const bool leads = shape.leaderOf(shape.nodeOf(rank_)) == rank_;
      EXPECT_EQ(shape.numNodes() > 1 && leads ? 10 : 0, counts.reductionsStarted) << shape.describe();
      EXPECT_EQ(0, counts.collectives + counts.gathers + static_cast<long>(counts.sent.size())) << shape.describe();
    }
    MPI_Comm_free(&comm);
  }
}

TEST_F(Sums, OfFloatsAndWithMpiAlone) {
  NonBlockingSum<float> sum(PrivateComm::of(comm_), 2, nullptr);
  sum.own()[0] = static_cast<float>(rank_ + 1);
  sum.own()[1] = 0.5F;
  sum.start(2);
  sum.wait();
  EXPECT_EQ(static_cast<float>(expected(1)), sum.sums()[0]);
  EXPECT_EQ(0.5F * static_cast<float>(size_), sum.sums()[1]);
}

TEST_F(Sums, RefuseWhatTheyHaveNoRoomFor) {
  const NodeTopology shape = shapes()[0];
  NonBlockingSum<double> sum(PrivateComm::of(comm_), 2, &shape);
  EXPECT_THROW(sum.start(3), Komvos::Error);
  sum.own()[0] = 1;
  sum.start(1);
  EXPECT_THROW(sum.start(1), Komvos::Error);
  sum.wait();
  EXPECT_EQ(size_, sum.sums()[0]);
}

}  // namespace
