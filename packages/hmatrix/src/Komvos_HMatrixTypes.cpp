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
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP) || defined(KOKKOS_ENABLE_SYCL)
KOMVOS_INSTANTIATE_HMATRIX(Kokkos::DefaultHostExecutionSpace)
#endif
#undef KOMVOS_INSTANTIATE_HMATRIX

}  // namespace Komvos
