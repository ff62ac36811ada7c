/// \file Komvos_PanelFile.cpp
#include "Komvos_PanelFile.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace Komvos::Impl {

namespace {

constexpr std::int64_t mostInts = std::numeric_limits<int>::max();

/// Tells a layout what was read.
class Replay {
 public:
  Replay(const SectionReader& file, const LayoutNames& names, const LayoutRecords& records, const LayoutBounds& bounds)
      : file_(file), names_(names), records_(records), bounds_(bounds), layout_(bounds.bytesOfWhole) {}

  PanelLayout run() {
    if (static_cast<std::int64_t>(records_.strips.size()) >= mostInts ||
        static_cast<std::int64_t>(records_.runs.size()) >= mostInts) {
      file_.fail(std::string(names_.panels) + ": more than 2^31 strips or runs");
    }
    std::int64_t output = 0;
    for (const PanelRecord& panel : records_.panels) {
      addPanel(panel, output);
      output += panel.rows;
    }
    layout_.finish();
    requireBytes();
    if (strip_ != records_.strips.size() || run_ != records_.runs.size()) {
      file_.fail(std::string(names_.panels) + ": " + std::to_string(strip_) + " strips of " +
                 std::to_string(records_.strips.size()) + " and " + std::to_string(run_) + " runs of " +
                 std::to_string(records_.runs.size()) + " are in a panel");
    }
    return std::move(layout_);
  }

 private:
  void addPanel(const PanelRecord& panel, std::int64_t output) {
    const auto numStrips = static_cast<std::int64_t>(records_.strips.size() - strip_);
    if (panel.output != output || panel.rows < 1 || panel.rows > PanelLayout::mostRows ||
        output + panel.rows > mostInts || panel.strips < 0 || panel.strips > numStrips) {
      file_.fail(std::string(names_.panels) + ": a panel of " + std::to_string(panel.rows) + " outputs from " +
                 std::to_string(panel.output) + " on, with " + std::to_string(panel.strips) +
                 " strips; expected at most " + std::to_string(PanelLayout::mostRows) + " from " +
                 std::to_string(output) + " on, with at most " + std::to_string(numStrips));
    }
    layout_.beginPanel(panel.output, panel.rows);
    for (int s = 0; s < panel.strips; ++s) {
      addStrip(panel, records_.strips[strip_++]);
    }
  }

  void addStrip(const PanelRecord& panel, const StripRecord& strip) {
    const auto numRuns = static_cast<std::int64_t>(records_.runs.size() - run_);
    if (strip.row < 0 || strip.rows < 1 || strip.rows > panel.rows - strip.row || strip.runs < 1 ||
        strip.runs > numRuns || strip.format < 0 || strip.format > static_cast<int>(bounds_.widest)) {
      file_.fail(std::string(names_.strips) + ": a strip of " + std::to_string(strip.rows) + " rows from " +
                 std::to_string(strip.row) + " on, of format " + std::to_string(strip.format) + " with " +
                 std::to_string(strip.runs) + " runs; its panel has " + std::to_string(panel.rows) +
                 " rows, formats are 0 to " + std::to_string(static_cast<int>(bounds_.widest)) + ", and " +
                 std::to_string(numRuns) + " runs are left");
    }
    layout_.beginStrip(strip.row, strip.rows, static_cast<ValueFormat>(strip.format));
    requireBytes();
    std::int64_t columns = 0;
    for (int r = 0; r < strip.runs; ++r) {
      const PanelRun& run = records_.runs[run_++];
      columns += run.columns;
      if (run.input < 0 || run.columns < 1 || run.columns > bounds_.inputs - run.input || columns > mostInts ||
          !std::isfinite(run.scale)) {
        file_.fail(std::string(names_.runs) + ": " + std::to_string(run.columns) + " columns from " +
                   std::to_string(run.input) + " on, times " + std::to_string(run.scale) + "; there are " +
                   std::to_string(bounds_.inputs) + " inputs");
      }
      layout_.addRun(run.input, run.columns, run.scale);
    }
  }

  /// Often, so that the sum stays far from 2^63.
  void requireBytes() const {
    if (layout_.numBytes() > bounds_.mostBytes) {
      file_.fail(std::string(names_.values) + ": at least " + std::to_string(layout_.numBytes()) +
                 " bytes, but only " + std::to_string(bounds_.mostBytes) + " are left");
    }
  }

  const SectionReader& file_;
  const LayoutNames& names_;
  const LayoutRecords& records_;
  const LayoutBounds& bounds_;
  PanelLayout layout_;
  std::size_t strip_ = 0, run_ = 0;  ///< the next ones
};

}  // namespace

void writeLayout(SectionWriter& file, const LayoutNames& names, const PanelLayout& layout) {
  LayoutRecords records;
  for (const Panel& panel : layout.panels()) {
    records.panels.push_back({panel.output, panel.rows, panel.lastStrip - panel.firstStrip});
  }
  for (const PanelStrip& strip : layout.strips()) {
    records.strips.push_back({strip.row, strip.rows, static_cast<int>(strip.format), strip.lastRun - strip.firstRun});
  }
  file.section(names.panels, records.panels);
  file.section(names.strips, records.strips);
  file.section(names.runs, layout.runs());
}

LayoutRecords readLayout(SectionReader& file, const LayoutNames& names) {
  LayoutRecords records;
  records.panels = file.section<PanelRecord>(names.panels);
  records.strips = file.section<StripRecord>(names.strips);
  records.runs = file.section<PanelRun>(names.runs);
  return records;
}

PanelLayout checkedLayout(const SectionReader& file, const LayoutNames& names, const LayoutRecords& records,
                          const LayoutBounds& bounds) {
  return Replay(file, names, records, bounds).run();
}

int outputsOf(const PanelLayout& layout) {
  return layout.panels().empty() ? 0 : layout.panels().back().output + layout.panels().back().rows;
}

void writeValues(SectionWriter& file, const LayoutNames& names, const PanelLayout& layout, std::size_t bytesOfWhole,
                 const unsigned char* bytes) {
  file.beginSection(names.values, 1, static_cast<std::size_t>(layout.numBytes()));
  std::int64_t at = 0;
  const auto plane = [&](std::int64_t first, std::int64_t count) {
    if (count > 0) {
      file.writeZeros(static_cast<std::size_t>(first - at));
      file.write(bytes + first, static_cast<std::size_t>(count));
      at = first + count;
    }
  };
  for (const PanelStrip& strip : layout.strips()) {
    const std::int64_t values = static_cast<std::int64_t>(strip.rows) * strip.columns;
    if (strip.format == ValueFormat::Whole) {
      plane(strip.firstByte, values * static_cast<std::int64_t>(bytesOfWhole));
    } else {
      plane(strip.firstByte, values * upperBytes(strip.format));
      plane(strip.lowerByte, values * lowerBytes(strip.format));
    }
  }
  file.writeZeros(static_cast<std::size_t>(layout.numBytes() - at));
}

}  // namespace Komvos::Impl
