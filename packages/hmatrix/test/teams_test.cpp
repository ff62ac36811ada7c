/// \file teams_test.cpp
/// How products are divided among the teams of a GPU, and that they are those of one thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "Komvos_Panels_def.hpp"
#include "Komvos_TeamPlan.hpp"

namespace Komvos::Impl {
namespace {

using Space = Kokkos::DefaultExecutionSpace;
using memory_space = BufferSpace<Space>::type;

constexpr int numInputs = 30000;

/// Panels of a few bytes and of many, of several formats, of runs of one column and of thousands; one without strips.
PanelLayout unevenLayout() {
  PanelLayout layout;
  int output = 0;
  const auto begin = [&](int rows) {
    layout.beginPanel(output, rows);
    output += rows;
  };
  const auto runs = [&](int count, int columns, double scale) {
    const ValueFormat format = layout.strips().back().format;
    scale /= format == ValueFormat::Whole ? 1 : largestInteger(format);  // so that all values are of about one size
    for (int r = 0; r < count; ++r) {
      layout.addRun((r * 37 + 5 * columns) % (numInputs - columns), columns, scale);
    }
  };
  begin(64);  // a cluster of many unknowns
  layout.beginStrip(0, 64, ValueFormat::Whole);
  runs(1, 20000, 1);
  begin(5);
  begin(48);
  layout.beginStrip(0, 48, ValueFormat::Bytes2);
  runs(900, 3, 0.5);
  layout.beginStrip(16, 31, ValueFormat::Bytes3);
  runs(20, 33, 2);
  runs(20, 33, -0.25);
  layout.beginStrip(0, 1, ValueFormat::Bytes1);
  runs(2000, 1, 3);
  layout.beginStrip(47, 1, ValueFormat::Whole);
  runs(1, 9000, 1);
  begin(7);
  layout.beginStrip(0, 7, ValueFormat::Bytes5);
  runs(1, 1, 1);
  layout.finish();
  return layout;
}

TEST(TeamPlan, hasEachColumnOnceAndTasksOfAboutEqualBytes) {
  const PanelLayout layout = unevenLayout();
  const TeamPlan plan(layout);
  const std::int64_t wanted =
      std::clamp(layout.bytesOfValues() / TeamPlan::manyTasks, TeamPlan::fewestBytes, TeamPlan::mostBytes);
  std::vector<int> nextColumn(layout.strips().size(), 0);
  std::vector<int> tasksOf(layout.panels().size(), 0);
  std::vector<int> inputs;
  std::vector<double> scales;
  for (const PanelRun& run : layout.runs()) {
    for (int c = 0; c < run.columns; ++c) {
      inputs.push_back(run.input + c);
      scales.push_back(run.scale);
    }
  }
  std::int64_t columnsBefore = 0;
  int part = 0;
  for (const TeamTask& task : plan.tasks()) {
    ASSERT_EQ(part, task.firstPart);
    ++tasksOf[task.panel];
    std::int64_t bytes = 0;
    for (; part < task.lastPart; ++part) {
      const StripPart& one = plan.parts()[part];
      const PanelStrip& strip = layout.strips()[one.strip];
      ASSERT_GE(one.strip, layout.panels()[task.panel].firstStrip);
      ASSERT_LT(one.strip, layout.panels()[task.panel].lastStrip);
      ASSERT_EQ(nextColumn[one.strip], one.column);
      ASSERT_EQ(columnsBefore, one.firstColumn);
      ASSERT_GT(one.columns, 0);
      nextColumn[one.strip] += one.columns;
      columnsBefore += one.columns;
      bytes += static_cast<std::int64_t>(strip.rows) * one.columns * bytesOf<double>(strip.format);
      const int* const place = plan.places().data() + one.firstColumn;
      for (int c = 0; c < one.columns; ++c) {
        ASSERT_EQ(inputs[one.firstColumn + c], place[c]);
        ASSERT_EQ(scales[one.firstColumn + c], one.firstScale < 0 ? one.scale : plan.scales()[one.firstScale + c]);
        ASSERT_TRUE(one.place < 0 || one.place + c == place[c]);
      }
    }
    EXPECT_LE(bytes, wanted);
  }
  for (std::size_t s = 0; s < layout.strips().size(); ++s) {
    EXPECT_EQ(layout.strips()[s].columns, nextColumn[s]);
  }
  EXPECT_EQ((20000 * 64 * 8 + wanted - 1) / wanted, tasksOf[0]);
  EXPECT_EQ(1, tasksOf[1]);  // it has no columns, but values to set
  EXPECT_EQ(1, tasksOf[3]);
  int partials = 0;
  for (const SharedPanel& shared : plan.sharedPanels()) {
    EXPECT_EQ(partials, shared.firstPartial);
    EXPECT_EQ(tasksOf[shared.panel], shared.lastPartial - shared.firstPartial);
    partials = shared.lastPartial;
  }
  EXPECT_EQ(partials, plan.numPartials());
  EXPECT_EQ(2u, plan.sharedPanels().size());
}

template <class T>
Kokkos::View<T*, memory_space> onDevice(const std::vector<T>& values) {
  return deviceList<memory_space>("values", values);
}
std::vector<double> toHost(const Kokkos::View<double*, memory_space>& view) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  return {host.data(), host.data() + host.size()};
}

/// x^T times all panels, by teams and by a thread for each place; without some columns.
void expectTransposed(Panels<double, Space>& panels, const PanelLayout& layout, int outputs, int vectors,
                      const std::vector<double>& x) {
  const std::vector<double> some(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(outputs) * vectors);
  const auto input = onDevice(some);
  for (const bool add : {false, true}) {
    const auto transposedBy = [&](PanelKernel kernel) {
      const auto y = onDevice(std::vector<double>(static_cast<std::size_t>(numInputs) * vectors, 0.5));
      panels.prepareTransposed(layout, kernel, numInputs, {3, 20001, 20002});
      panels.multiplyTransposed(Space(), kernel, vectors, input.data(), y.data(), add);
      Space().fence();
      return toHost(y);
    };
    const auto found = transposedBy(PanelKernel::Teams);
    EXPECT_EQ(found, transposedBy(PanelKernel::Teams));
    if constexpr (runsOnHost<Space>()) {
      const auto expected = transposedBy(PanelKernel::Threads);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(expected[i], found[i], 1e-11) << "place " << i / vectors << " of " << vectors << " vectors";
      }
    }
  }
}

