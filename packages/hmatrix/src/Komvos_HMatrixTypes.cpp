/// \file Komvos_HMatrixTypes.cpp
/// HMatrix, compiled once for the scalars and execution spaces that are promised.
#include "Komvos_HMatrixFile_def.hpp"
#include "Komvos_HMatrix_def.hpp"

namespace Komvos {

#define KOMVOS_INSTANTIATE_HMATRIX(SPACE) \
  template class HMatrix<float, SPACE>;   \
  template class HMatrix<double, SPACE>;  \
  template class HMatrix<std::complex<double>, SPACE>;

KOMVOS_INSTANTIATE_HMATRIX(Kokkos::DefaultExecutionSpace)
#undef KOMVOS_INSTANTIATE_HMATRIX

}  // namespace Komvos
