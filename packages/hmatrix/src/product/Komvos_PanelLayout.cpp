/// \file Komvos_PanelLayout.cpp
#include "Komvos_PanelLayout.hpp"

#include <algorithm>

namespace Komvos::Impl {

void PanelLayout::beginPanel(int output, int rows) {
  endStrip();
  const int strip = static_cast<int>(strips_.size());
  panels_.push_back({output, rows, strip, strip, numBytes_});
}

void PanelLayout::beginStrip(int row, int rows, ValueFormat format) {
  endStrip();
  const int run = static_cast<int>(runs_.size());
  strips_.push_back({row, rows, run, run, 0, format, numBytes_, numBytes_});
  panels_.back().lastStrip = static_cast<int>(strips_.size());
  stripIsOpen_ = true;
}

StripPlace PanelLayout::addRun(int input, int columns, double scale) {
  PanelStrip& strip = strips_.back();
  const StripPlace place{static_cast<int>(strips_.size()) - 1, strip.columns};
  if (strip.lastRun > strip.firstRun && runs_.back().input + runs_.back().columns == input &&
      runs_.back().scale == scale) {
    runs_.back().columns += columns;
  } else {
    runs_.push_back({input, columns, scale});
    ++strip.lastRun;
  }
  strip.columns += columns;
  return place;
}

void PanelLayout::endStrip() {
  if (!stripIsOpen_) {
    return;
  }
  stripIsOpen_ = false;
  const auto aligned = [](std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };
  PanelStrip& strip = strips_.back();
  const std::int64_t values = static_cast<std::int64_t>(strip.rows) * strip.columns;
  if (strip.format == ValueFormat::Whole) {
    const std::int64_t bytes = values * static_cast<std::int64_t>(bytesOfWhole_);
    bytesOfValues_ += bytes;
    numBytes_ += aligned(bytes);
  } else {
    bytesOfValues_ += values * static_cast<int>(strip.format);
    strip.lowerByte = strip.firstByte + aligned(values * upperBytes(strip.format));
    numBytes_ = strip.lowerByte + aligned(values * lowerBytes(strip.format));
  }
  panels_.back().lastByte = numBytes_;
}

std::int64_t PanelLayout::numColumns() const {
  std::int64_t columns = 0;
  for (const PanelStrip& strip : strips_) {
    columns += strip.columns;
  }
  return columns;
}

bool PanelLayout::isWhole() const {
  return std::all_of(strips_.begin(), strips_.end(),
                     [](const PanelStrip& strip) { return strip.format == ValueFormat::Whole; });
}

}  // namespace Komvos::Impl
