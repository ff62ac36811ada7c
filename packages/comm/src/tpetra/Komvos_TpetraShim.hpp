/// \file Komvos_TpetraShim.hpp
/// Tpetra's default types, and what differs between Trilinos 13.2, 16.1 and 17.0.
#pragma once

#include <Trilinos_version.h>

#include <Tpetra_CrsMatrix.hpp>
#include <Tpetra_Map.hpp>
#include <Tpetra_MultiVector.hpp>

namespace Komvos {

/// The types that Tpetra's own templates have by default. Ours are compiled for all types that this Tpetra is.
using DefaultScalar = Tpetra::MultiVector<>::scalar_type;
using DefaultLocalOrdinal = Tpetra::Map<>::local_ordinal_type;
using DefaultGlobalOrdinal = Tpetra::Map<>::global_ordinal_type;
using DefaultNode = Tpetra::Map<>::node_type;

namespace Impl {

#if TRILINOS_MAJOR_MINOR_VERSION >= 140000
template <class Map>
std::size_t localLength(const Map& map) {
  return map.getLocalNumElements();
}
template <class Matrix>
std::size_t localRows(const Matrix& matrix) {
  return matrix.getLocalNumRows();
}
template <class Matrix>
std::size_t localEntries(const Matrix& matrix) {
  return matrix.getLocalNumEntries();
}
/// The values of a fill-complete matrix. getLocalMatrixDevice() would allocate a label at each call.
template <class Matrix>
auto deviceValues(const Matrix& matrix) {
  return matrix.getLocalValuesDevice(Tpetra::Access::ReadOnly);
}
/// A RowMatrix that forwards the functions that are not the same in all versions.
template <class RowMatrix>
class ForwardedCounts : public RowMatrix {
 public:
  std::size_t getLocalNumRows() const override { return forwarded().getLocalNumRows(); }
  std::size_t getLocalNumCols() const override { return forwarded().getLocalNumCols(); }
  std::size_t getLocalNumEntries() const override { return forwarded().getLocalNumEntries(); }
  std::size_t getLocalMaxNumRowEntries() const override { return forwarded().getLocalMaxNumRowEntries(); }
  typename RowMatrix::local_ordinal_type getBlockSize() const override { return forwarded().getBlockSize(); }

 private:
  virtual const RowMatrix& forwarded() const = 0;
};
#else
template <class Map>
std::size_t localLength(const Map& map) {
  return map.getNodeNumElements();
}
template <class Matrix>
std::size_t localRows(const Matrix& matrix) {
  return matrix.getNodeNumRows();
}
template <class Matrix>
std::size_t localEntries(const Matrix& matrix) {
  return matrix.getNodeNumEntries();
}
/// As above; the member is protected here, and a derived class may name it.
template <class Matrix>
struct ValuesOf : Matrix {
  static auto get(const Matrix& matrix) {
    return (matrix.*(&ValuesOf::valuesPacked_wdv)).getDeviceView(Tpetra::Access::ReadOnly);
  }
};
template <class Matrix>
auto deviceValues(const Matrix& matrix) {
  return ValuesOf<Matrix>::get(matrix);
}
/// As above.
template <class RowMatrix>
class ForwardedCounts : public RowMatrix {
 public:
  using Global = typename RowMatrix::global_ordinal_type;
  using Local = typename RowMatrix::local_ordinal_type;
  using Value = typename RowMatrix::scalar_type;
  std::size_t getNodeNumRows() const override { return forwarded().getNodeNumRows(); }
  std::size_t getNodeNumCols() const override { return forwarded().getNodeNumCols(); }
  std::size_t getNodeNumEntries() const override { return forwarded().getNodeNumEntries(); }
  std::size_t getNodeMaxNumRowEntries() const override { return forwarded().getNodeMaxNumRowEntries(); }
#ifdef TPETRA_ENABLE_DEPRECATED_CODE
  void getGlobalRowCopy(Global row, const Teuchos::ArrayView<Global>& columns, const Teuchos::ArrayView<Value>& values,
                        std::size_t& count) const override {
    forwarded().getGlobalRowCopy(row, columns, values, count);
  }
  void getLocalRowCopy(Local row, const Teuchos::ArrayView<Local>& columns, const Teuchos::ArrayView<Value>& values,
                       std::size_t& count) const override {
    forwarded().getLocalRowCopy(row, columns, values, count);
  }
  void getGlobalRowView(Global row, Teuchos::ArrayView<const Global>& columns,
                        Teuchos::ArrayView<const Value>& values) const override {
    forwarded().getGlobalRowView(row, columns, values);
  }
  void getLocalRowView(Local row, Teuchos::ArrayView<const Local>& columns,
                       Teuchos::ArrayView<const Value>& values) const override {
    forwarded().getLocalRowView(row, columns, values);
  }
#endif
  using RowMatrix::getGlobalRowCopy;
  using RowMatrix::getGlobalRowView;
  using RowMatrix::getLocalRowCopy;
  using RowMatrix::getLocalRowView;

 private:
  virtual const RowMatrix& forwarded() const = 0;
};
#endif

}  // namespace Impl
}  // namespace Komvos
