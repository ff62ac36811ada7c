/// \file Komvos_BlockBatchesTypes.cpp
/// BlockBatches, compiled once for the scalars that HMatrix has.
#include "Komvos_BlockBatches_def.hpp"

namespace Komvos::Impl {

template class BlockBatches<float, Kokkos::DefaultExecutionSpace>;
template class BlockBatches<double, Kokkos::DefaultExecutionSpace>;
template class BlockBatches<std::complex<double>, Kokkos::DefaultExecutionSpace>;

}  // namespace Komvos::Impl
