// The test device itself: kernels wait until somebody waits for them, and its memory is out of reach.
#include <gtest/gtest.h>
#include <mpi.h>

#include <numeric>
#include <vector>

#include "support/test_device_kokkos.hpp"

namespace {

using namespace KomvosTest;
using Vector = Kokkos::View<int*, TestDevice::device_type>;
using Policy = Kokkos::RangePolicy<TestDevice>;

static_assert(!Kokkos::SpaceAccessibility<Kokkos::HostSpace, TestDeviceSpace>::accessible);
static_assert(!Kokkos::SpaceAccessibility<TestDevice, Kokkos::HostSpace>::accessible);
static_assert(Kokkos::SpaceAccessibility<TestDevice, TestDeviceSpace>::accessible);

/// A GPU whose kernels may read all memory of the host, and the host all of its (MI300A).
struct UnifiedDevice {
  using execution_space = UnifiedDevice;
  using memory_space = TestPinnedSpace;
  using device_type = Kokkos::Device<TestDevice, TestPinnedSpace>;
};

struct Count {
  Vector values;
  int first;
  void operator()(int i) const { values(i) = first + i; }
};

struct Sum {
  Vector values;
  void operator()(int i, int& sum) const { sum += values(i); }
};

struct RunningSum {
  Vector values, sums;
  void operator()(int i, int& sum, bool final) const {
    sum += values(i);
    if (final) {
      sums(i) = sum;
    }
  }
};

std::vector<int> onHost(const Vector& view) {
  std::vector<int> values(view.extent(0));
  copyNow(values.data(), view.data(), values.size() * sizeof(int));
  return values;
}

/// Without waiting for kernels.
std::vector<int> seenByMpi(const Vector& view) {
  const int* const data = static_cast<const int*>(TestDeviceSpace::alias(view.data()));
  return std::vector<int>(data, data + view.extent(0));
}

std::vector<int> counted(int length, int first) {
  std::vector<int> values(length);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST(TestDevice, DoesNotRunOnTheHostBecauseBothMayReadTheSameMemory) {
  EXPECT_TRUE((Kokkos::SpaceAccessibility<UnifiedDevice, Kokkos::HostSpace>::accessible));
  EXPECT_TRUE((Kokkos::SpaceAccessibility<Kokkos::HostSpace, UnifiedDevice::memory_space>::accessible));
  EXPECT_FALSE(Komvos::Impl::runsOnHost<UnifiedDevice>()) << "kernels would add to the same entries from both sides";
  EXPECT_FALSE(Komvos::Impl::runsOnHost<TestDevice>());
  EXPECT_TRUE(Komvos::Impl::runsOnHost<Kokkos::DefaultHostExecutionSpace>());
}

TEST(TestDevice, KernelsRunWhenTheirInstanceIsFenced) {
  const Vector a("a", 5);
  const Vector b("b", 5);
  const TestDevice one = TestDevice::makeInstance();
  const TestDevice two = TestDevice::makeInstance();
  Kokkos::parallel_for(Policy(one, 0, 5), Count{a, 10});
  Kokkos::parallel_for(Policy(two, 0, 5), Count{b, 20});
  EXPECT_EQ(1u, one.numQueued());
  EXPECT_EQ(std::vector<int>(5, 0), seenByMpi(a));
  one.fence();
  EXPECT_EQ(0u, one.numQueued());
  EXPECT_EQ(counted(5, 10), seenByMpi(a));
  EXPECT_EQ(std::vector<int>(5, 0), seenByMpi(b));
  TestDevice().fence();
  EXPECT_EQ(1u, two.numQueued()) << "the default instance is another one";
  Kokkos::fence();
  EXPECT_EQ(counted(5, 20), seenByMpi(b));
}

TEST(TestDevice, KernelsOfOneInstanceRunInOrder) {
  const Vector a("a", 3);
  Kokkos::parallel_for(Policy(0, 3), Count{a, 1});
  Kokkos::parallel_for(Policy(0, 2), Count{a, 7});
  EXPECT_EQ((std::vector<int>{7, 8, 3}), onHost(a));
}

TEST(TestDevice, QueuedCopiesWaitAndBlockingOnesDoNot) {
  const Vector a("a", 3);
  const Vector b("b", 3);
  const Kokkos::View<int*, Kokkos::HostSpace> host("host", 3);
  const TestDevice space;
  Kokkos::parallel_for(Policy(space, 0, 3), Count{a, 4});
  Kokkos::deep_copy(space, host, a);
  Kokkos::deep_copy(space, b, a);
  EXPECT_EQ(3u, space.numQueued());
  EXPECT_EQ(0, host(0));
  space.fence();
  EXPECT_EQ(4, host(0));
  EXPECT_EQ(counted(3, 4), seenByMpi(b));
  Kokkos::parallel_for(Policy(space, 0, 3), Count{a, 9});
  Kokkos::deep_copy(host, a);
  EXPECT_EQ(9, host(0));
}

TEST(TestDevice, ReducesAndScans) {
  const Vector a("a", 4);
  const Vector sums("sums", 4);
  int sum = 0;
  Kokkos::parallel_for(Policy(0, 4), Count{a, 1});
  Kokkos::parallel_reduce(Policy(0, 4), Sum{a}, sum);
  EXPECT_EQ(10, sum);
  Kokkos::parallel_scan(Policy(0, 4), RunningSum{a, sums});
  EXPECT_EQ((std::vector<int>{1, 3, 6, 10}), onHost(sums));
  const Kokkos::View<int, Kokkos::HostSpace> later("later");
  Kokkos::parallel_reduce(Policy(0, 4), Sum{a}, later);
  EXPECT_EQ(0, later());
  TestDevice().fence();
  EXPECT_EQ(10, later());
}

TEST(TestDevice, CopiesPartsOfMatrices) {
  using Matrix = Kokkos::View<int**, Kokkos::LayoutLeft, TestDevice::device_type>;
  const Matrix wide("wide", 5, 2);
  const Matrix narrow("narrow", 3, 2);
  Kokkos::deep_copy(wide, 1);
  Kokkos::deep_copy(narrow, 2);
  Kokkos::deep_copy(Kokkos::subview(wide, std::make_pair(1, 4), Kokkos::ALL()), narrow);
  const auto host = Kokkos::create_mirror(wide);
  Kokkos::deep_copy(host, wide);
  EXPECT_EQ((std::vector<int>{1, 2, 2, 2, 1, 1, 2, 2, 2, 1}), std::vector<int>(host.data(), host.data() + 10));
}

TEST(TestDevice, MemoryIsGivenBackAfterTheKernelsThatUseIt) {
  const std::size_t before = TestDeviceSpace::allocatedBytes();
  {
    const Vector a("a", 3);
    EXPECT_GT(TestDeviceSpace::allocatedBytes(), before);
    Kokkos::parallel_for(Policy(0, 3), Count{a, 1});
  }
  EXPECT_EQ(0u, TestDevice().numQueued());
  EXPECT_EQ(before, TestDeviceSpace::allocatedBytes());
}

TEST(TestDevice, NewMemoryIsNoNumber) {
  const Kokkos::View<double*, TestDeviceSpace> a(Kokkos::view_alloc("a", Kokkos::WithoutInitializing), 1);
  double value = 0;
  copyNow(&value, a.data(), sizeof(double));
  EXPECT_NE(value, value);
}

TEST(TestDeviceDeathTest, HostCodeThatTouchesDeviceMemoryEnds) {
  testing::FLAGS_gtest_death_test_style = "fast";
  const Vector a("a", 3);
  EXPECT_DEATH(static_cast<void>(a(0)), "host code accesses a View in device memory");
  const volatile int* const data = a.data();
  EXPECT_DEATH(static_cast<void>(*data), "");
  EXPECT_DEATH(*const_cast<volatile int*>(data) = 1, "");
  Kokkos::parallel_for(Policy(0, 3), Count{a, 1});
  TestDevice().fence();
  EXPECT_DEATH(static_cast<void>(*data), "") << "the kernel has run";
}

struct Read {
  const int* data;
  Vector result;
  void operator()(int i) const { result(i) = data[i]; }
};

TEST(TestDeviceDeathTest, AKernelThatTouchesPinnedMemoryEnds) {
  testing::FLAGS_gtest_death_test_style = "fast";
  const Kokkos::View<int*, TestPinnedSpace> pinned("pinned", 1);
  const Vector a("a", 1);
  pinned(0) = 7;
  const TestDevice space;
  Kokkos::deep_copy(space, a, pinned);
  pinned(0) = 8;
  Kokkos::deep_copy(space, pinned, a);
  space.fence();
  EXPECT_EQ(8, pinned(0)) << "queued copies read what is there when they run";
  Kokkos::parallel_for(Policy(space, 0, 1), Read{a.data(), a});
  space.fence();
  EXPECT_DEATH(
      {
        Kokkos::parallel_for(Policy(space, 0, 1), Read{pinned.data(), a});
        space.fence();
      },
      "");
}

TEST(TestDeviceDeathTest, MpiGetsDeviceMemoryOnlyWhereItIsGpuAware) {
  testing::FLAGS_gtest_death_test_style = "fast";
  const Vector a("a", 1);
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT_DEATH(MPI_Send_init(a.data(), 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request), "MPI is not GPU-aware");
  EXPECT_DEATH(MPI_Recv_init(a.data(), 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request), "MPI is not GPU-aware");
}

TEST(TestDevice, GpuAwareMpiReadsAndWritesItWithoutWaitingForKernels) {
  const Vector a("a", 2);
  const Vector b("b", 2);
  letMpiUseDeviceMemory(true);
  takeMpiAddresses();
  MPI_Request requests[2];
  MPI_Recv_init(b.data(), 2, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[0]);
  MPI_Send_init(a.data(), 2, MPI_INT, 0, 0, MPI_COMM_SELF, &requests[1]);
  const MpiAddresses given = takeMpiAddresses();
  EXPECT_EQ(2, given.onDevice);
  EXPECT_EQ(0, given.onHost);
  MPI_Start(&requests[0]);
  EXPECT_EQ(std::vector<int>(2, -1), seenByMpi(b)) << "it may be overwritten from now on";
  Kokkos::parallel_for(Policy(0, 2), Count{a, 5});
  MPI_Start(&requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  EXPECT_EQ(std::vector<int>(2, 0), seenByMpi(b)) << "the kernel has not run";
  TestDevice().fence();
  MPI_Startall(2, requests);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  EXPECT_EQ(counted(2, 5), seenByMpi(b));
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  letMpiUseDeviceMemory(false);
}

}  // namespace
