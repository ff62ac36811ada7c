// The main function of tests that need Tpetra, and with it Kokkos and MPI.
#include <Tpetra_Core.hpp>

#include "support/mpi_test_runner.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const Tpetra::ScopeGuard scope(&argc, &argv);
  return KomvosTest::runAllTests();
}
