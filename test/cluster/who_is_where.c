/* Shows what MPI sees of a (virtual) cluster.
 *
 *   who_is_where             one line a rank: its host and its node
 *   who_is_where pingpong N [BYTES]
 *                            median time of one way between the first and the
 *                            last rank, N times
 *   who_is_where gap N       every rank sends 8 bytes to every rank of every
 *                            other node, N times: messages that leave the
 *                            busiest node and the median time for all of them
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, node, nodes, *node_of;

static void find_nodes(void) {
  MPI_Comm inside, leaders;
  int local;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &inside);
  MPI_Comm_rank(inside, &local);
  MPI_Comm_split(MPI_COMM_WORLD, local == 0 ? 0 : MPI_UNDEFINED, rank, &leaders);
  if (local == 0) {
    MPI_Comm_rank(leaders, &node);
    MPI_Comm_size(leaders, &nodes);
  }
  MPI_Bcast(&node, 1, MPI_INT, 0, inside);
  MPI_Bcast(&nodes, 1, MPI_INT, 0, inside);
  node_of = malloc(size * sizeof *node_of);
  MPI_Allgather(&node, 1, MPI_INT, node_of, 1, MPI_INT, MPI_COMM_WORLD);
}

static void print_where(void) {
  char name[MPI_MAX_PROCESSOR_NAME] = "", *names = malloc(size * sizeof name);
  int length;
  MPI_Get_processor_name(name, &length);
  MPI_Gather(name, sizeof name, MPI_CHAR, names, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  for (int r = 0; rank == 0 && r < size; ++r)
    printf("rank %d host %s node %d\n", r, names + r * sizeof name, node_of[r]);
  free(names);
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median_us(double *times, int n) {
  qsort(times, n, sizeof *times, compare);
  return 1e6 * times[n / 2];
}

static void pingpong(int n, int bytes) {
  double *times = malloc(n * sizeof *times);
  char *data = calloc(bytes, 1);
  const int peer = size - 1 - rank;
  for (int i = 0; (rank == 0 || rank == size - 1) && i < n; ++i) {
    const double start = MPI_Wtime();
    if (rank == 0) MPI_Send(data, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
    MPI_Recv(data, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank != 0) MPI_Send(data, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
    times[i] = (MPI_Wtime() - start) / 2;
  }
  if (rank == 0) printf("pingpong one_way_us %.1f\n", median_us(times, n));
  free(times), free(data);
}

/* The busiest card sends (its ranks) * (ranks elsewhere) messages. */
static int busiest_card(void) {
  int most = 0;
  for (int c = 0; c < nodes; ++c) {
    int here = 0;
    for (int r = 0; r < size; ++r) here += node_of[r] == c;
    if (here * (size - here) > most) most = here * (size - here);
  }
  return most;
}

static void gap(int n) {
  double *times = malloc(n * sizeof *times), *in = malloc(size * sizeof *in), out = rank;
  MPI_Request *requests = malloc(2 * size * sizeof *requests);
  for (int i = 0; i < n; ++i) {
    int k = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int r = 0; r < size; ++r)
      if (node_of[r] != node) MPI_Irecv(&in[r], 1, MPI_DOUBLE, r, 1, MPI_COMM_WORLD, &requests[k++]);
    for (int r = 0; r < size; ++r)
      if (node_of[r] != node) MPI_Isend(&out, 1, MPI_DOUBLE, r, 1, MPI_COMM_WORLD, &requests[k++]);
    MPI_Waitall(k, requests, MPI_STATUSES_IGNORE);
    const double mine = MPI_Wtime() - start;
    MPI_Reduce(&mine, &times[i], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  }
  if (rank == 0) printf("gap messages %d us %.1f\n", busiest_card(), median_us(times, n));
  free(times), free(in), free(requests);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  find_nodes();
  const int n = argc > 2 ? atoi(argv[2]) : 1;
  if (argc < 2) print_where();
  else if (!strcmp(argv[1], "pingpong")) pingpong(n, argc > 3 ? atoi(argv[3]) : 8);
  else if (!strcmp(argv[1], "gap")) gap(n);
  free(node_of);
  MPI_Finalize();
  return 0;
}
