// Which BLAS several threads may call.
#include <gtest/gtest.h>

#include <optional>

#include "Komvos_BlasThreads.hpp"

namespace {

using Komvos::Impl::threadsMayCallBlas;

TEST(BlasThreads, OnlyAnOpenBlasWithoutThreadsAndLocksServesOne) {
  EXPECT_TRUE(threadsMayCallBlas(std::nullopt, ""));
  EXPECT_TRUE(threadsMayCallBlas(1, "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Zen MAX_THREADS=64"));
  EXPECT_TRUE(threadsMayCallBlas(2, "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH USE_OPENMP Zen MAX_THREADS=64"));
  EXPECT_TRUE(threadsMayCallBlas(0, "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH USE_LOCKING Zen SINGLE_THREADED"));
  EXPECT_FALSE(threadsMayCallBlas(0, "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Zen SINGLE_THREADED"));
  EXPECT_FALSE(threadsMayCallBlas(0, ""));
}

}  // namespace
