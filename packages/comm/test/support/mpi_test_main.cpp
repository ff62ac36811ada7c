// The main function of tests that need MPI and nothing else.
#include "support/mpi_test_runner.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  MPI_Init(&argc, &argv);
  const int failed = KomvosTest::runAllTests();
  MPI_Finalize();
  return failed;
}
