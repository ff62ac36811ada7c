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
#include "Komvos_ValueFormat.hpp"

namespace Komvos::Impl {

/// Neighbouring columns of a strip that are multiplied by neighbouring values of the input, times `scale`.
struct PanelRun {
  int input, columns;
  double scale;
};

/// A dense matrix [rows x columns of its runs], column by column. Its product is added to `rows` values of the output
/// from `row` of its panel on.
struct PanelStrip {
  int row, rows;
  int firstRun, lastRun;
  int columns;
  ValueFormat format;
  std::int64_t firstByte;  ///< of the whole values, or of the upper plane
  std::int64_t lowerByte;  ///< the first of the lower plane
};

/// All that is added to values [output, output + rows) of the output: nobody else writes there.
struct Panel {
  int output, rows;
  int firstStrip, lastStrip;
  std::int64_t lastByte;
};

/// The runs of a strip, some columns at a time.
class RunCutter {
 public:
  RunCutter(const PanelRun* runs, int numRuns) : run_(runs), end_(runs + numRuns) {}
  /// \param part room for `most` runs \param numParts how many there are \return their columns; 0 behind the last
  inline int next(int most, PanelRun* part, int& numParts) {
    int columns = 0;
    for (numParts = 0; run_ != end_ && columns < most; ++numParts) {
      const int left = run_->columns - done_, taken = left < most - columns ? left : most - columns;
      part[numParts] = {run_->input + done_, taken, run_->scale};
      columns += taken;
      done_ = taken < left ? done_ + taken : 0;
      run_ += taken < left ? 0 : 1;
    }
    return columns;
  }

 private:
  const PanelRun *run_, *end_;
  int done_ = 0;  ///< columns of this run
};

/// Columns of a strip whose input is at neighbouring places of one group.
struct ColumnPiece {
  int strip, column, columns;
  int output;  ///< of the first row of the strip
  int place;   ///< of the first column, in the group
  double scale;
};

/// Where the columns of a block are in a strip.
struct StripPlace {
  int strip, column;
};

/// How panels are laid out, without their values. On the host.
class PanelLayout {
 public:
  static constexpr int mostRows = 64;   ///< of a panel
  static constexpr int alignment = 16;  ///< of a strip, in bytes: that of any value

  explicit PanelLayout(std::size_t bytesOfWhole = sizeof(double)) : bytesOfWhole_(bytesOfWhole) {}

  void beginPanel(int output, int rows);
  /// Of the panel begun last. \param row of the panel
  void beginStrip(int row, int rows, ValueFormat format = ValueFormat::Whole);
  /// Columns for the strip begun last. \param scale 1 where values are whole
  StripPlace addRun(int input, int columns, double scale = 1);
  /// After the last run.
  void finish() { endStrip(); }

  const std::vector<Panel>& panels() const { return panels_; }
  const std::vector<PanelStrip>& strips() const { return strips_; }
  const std::vector<PanelRun>& runs() const { return runs_; }
  std::int64_t numBytes() const { return numBytes_; }
  /// Without what is between strips.
  std::int64_t bytesOfValues() const { return bytesOfValues_; }
  std::int64_t numColumns() const;  ///< of all strips
  bool isWhole() const;             ///< all strips are

 private:
  void endStrip();

  std::size_t bytesOfWhole_;
  std::vector<Panel> panels_;
  std::vector<PanelStrip> strips_;
  std::vector<PanelRun> runs_;
  std::int64_t numBytes_ = 0, bytesOfValues_ = 0;
  bool stripIsOpen_ = false;
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
  using byte_view = Kokkos::View<unsigned char*, memory_space>;
  using scale_view = Kokkos::View<double*, memory_space>;
  /// At once, so that what a team needs fits the shared memory of a GPU.
  static constexpr int mostVectors = sizeof(Value) > sizeof(double) ? 8 : 16;
  static constexpr int columnsTogether = 64;  ///< of a transposed product

