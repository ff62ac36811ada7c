/// \file Komvos_ForAllOnHost.hpp
/// Work on blocks by all threads of the host.
#pragma once

#include <Kokkos_Core.hpp>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>

namespace Komvos::Impl {

/// work(i) for 0 <= i < n, by all threads of the host, as they become free. Rethrows the first error.
template <class Work>
void forAllOnHost(std::size_t n, const Work& work) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  std::exception_ptr error;
  std::mutex mutex;
  std::atomic<bool> stop{false};
  using Policy = Kokkos::RangePolicy<Host, Kokkos::Schedule<Kokkos::Dynamic>, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for("Komvos::HMatrix::make", Policy(0, static_cast<std::int64_t>(n)).set_chunk_size(1),
                       [&](std::int64_t i) {
                         if (stop) {
                           return;
                         }
                         try {
                           work(static_cast<std::size_t>(i));
                         } catch (...) {
                           const std::lock_guard<std::mutex> lock(mutex);
                           error = error ? error : std::current_exception();
                           stop = true;
                         }
                       });
  Kokkos::fence();
  if (error) {
    std::rethrow_exception(error);
  }
}

}  // namespace Komvos::Impl
