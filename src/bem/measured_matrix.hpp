/// \file measured_matrix.hpp
/// The hierarchical matrix of `komvos bem`: made, its error estimated, its products timed.
#pragma once

#include <mpi.h>

#include <Teuchos_RCP.hpp>
#include <Tpetra_MultiVector.hpp>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_HMatrixOperator.hpp"
#include "bem/bem_kernel.hpp"
#include "bem/bem_report.hpp"
#include "bem/error_estimate.hpp"
#include "bem/product_times.hpp"
#include "bem/set_up_progress.hpp"
#include "problem/problem.hpp"

namespace Komvos::Program {

/// \note Collective. \throws BadInput on all ranks if the kernel does on one
template <class Scalar>
ErrorEstimate estimateError(const HMatrixOperator<Scalar>& A, const EntryKernel<Scalar>& kernel, MPI_Comm comm) {
  using Vectors = typename HMatrixOperator<Scalar>::multivector_type;
  const auto& map = *A.getDomainMap();
  const int unknowns = static_cast<int>(map.getGlobalNumElements());
  Vectors x(A.getDomainMap(), errorVectors), y(A.getRangeMap(), errorVectors);
  {
    const auto values = x.getLocalViewHost(Tpetra::Access::OverwriteAll);
    for (int row = 0; row < static_cast<int>(x.getLocalLength()); ++row) {
      for (int vector = 0; vector < errorVectors; ++vector) {
        values(row, vector) = errorSign(map.getGlobalElement(row), vector);
      }
    }
  }
  A.apply(x, y);
  const std::vector<int> rows = errorRows(unknowns);
  std::vector<int> mine;
  std::vector<Scalar> product;
  const auto values = y.getLocalViewHost(Tpetra::Access::ReadOnly);
  for (const int row : rows) {
    if (map.isNodeGlobalElement(row)) {
      mine.push_back(row);
      for (int vector = 0; vector < errorVectors; ++vector) {
        product.push_back(static_cast<Scalar>(values(map.getLocalElement(row), vector)));
      }
    }
  }
  ErrorSums sums;
  throwOnAllIfAny(comm, Impl::errorIn([&] { sums = errorSums(kernel, unknowns, mine, product); }));
  std::array<double, 2> both{sums.difference, sums.all};
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, both.data(), 2, MPI_DOUBLE, MPI_SUM, comm), "MPI_Allreduce");
  return {std::sqrt(both[0] / both[1]), static_cast<int>(rows.size()), errorVectors};
}

/// \param start of the set-up, by MPI_Wtime() \note Collective.
template <class Scalar>
Teuchos::RCP<const HMatrixOperator<Scalar>> makeMeasuredMatrix(const BemOptions& options, const ClusterTree& tree,
                                                               const EntryKernel<Scalar>& kernel, const CommPtr& comm,
                                                               const ExchangeOptions& exchange, bool showProgress,
                                                               double start, BemReport& report) {
  using Matrix = HMatrixOperator<Scalar>;
  const MPI_Comm mpi = mpiOf(comm);
  report.depth = tree.depth();
  SetUpProgress progress(showProgress);
  const auto A = Teuchos::rcp(new Matrix(comm, tree, kernel, progress.listening(matrixOptionsOf(options)), exchange));
  progress.clear();
  mpiCheck(MPI_Barrier(mpi), "MPI_Barrier");
  report.setupSeconds = MPI_Wtime() - start;
  report.matrix = A->report();
  report.error = estimateError(*A, kernel, mpi);
  typename Matrix::multivector_type x(A->getDomainMap(), 1), y(A->getRangeMap(), 1);
  x.putScalar(1);
  report.products = timeProducts(mpi, A->bytesRead(), options.products, [&] { A->apply(x, y); });
  return A;
}

}  // namespace Komvos::Program