  Panels() = default;
  /// Room for the values of a layout, which are not set, and for what kernels read behind them.
  static byte_view allocate(const std::string& label, const PanelLayout& layout);
  /// \param values from allocate()
  /// \param outputScale what each value of the output is multiplied by; empty: nothing
  Panels(const PanelLayout& layout, byte_view values, scale_view outputScale = {});

  /// output[p] = matrix of the panel * input, for all panels p.
  /// \param numVectors 1, 2, 4, 8 or 16, at most mostVectors
  /// \param input, output `numVectors` values for each place, which are neighbours. `output` may be another part of the
  /// array that `input` is in.
  /// \param add to what is there
  void multiply(const ExecutionSpace& space, PanelKernel kernel, int numVectors, const Value* input, Value* output,
                bool add) const;

  /// multiply(), and with the same pass over memory the parts of the transposed product of the same matrix:
  /// part[c] = column c of its strip, times the panel's rows of `rows`, for all columns of all strips in their order.
  /// outputScale is not in it.
  /// \param rows `numVectors` values for each place of the output \param part the same for each column
  void multiplyBoth(const ExecutionSpace& space, int numVectors, const Value* input, Value* output, const Value* rows,
                    Value* part) const;
  /// Whether multiplyBoth() is as good as it says: where panels are taken by threads of a CPU.
  static constexpr bool canMultiplyBoth = runsOnHost<ExecutionSpace>();

  /// Before multiplyTransposed(). \param inputs the number of places of the input
  /// \param leftOut columns of all strips, in ascending order, that transposed products leave out
  void prepareTransposed(const PanelLayout& layout, int inputs, const std::vector<std::int64_t>& leftOut = {});
  /// output[p] = column p of the matrix, times `input`, for all places p of multiply()'s input; each is added to by one
  /// thread. outputScale is not in it.
  /// \param input `numVectors` values for each place of multiply()'s output \param add to what is there
  void multiplyTransposed(const ExecutionSpace& space, int numVectors, const Value* input, Value* output,
                          bool add) const;

  std::int64_t numBytes() const { return numBytes_; }
  /// For tests: vectors no wider than these.
  void useVectorUnit(VectorUnit unit) { vectorUnit_ = unit; }
  std::int64_t numColumns() const { return numColumns_; }
  const byte_view& values() const { return values_; }

 private:
  std::int64_t numBytes_ = 0;  ///< of values
  byte_view values_;
  scale_view outputScale_;
  Kokkos::View<Panel*, memory_space> panels_;
  Kokkos::View<PanelStrip*, memory_space> strips_;
  Kokkos::View<PanelRun*, memory_space> runs_;
  Kokkos::View<std::int64_t*, memory_space> firstColumn_;  ///< of each strip
  Kokkos::View<int*, memory_space> share_;                 ///< [shares + 1]: panels of about equal bytes
  // Of groups of columnsTogether neighbouring places of the input.
  int numInputs_ = 0;
  Kokkos::View<std::int64_t*, memory_space> firstPiece_;  ///< [groups + 1]
  Kokkos::View<ColumnPiece*, memory_space> pieces_;
  VectorUnit vectorUnit_ = widestVectorUnit();
  std::int64_t numColumns_ = 0;
};

enum class StripLine { Row, Column };

/// Writes neighbouring values of a row or column of a strip into the bytes of a layout. On the host.
/// \param place the column, or the first column \param at the row, or the first row
/// \param stride from one value to the next \param scale a value is an integer times this; unused for whole values
template <class Value>
void storeValues(const PanelLayout& layout, unsigned char* bytes, StripPlace place, StripLine line, int at, int count,
                 const Value* values, std::ptrdiff_t stride, double scale);

/// Writes values of a column of a strip, rows [row, row + rows), into the bytes of a layout. On the host.
/// \param scale a value is an integer times this; unused for whole values
template <class Value>
void storeColumn(const PanelLayout& layout, unsigned char* bytes, StripPlace place, int row, int rows,
                 const Value* values, std::ptrdiff_t stride, double scale);

}  // namespace Komvos::Impl
