/// \file Komvos_DeviceList.hpp
/// Lists made on the host, for use in kernels.
#pragma once

#include <Kokkos_Core.hpp>
#include <string>
#include <vector>

namespace Komvos::Impl {

/// A copy of `values` in a memory space.
template <class MemorySpace, class T>
Kokkos::View<T*, MemorySpace> deviceList(const std::string& label, const std::vector<T>& values) {
  Kokkos::View<T*, MemorySpace> list(Kokkos::view_alloc(label, Kokkos::WithoutInitializing), values.size());
  Kokkos::deep_copy(list, Kokkos::View<const T*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
                              values.data(), values.size()));
  return list;
}

}  // namespace Komvos::Impl
