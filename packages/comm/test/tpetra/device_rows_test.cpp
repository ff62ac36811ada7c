// Rows as GPUs multiply them, by the default execution space, on the host, too, and on the test device.
#include <gtest/gtest.h>

#include <KokkosSparse_CrsMatrix.hpp>
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "Komvos_DeviceRows.hpp"
#include "exchange/device_under_test.hpp"
#include "support/mpi_support.hpp"
#include "support/test_patterns.hpp"

namespace {

using namespace Komvos::Impl;
using Komvos::Overlap;
using KomvosTest::Random;
using Space = KomvosTest::DeviceUnderTest::execution_space;
using Memory = BufferSpace<Space>::type;
using Graph =
    KokkosSparse::CrsMatrix<double, int, Kokkos::Device<Space, Memory>, void, std::size_t>::StaticCrsGraphType;
using Doubles = Kokkos::View<double*, Memory>;

/// Rows of lengths around `average`, some of them empty, one long; columns below numSame are owned.
struct Rows {
  static constexpr int count = 700, numSame = 500, columns = 620;
  std::vector<std::size_t> offset{0};
  std::vector<int> entries;
  std::vector<double> values;

  explicit Rows(int average) {
    Random random(static_cast<unsigned>(average));
    for (int row = 0; row < count; ++row) {
      const int length = row % 13 == 0 ? 0 : row == 77 ? 600 : 1 + random.below(2 * average);
      for (int k = 0; k < length; ++k) {
        entries.push_back(random.below(row % 3 == 0 ? numSame : columns));
        values.push_back(random.below(2001) / 1000.0 - 1);
      }
      offset.push_back(entries.size());
    }
  }
  Graph graph() const { return Graph(deviceList<Memory>("entries", entries), deviceList<Memory>("offset", offset)); }
};

std::vector<double> toHost(const Doubles& view) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  return {host.data(), host.data() + host.size()};
}

TEST(DeviceRows, MultiplyAsALoopDoesInAnyNumberOfStages) {
  for (const int average : {1, 4, 20, 60, 250}) {  // 1 to 32 lanes
    const Rows rows(average);
    const Graph graph = rows.graph();
    std::vector<RowClass> ghostClasses(Rows::columns - Rows::numSame, RowClass::offNode);
    std::fill_n(ghostClasses.begin(), 60, RowClass::onNode);
    const DeviceRows<double, Graph, Space> device(graph, Rows::numSame, ghostClasses);
    const Doubles values = deviceList<Memory>("values", rows.values);
    for (const int width : {1, 2, 3, 5, 8}) {
      std::vector<double> x(static_cast<std::size_t>(Rows::columns) * width),
          b(static_cast<std::size_t>(Rows::count) * width);
      for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = std::sin(0.3 * static_cast<double>(i));
      }
      for (std::size_t i = 0; i < b.size(); ++i) {
        b[i] = std::cos(0.2 * static_cast<double>(i));
      }
      const Doubles xs = deviceList<Memory>("x", x), bs = deviceList<Memory>("b", b);
      const double alpha = -1.5, beta = 0.25;
      std::vector<std::vector<double>> found;
      for (const Overlap overlap : {Overlap::none, Overlap::interior, Overlap::byNode}) {
        const Doubles y("y", b.size());
        const std::size_t stride = Rows::count;
        const RowResult<double> result{{bs.data(), stride}, {y.data(), stride}, alpha, beta};
        ProductInput<double> input{xs.data(), xs.data() + Rows::numSame, width > 1 ? xs.data() : nullptr, width};
        for (const RowClass stage : {RowClass::local, RowClass::onNode, RowClass::offNode}) {
          device.multiply(Space(), overlap, stage, values.data(), input, result, [] {});
        }
        Space().fence();
        found.push_back(toHost(y));
      }
      EXPECT_EQ(found[0], found[1]);
      EXPECT_EQ(found[0], found[2]);
      for (int row = 0; row < Rows::count; ++row) {
        for (int w = 0; w < width; ++w) {
          double sum = 0, sizes = 0;
          for (std::size_t k = rows.offset[row]; k < rows.offset[row + 1]; ++k) {
            const double term = rows.values[k] * x[static_cast<std::size_t>(rows.entries[k]) * width + w];
            sum += term;
            sizes += std::abs(term);
          }
          const std::size_t at = static_cast<std::size_t>(w) * Rows::count + row;
          ASSERT_NEAR(beta * b[at] + alpha * sum, found[0][at], 1e-15 * (sizes * average + 1))
              << "row " << row << ", column " << w << " of " << width << ", " << average << " entries a row";
        }
      }
    }
  }
}

}  // namespace
