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
#endif

}  // namespace Impl
}  // namespace Komvos
