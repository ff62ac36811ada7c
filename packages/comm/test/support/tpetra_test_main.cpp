// The main function of tests that need Tpetra, and with it Kokkos and MPI.
#include <Tpetra_Core.hpp>

#include "support/mpi_test_runner.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (GTEST_FLAG_GET(list_tests)) {  // without MPI and without a device
    return RUN_ALL_TESTS();
  }
  const Tpetra::ScopeGuard scope(&argc, &argv);
  return KomvosTest::runAllTests();
}
