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
  List a, b, ones;
  template <class At, class Value>
  KOKKOS_INLINE_FUNCTION void rows(const At& at, Value* sums) const {
    sums[0] += at(a) * at(b);
    sums[1] += at(b);
    sums[2] += at(ones);
    at.write(a, at(a) + at(ones));
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
      const List as = deviceList<Memory>("a", a), bs = deviceList<Memory>("b", b),
                 ones = deviceList<Memory>("ones", std::vector<double>(n, 1.0));
      const Komvos::Impl::PartialDots<double, Memory> partial(n);
      EXPECT_EQ(expected, runRowsInOrder(Space(), "dots", n, ThreeDots{as, bs, ones}, partial, byTeams))
          << n << " rows";
      const auto written = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), as);
      for (int i = 0; i < n; ++i) {
        ASSERT_EQ(a[i] + 1, written(i)) << n << " rows";
      }
    }
  }
}

}  // namespace
