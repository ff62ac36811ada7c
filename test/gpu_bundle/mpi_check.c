/* Says whether MPI starts and talks, and whether it may be given pointers to GPU memory, as JSON. Needs no GPU. */
#include <mpi.h>

#include <mpi-ext.h> /* needs mpi.h before it */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int rank, size, length, sum = 0, cuda = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Get_library_version(version, &length);
  version[strcspn(version, ",")] = '\0';
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  cuda = MPIX_Query_cuda_support();
#endif
  if (rank == 0 && sum == size * (size - 1) / 2) {
    printf("{\"library\": \"%s\", \"ranks\": %d, \"cuda\": %s}\n", version, size, cuda ? "true" : "false");
  }
  MPI_Finalize();
  return 0;
}
