#include "petsc_matrix.hpp"

#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <Tpetra_Import.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace Komvos::Program {

namespace {

/// The new number of each column of the matrix: ranks one after the other, each in its local order.
std::vector<PetscInt> newColumnNumbers(const Matrix& matrix, PetscInt firstRow) {
  const auto domain = matrix.getDomainMap();
  const auto columns = matrix.getColMap();
  // Numbers of rows: of the type that Tpetra has for them.
  Tpetra::Vector<DefaultGlobalOrdinal> owned(domain), ghosted(columns);
  for (std::size_t i = 0; i < Impl::localLength(*domain); ++i) {
    owned.replaceLocalValue(static_cast<DefaultLocalOrdinal>(i), firstRow + static_cast<DefaultGlobalOrdinal>(i));
  }
  ghosted.doImport(owned, Tpetra::Import<>(domain, columns), Tpetra::INSERT);
  const auto view = ghosted.getLocalViewHost(Tpetra::Access::ReadOnly);
  return {view.data(), view.data() + view.extent(0)};
}

}  // namespace

void petscCheck(PetscErrorCode code) {
  if (code != 0) {
    throw std::runtime_error("PETSc fails with " + std::to_string(code));
  }
}

void startPetsc() {
  PetscBool initialized = PETSC_FALSE;
  petscCheck(PetscInitialized(&initialized));
  if (initialized == PETSC_FALSE) {
    petscCheck(PetscInitializeNoArguments());
  }
}

bool petscIsFinalized() {
  PetscBool finalized = PETSC_FALSE;
  PetscFinalized(&finalized);
  return finalized == PETSC_TRUE;
}

Mat petscMatrix(const Matrix& matrix) {
  startPetsc();
  const MPI_Comm comm = Tpetra::Details::extractMpiCommFromTeuchos(*matrix.getComm());
  const auto local = matrix.getLocalMatrixHost();
  const PetscInt rows = local.numRows();
  PetscInt firstRow = 0;
  petscCheck(MPI_Exscan(&rows, &firstRow, 1, MPIU_INT, MPI_SUM, comm));
  const std::vector<PetscInt> numbers = newColumnNumbers(matrix, firstRow);
  std::vector<PetscInt> offsets(rows + 1), columns(local.nnz());
  for (PetscInt i = 0; i <= rows; ++i) {
    offsets[i] = static_cast<PetscInt>(local.graph.row_map(i));
  }
  for (std::size_t k = 0; k < columns.size(); ++k) {
    columns[k] = numbers[local.graph.entries(k)];
  }
  Mat made = nullptr;
  petscCheck(MatCreateMPIAIJWithArrays(comm, rows, rows, PETSC_DETERMINE, PETSC_DETERMINE, offsets.data(),
                                       columns.data(), local.values.data(), &made));
  return made;
}

void copyToPetsc(const MultiVector& from, int column, Vec to) {
  const auto values = from.getLocalViewHost(Tpetra::Access::ReadOnly);
  PetscScalar* target = nullptr;
  petscCheck(VecGetArray(to, &target));
  for (std::size_t i = 0; i < values.extent(0); ++i) {
    target[i] = values(i, column);
  }
  petscCheck(VecRestoreArray(to, &target));
}

}  // namespace Komvos::Program
