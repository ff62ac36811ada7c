/// \file mpi_test_runner.hpp
/// Runs GoogleTest under MPI: every rank enters every test, every rank reports its failures, and all ranks return the
/// same exit status.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

namespace KomvosTest {

/// Prints failures with the rank that has them, and keeps the ranks in step between tests.
class RankListener : public testing::EmptyTestEventListener {
 public:
  explicit RankListener(int rank) : rank_(rank) {}

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed()) {
      std::fprintf(stderr, "[rank %d] %s:%d: %s\n", rank_, result.file_name() ? result.file_name() : "?",
                   result.line_number(), result.message());
      std::fflush(stderr);
    }
  }

  void OnTestEnd(const testing::TestInfo&) override { MPI_Barrier(MPI_COMM_WORLD); }

 private:
  int rank_;
};

/// Whether there are as many ranks as ctest has asked for. The launcher of another MPI starts as many programs, but
/// each is alone, and most tests pass.
inline bool ranksAreThere() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* const asked = std::getenv("MPI_TEST_RANKS");
  if (asked != nullptr && std::atoi(asked) != size) {
    std::fprintf(stderr, "%d ranks, but %s were started: is the launcher that of the MPI library?\n", size, asked);
    return false;
  }
  return true;
}

/// \note Collective, between MPI_Init and MPI_Finalize.
inline int runAllTests() {
  if (!ranksAreThere()) {
    return 1;
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  if (rank != 0) {
    delete listeners.Release(listeners.default_result_printer());
  }
  listeners.Append(new RankListener(rank));
  int failed = RUN_ALL_TESTS();
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    std::fprintf(stderr, "no test of this name\n");
    failed = 1;
  }
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return failed;
}

}  // namespace KomvosTest
