/// \file failing_kokkos.hpp
/// Lets Kokkos fail at a chosen place.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

#include "Komvos_Error.hpp"

namespace KomvosTest {

/// As no library throws it: what Kokkos throws where it lacks memory differs from version to version.
struct KokkosFailure : std::exception {
  const char* what() const noexcept override { return "Kokkos fails on purpose"; }
};

/// What may fail.
enum class Failing { everything, allocations };

/// While it lives, one of the allocations, kernels and copies of Kokkos on this rank throws KokkosFailure.
class FailingKokkos {
 public:
  /// \param passes so many before the one that fails
  /// \param onlyBytes if not 0: only allocations of about so much count
  /// \param onlyLabels only what has a label that begins so counts
  explicit FailingKokkos(int passes, std::uint64_t onlyBytes = 0, const char* onlyLabels = "",
                         Failing what = Failing::everything) {
    left_ = passes;
    onlyBytes_ = onlyBytes;
    onlyLabels_ = onlyLabels;
    namespace Tools = Kokkos::Tools::Experimental;
    Tools::set_allocate_data_callback([](Kokkos::Tools::SpaceHandle, const char* label, const void*, uint64_t bytes) {
      constexpr std::uint64_t header = 256;  // more than Kokkos adds
      if (onlyBytes_ == 0 || (bytes >= onlyBytes_ && bytes < onlyBytes_ + header)) {
        pass(label);
      }
    });
    if (onlyBytes != 0 || what == Failing::allocations) {
      return;
    }
    const auto kernel = [](const char* label, uint32_t, uint64_t*) { pass(label); };
    Tools::set_begin_parallel_for_callback(kernel);
    Tools::set_begin_parallel_reduce_callback(kernel);
    Tools::set_begin_parallel_scan_callback(kernel);
    Tools::set_begin_deep_copy_callback([](Kokkos::Tools::SpaceHandle, const char* label, const void*,
                                           Kokkos::Tools::SpaceHandle, const char*, const void*,
                                           uint64_t) { pass(label); });
  }
  ~FailingKokkos() {
    namespace Tools = Kokkos::Tools::Experimental;
    Tools::set_allocate_data_callback(nullptr);
    Tools::set_begin_parallel_for_callback(nullptr);
    Tools::set_begin_parallel_reduce_callback(nullptr);
    Tools::set_begin_parallel_scan_callback(nullptr);
    Tools::set_begin_deep_copy_callback(nullptr);
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
      throw KokkosFailure();
    }
  }
  inline static int left_ = 0;
  inline static std::uint64_t onlyBytes_ = 0;
  inline static const char* onlyLabels_ = "";
};

/// What some work threw on this rank.
enum class Thrown { nothing, failure, error };

/// Expects an error of ours on all ranks, or nothing on any. \return whether it was an error
/// \note Collective on MPI_COMM_WORLD.
inline bool expectErrorOnAllOrNone(Thrown thrown) {
  EXPECT_NE(Thrown::failure, thrown);
  const int here = thrown == Thrown::nothing ? 0 : 1;
  int onAny = 0;
  MPI_Allreduce(&here, &onAny, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  EXPECT_EQ(onAny, here) << "an error on all ranks, or on none";
  return onAny != 0;
}

/// Does work() with the first allocation, kernel or copy of Kokkos failing on one rank, then with the second one, and
/// so on, until work() is done before. After each, calls check(what it threw here).
/// \param guilty the rank
/// \param labels only what has a label that begins so fails
/// \param what only allocations, or kernels and copies, too
/// \return how often something failed
/// \note Collective on MPI_COMM_WORLD.
template <class Work, class Check>
int failInTurn(int guilty, const char* labels, const Work& work, const Check& check,
               Failing what = Failing::everything) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int passes = 0;; ++passes) {
    Thrown thrown = Thrown::nothing;
    try {
      const auto failing = rank == guilty ? std::make_unique<FailingKokkos>(passes, 0, labels, what) : nullptr;
      work();
    } catch (const KokkosFailure&) {
      thrown = Thrown::failure;
    } catch (const Komvos::Error&) {
      thrown = Thrown::error;
    }
    int failed = rank == guilty && FailingKokkos::hasFailed() ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    check(thrown);
    if (failed == 0) {
      return passes;
    }
  }
}

}  // namespace KomvosTest