TEST(TeamProduct, isThatOfOneThreadAlsoTransposedWithTheSameBitsEachTime) {
  const PanelLayout layout = unevenLayout();
  const int outputs = layout.panels().back().output + layout.panels().back().rows;
  const auto bytes = Panels<double, Space>::allocate("bytes", layout);
  const auto host = Kokkos::create_mirror_view(bytes);
  std::mt19937 generator(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int s = 0; s < static_cast<int>(layout.strips().size()); ++s) {
    const PanelStrip& strip = layout.strips()[s];
    const double scale = strip.format == ValueFormat::Whole ? 1 : 1 / largestInteger(strip.format);
    std::vector<double> column(strip.rows);
    for (int c = 0; c < strip.columns; ++c) {
      std::generate(column.begin(), column.end(), [&] { return uniform(generator); });
      storeColumn(layout, host.data(), {s, c}, 0, strip.rows, column.data(), 1, scale);
    }
  }
  Kokkos::deep_copy(bytes, host);
  std::vector<double> scales(outputs);
  std::generate(scales.begin(), scales.end(), [&] { return uniform(generator); });
  for (const bool scaled : {false, true}) {
    Panels<double, Space> panels(layout, bytes, scaled ? onDevice(scales) : Kokkos::View<double*, memory_space>());
    panels.prepareTeams(layout);
    for (const int vectors : {1, 2, 4, 8, 16}) {
      std::vector<double> x(static_cast<std::size_t>(numInputs) * vectors);
      std::generate(x.begin(), x.end(), [&] { return uniform(generator); });
      const auto input = onDevice(x);
      for (const bool add : {false, true}) {
        const auto productBy = [&](PanelKernel kernel) {
          const auto y = onDevice(std::vector<double>(static_cast<std::size_t>(outputs) * vectors, 0.5));
          panels.multiply(Space(), kernel, vectors, input.data(), y.data(), add);
          Space().fence();
          return toHost(y);
        };
        const auto expected = productBy(PanelKernel::Threads), found = productBy(PanelKernel::Teams);
        EXPECT_EQ(found, productBy(PanelKernel::Teams));
        double largest = 0, difference = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) {
          largest = std::max(largest, std::abs(expected[i]));
          difference = std::max(difference, std::abs(expected[i] - found[i]));
        }
        EXPECT_LE(difference, 1e-12 * largest) << vectors << " vectors";
        EXPECT_GT(largest, 0);
      }
      expectTransposed(panels, layout, outputs, vectors, x);
    }
  }
}

}  // namespace
}  // namespace Komvos::Impl
