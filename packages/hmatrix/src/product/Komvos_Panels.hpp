/// \file Komvos_Panels.hpp
/// Many small dense matrices that are multiplied at once.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "Komvos_DeviceList.hpp"
#include "Komvos_KokkosShim.hpp"
#include "Komvos_StripKernel.hpp"

namespace Komvos::Impl {

/// Neighbouring columns of a strip that are multiplied by neighbouring values of the input.
struct PanelRun {
  int input, columns;
};

/// A dense matrix [rows x columns of its runs], column by column. Its product is added to `rows` values of the output
/// from `row` of its panel on.
struct PanelStrip {
  int row, rows;
  int firstRun, lastRun;
  std::int64_t firstValue;
};

/// All that is added to values [output, output + rows) of the output: nobody else writes there.
struct Panel {
  int output, rows;
  int firstStrip, lastStrip;
  std::int64_t firstValue, lastValue;
};

/// How panels are laid out, without their values. On the host.
struct PanelLayout {
  static constexpr int mostRows = 64;  ///< of a panel

  std::vector<Panel> panels;
  std::vector<PanelStrip> strips;
  std::vector<PanelRun> runs;
  std::int64_t numValues = 0;

  void beginPanel(int output, int rows) {
    const int strip = static_cast<int>(strips.size());
    panels.push_back({output, rows, strip, strip, numValues, numValues});
  }
  void beginStrip(int row, int rows) {
    const int run = static_cast<int>(runs.size());
    strips.push_back({row, rows, run, run, numValues});
    panels.back().lastStrip = static_cast<int>(strips.size());
  }
  /// \return where the values of the run begin
  std::int64_t addRun(int input, int columns) {
    const std::int64_t at = numValues;
    PanelStrip& strip = strips.back();
    if (strip.lastRun > strip.firstRun && runs.back().input + runs.back().columns == input) {
      runs.back().columns += columns;
    } else {
      runs.push_back({input, columns});
      ++strip.lastRun;
    }
    numValues += static_cast<std::int64_t>(strip.rows) * columns;
    panels.back().lastValue = numValues;
    return at;
  }
};

/// How a product of panels is computed. Both give sums in an order that is fixed, each its own.
enum class PanelKernel {
  Threads,  ///< a thread takes neighbouring panels with as many bytes as the next one's: for CPUs
  Teams     ///< a team takes a panel, its threads the rows and columns of it: for GPUs
};

/// The panels of a layout, with values, for an execution space.
template <class Value, class ExecutionSpace>
class Panels {
 public:
  using memory_space = typename BufferSpace<ExecutionSpace>::type;
  using value_view = Kokkos::View<Value*, memory_space>;
  /// At once, so that what a team needs fits the shared memory of a GPU.
  static constexpr int mostVectors = sizeof(Value) > sizeof(double) ? 8 : 16;

  Panels() = default;
  /// Room for the values of a layout, which are not set, and for what kernels read behind them.
  static value_view allocate(const std::string& label, const PanelLayout& layout);
  /// \param values from allocate()
  Panels(const PanelLayout& layout, value_view values);

  /// output[p] = matrix of the panel * input, for all panels p.
  /// \param numVectors 1, 2, 4, 8 or 16, at most mostVectors
  /// \param input, output `numVectors` values for each place, which are neighbours. `output` may be another part of the
  /// array that `input` is in.
  /// \param add to what is there
  void multiply(const ExecutionSpace& space, PanelKernel kernel, int numVectors, const Value* input, Value* output,
                bool add) const;

  /// For transposed products. part[c] = column c of its strip, times the panel's rows of the input, for all columns of
  /// all strips in their order.
  /// \param input `numVectors` values for each place \param part the same for each column
  void multiplyTransposed(const ExecutionSpace& space, int numVectors, const Value* input, Value* part) const;

  std::int64_t numValues() const { return numValues_; }
  /// For tests: vectors no wider than these.
  void useVectorUnit(VectorUnit unit) { vectorUnit_ = unit; }
  std::int64_t numColumns() const { return numColumns_; }

 private:
  std::int64_t numValues_ = 0;
  value_view values_;
  Kokkos::View<Panel*, memory_space> panels_;
  Kokkos::View<PanelStrip*, memory_space> strips_;
  Kokkos::View<PanelRun*, memory_space> runs_;
  Kokkos::View<std::int64_t*, memory_space> firstColumn_;  ///< of each strip
  Kokkos::View<int*, memory_space> share_;                 ///< [shares + 1]: panels of about equal bytes
  VectorUnit vectorUnit_ = widestVectorUnit();
  std::int64_t numColumns_ = 0;
};

}  // namespace Komvos::Impl
