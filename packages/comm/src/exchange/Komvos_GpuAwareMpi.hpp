/// \file Komvos_GpuAwareMpi.hpp
/// Whether MPI may be given device pointers.
#pragma once

namespace Komvos {

/// KOMVOS_GPU_AWARE_MPI if it is set, else what Tpetra assumes: TPETRA_ASSUME_GPU_AWARE_MPI (with Trilinos 13.2
/// TPETRA_ASSUME_CUDA_AWARE_MPI), or how Trilinos was configured. An answer of this rank: planHalo() makes sure that
/// all ranks have the same.
/// \throws BadInput if the environment cannot be used
bool gpuAwareMpi();

}  // namespace Komvos
