/// \file Komvos_LargeArray.hpp
/// Arrays of many megabytes.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <string>
#include <type_traits>

#include "Komvos_HugePages.hpp"

namespace Komvos::Impl {

/// An array that is not initialized, in plain memory of the host in large pages where the system has some: to touch new
/// memory for the first time, page by page, takes longer than to copy it.
template <class View>
View largeArray(const std::string& label, std::size_t size) {
  const View array(Kokkos::view_alloc(label, Kokkos::WithoutInitializing), size);
  if constexpr (std::is_same_v<typename View::memory_space, Kokkos::HostSpace>) {
    adviseHugePages(array.data(), size * sizeof(typename View::value_type));
  }
  return array;
}

}  // namespace Komvos::Impl
