/// \file Komvos_DeviceList.hpp
/// Lists made on the host, for use in kernels.
#pragma once

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

namespace Komvos::Impl {

/// A copy of `values` in a memory space. Many are short or empty, so none of Kokkos' work is done for nothing.
template <class MemorySpace, class T>
Kokkos::View<T*, MemorySpace> deviceList(const std::string& label, const std::vector<T>& values) {
  if (values.empty()) {
    return {};
  }
  Kokkos::View<T*, MemorySpace> list(Kokkos::view_alloc(label, Kokkos::WithoutInitializing), values.size());
  if constexpr (std::is_same_v<MemorySpace, Kokkos::HostSpace>) {
    std::copy(values.begin(), values.end(), list.data());
  } else {
    Kokkos::deep_copy(list, Kokkos::View<const T*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
                                values.data(), values.size()));
  }
  return list;
}

}  // namespace Komvos::Impl
