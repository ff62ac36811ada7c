/// \file Komvos_PanelLayout.hpp
/// Where the values of many small dense matrices are, so that a product reads them in one pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

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
  std::int64_t bytesOfColumn(const PanelStrip& strip) const {
    const auto whole = static_cast<std::int64_t>(bytesOfWhole_);
    return strip.rows * (strip.format == ValueFormat::Whole ? whole : static_cast<std::int64_t>(strip.format));
  }
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

}  // namespace Komvos::Impl
