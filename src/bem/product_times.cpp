#include "bem/product_times.hpp"

#include <array>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_Statistics.hpp"
#include "support/stream_read.hpp"

namespace Komvos::Program {

namespace {

/// Of the slowest rank, all beginning together. \note Collective.
double secondsOf(MPI_Comm comm, const std::function<void()>& work) {
  mpiCheck(MPI_Barrier(comm), "MPI_Barrier");
  const double start = MPI_Wtime();
  work();
  double seconds = MPI_Wtime() - start;
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, comm), "MPI_Allreduce");
  return seconds;
}

}  // namespace

ProductTimes timeProducts(MPI_Comm comm, std::int64_t bytes, int count, const std::function<void()>& product) {
  ProductTimes times;
  times.count = count;
  if (count == 0) {
    return times;
  }
  const StreamRead read(bytes);
  std::array<std::int64_t, 2> sums{bytes, read.bytes()};
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, sums.data(), 2, MPI_INT64_T, MPI_SUM, comm), "MPI_Allreduce");
  times.bytes = sums[0];
  times.readBytes = sums[1];
  std::vector<double> products, reads;
  for (int i = 0; i <= count; ++i) {
    const double ofProduct = secondsOf(comm, product);
    const double ofRead = secondsOf(comm, [&] { read.run(); });
    if (i > 0) {
      products.push_back(ofProduct);
      reads.push_back(ofRead);
    }
  }
  times.seconds = Impl::median(products);
  times.readSeconds = Impl::median(reads);
  return times;
}

}  // namespace Komvos::Program
