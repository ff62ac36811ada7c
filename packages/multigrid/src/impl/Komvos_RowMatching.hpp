/// \file Komvos_RowMatching.hpp
/// Pivots for a solver that does not choose them while it factors.
#pragma once

#include <mpi.h>

#include <utility>
#include <vector>

#include "Komvos_DirectEngine.hpp"

namespace Komvos::Impl {

/// An entry that may be a pivot has at least this size (DistributedRows::sizes).
constexpr double strongPivot = 0.01;

/// Matches each row of a matrix with a column of its own in which it has an entry, so that these entries are large: on
/// the diagonal, they are good pivots. The work is done on rank 0, by SuiteSparse's BTF.
class RowMatching {
 public:
  enum class Prefer {
    diagonal,  ///< rows stay where they are if their diagonal is strong, as far as possible; all entries are strong, if
               ///< they can be
    largest    ///< the smallest entry that is chosen is as large as can be, but for a factor of 2
  };

  /// Gathers the matrix.
  /// \note Collective. \throws BadInput on all ranks if rank 0 has no memory for it, or it has more than 2^31 - 1
  /// entries
  RowMatching(MPI_Comm comm, const DistributedRows& rows, Prefer prefer);

  /// \return how many rows are matched: all, or not more, and the matrix is singular
  /// \note Collective.
  int match();

  /// Of each row of the whole matrix, after all have been matched.
  std::vector<int> takeColumns() { return std::move(columnOf_); }

 private:
  void gather(const DistributedRows& rows);
  void sortRows();
  int matchWith(double smallest);

  MPI_Comm comm_;
  Prefer prefer_;
  int rank_ = 0, numRows_;
  std::vector<int> columnOf_;
  // On rank 0: rows with their entries, those that are large enough now, and what BTF needs.
  std::vector<int> offsets_, columns_, largeOffsets_, large_, match_, work_;
  std::vector<double> sizes_;
};

}  // namespace Komvos::Impl
