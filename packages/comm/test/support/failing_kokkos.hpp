/// \file failing_kokkos.hpp
/// Lets Kokkos run out of memory at a chosen place.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <cstring>
#include <new>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace KomvosTest {

/// While it lives, one of the allocations and kernels of Kokkos on this rank throws std::bad_alloc.
class FailingKokkos {
 public:
  /// \param passes so many before the one that fails
  /// \param onlyBytes if not 0: only allocations of about so much count
  /// \param onlyLabels only what has a label that begins so counts
  explicit FailingKokkos(int passes, std::uint64_t onlyBytes = 0, const char* onlyLabels = "") {
    left_ = passes;
    onlyBytes_ = onlyBytes;
    onlyLabels_ = onlyLabels;
    Kokkos::Tools::Experimental::set_allocate_data_callback(
        [](Kokkos::Tools::SpaceHandle, const char* label, const void*, uint64_t bytes) {
          constexpr std::uint64_t header = 256;  // more than Kokkos adds
          if (onlyBytes_ == 0 || (bytes >= onlyBytes_ && bytes < onlyBytes_ + header)) {
            pass(label);
          }
        });
    if (onlyBytes != 0) {
      return;
    }
    Kokkos::Tools::Experimental::set_begin_parallel_for_callback(
        [](const char* label, uint32_t, uint64_t*) { pass(label); });
  }
  ~FailingKokkos() {
    Kokkos::Tools::Experimental::set_allocate_data_callback(nullptr);
    Kokkos::Tools::Experimental::set_begin_parallel_for_callback(nullptr);
  }
  /// Whether something has failed, noticed or not.
  static bool hasFailed() { return left_ < 0; }
  FailingKokkos(const FailingKokkos&) = delete;
  FailingKokkos& operator=(const FailingKokkos&) = delete;

 private:
#if defined(__SANITIZE_ADDRESS__)
  // Kokkos calls after it has allocated, and loses what it has when the call throws.
  __lsan::ScopedDisabler disabler_;
#endif
  static void pass(const char* label) {
    if (std::strncmp(label, onlyLabels_, std::strlen(onlyLabels_)) == 0 && left_-- == 0) {
      throw std::bad_alloc();
    }
  }
  inline static int left_ = 0;
  inline static std::uint64_t onlyBytes_ = 0;
  inline static const char* onlyLabels_ = "";
};

}  // namespace KomvosTest
