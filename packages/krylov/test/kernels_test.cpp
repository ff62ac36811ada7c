// Dots of whole vectors, which every rank adds up by itself: in one order, by one thread or by a team.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "Komvos_BiCGStabKernels.hpp"
#include "Komvos_DeviceList.hpp"

namespace {

using namespace Komvos::Impl;
using Space = Kokkos::DefaultExecutionSpace;
using Memory = BufferSpace<Space>::type;
using List = Kokkos::View<double*, Memory>;

/// Small whole numbers: their sums are exact in any order. Also writes, as a fused kernel does.
struct ThreeDots {
  using scalar = double;
  static constexpr int dots = 3;
  List a, b;
  KOKKOS_INLINE_FUNCTION void operator()(int i, double* sums) const {
    sums[0] += a(i) * b(i);
    sums[1] += b(i);
    sums[2] += 1;
    a(i) += 1;
  }
};

TEST(DotsInOrder, HaveEachRowOnceByOneThreadAndByTeams) {
  for (const int n : {0, 1, 127, 128, 1000, 1024, 1025, 70000}) {
    std::vector<double> a(n), b(n);
    std::array<double, 3> expected{};
    for (int i = 0; i < n; ++i) {
      a[i] = i % 7 - 3;
      b[i] = i % 11;
      expected[0] += a[i] * b[i];
      expected[1] += b[i];
      expected[2] += 1;
    }
    for (const bool byTeams : {false, true}) {
      const List as = deviceList<Memory>("a", a), bs = deviceList<Memory>("b", b);
      Kokkos::View<double*, Memory> partial;
      EXPECT_EQ(expected, runRowsInOrder(Space(), "dots", n, ThreeDots{as, bs}, partial, byTeams)) << n << " rows";
      const auto written = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), as);
      for (int i = 0; i < n; ++i) {
        ASSERT_EQ(a[i] + 1, written(i)) << n << " rows";
      }
    }
  }
}

}  // namespace
