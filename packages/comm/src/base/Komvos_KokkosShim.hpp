/// \file Komvos_KokkosShim.hpp
/// What differs between Kokkos versions and back ends, in one place.
#pragma once

#include <Kokkos_Core.hpp>
#include <string>
#include <type_traits>

namespace Komvos::Impl {

/// Where our own large arrays for an execution space live: plain device memory, never managed memory.
template <class ExecutionSpace>
struct BufferSpace {
  using type = typename ExecutionSpace::memory_space;
  using pinned = Kokkos::HostSpace;
};

#ifdef KOKKOS_ENABLE_CUDA
template <>
struct BufferSpace<Kokkos::Cuda> {
  using type = Kokkos::CudaSpace;
  using pinned = Kokkos::CudaHostPinnedSpace;
};
#endif

#ifdef KOKKOS_ENABLE_HIP
#if KOKKOS_VERSION >= 40000
namespace Hip = Kokkos;
#else
namespace Hip = Kokkos::Experimental;
#endif
template <>
struct BufferSpace<Hip::HIP> {
  using type = Hip::HIPSpace;
  using pinned = Hip::HIPHostPinnedSpace;
};
#endif

/// Whether host code may read and write the buffers of this execution space.
template <class ExecutionSpace>
constexpr bool hostCanAccessBuffers() {
  return Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename BufferSpace<ExecutionSpace>::type>::accessible;
}

/// A region in the profile of a Kokkos tool, while this object lives.
class ProfilingRegion {
 public:
  explicit ProfilingRegion(const std::string& name) { Kokkos::Profiling::pushRegion(name); }
  ~ProfilingRegion() { Kokkos::Profiling::popRegion(); }
  ProfilingRegion(const ProfilingRegion&) = delete;
  ProfilingRegion& operator=(const ProfilingRegion&) = delete;
};

/// The default instance of an execution space, once Kokkos is initialized. From Kokkos 4 on, making one allocates; it
/// is never destroyed, for that must not happen after Kokkos is finalized.
template <class ExecutionSpace>
const ExecutionSpace& defaultSpace() {
  static const auto* const space = new ExecutionSpace();
  return *space;
}

/// Whether kernels of this execution space run on the host. Where its memory is, is another question: the host may
/// read memory that only a device computes on (unified memory).
template <class ExecutionSpace>
KOKKOS_INLINE_FUNCTION constexpr bool runsOnHost() {
  return Kokkos::SpaceAccessibility<ExecutionSpace, Kokkos::HostSpace>::accessible &&
         std::is_same<typename ExecutionSpace::memory_space, Kokkos::HostSpace>::value;
}

/// Reads what other threads may be writing by atomic operations; orders nothing else.
template <class T>
KOKKOS_INLINE_FUNCTION T atomicLoad(const T* place) {
#if defined(KOKKOS_VERSION) && KOKKOS_VERSION >= 40000
  return Kokkos::atomic_load(place);
#else
  return Kokkos::Impl::atomic_load(const_cast<T*>(place), Kokkos::Impl::memory_order_relaxed);
#endif
}

/// Writes what other threads read by atomicLoad(), or write, too. Kokkos 3's atomic_exchange reads before, plainly.
template <class T>
KOKKOS_INLINE_FUNCTION void atomicStore(T* place, T value) {
#if defined(KOKKOS_VERSION) && KOKKOS_VERSION >= 40000
  Kokkos::atomic_store(place, value);
#else
  Kokkos::Impl::atomic_store(place, value, Kokkos::Impl::memory_order_relaxed);
#endif
}

/// A bound of a range that Kokkos takes as it is. For one of a type that its own index converts to, Kokkos 4 writes a
/// message, which allocates, before it looks whether the bound is wrong.
struct RangeBound {
  int value;
  operator int() const { return value; }
};

/// The indices [first, last), for kernels on `space`.
template <class ExecutionSpace>
Kokkos::RangePolicy<ExecutionSpace> range(const ExecutionSpace& space, int first, int last) {
  return Kokkos::RangePolicy<ExecutionSpace>(space, RangeBound{first}, RangeBound{last});
}

/// Fences one execution space, with a label that says why (labels are new in Kokkos 3.5). Only tools see labels;
/// without one, none is made, for a string allocates.
template <class ExecutionSpace>
void fence(const ExecutionSpace& space, const char* why) {
#if defined(KOKKOS_VERSION) && KOKKOS_VERSION >= 30500
  space.fence(Kokkos::Tools::profileLibraryLoaded() ? std::string(why) : std::string());
#else
  static_cast<void>(why);
  space.fence();
#endif
}

}  // namespace Komvos::Impl
