/// \file Komvos_TeamPlan.cpp
#include "Komvos_TeamPlan.hpp"

#include <algorithm>

namespace Komvos::Impl {

TeamPlan::TeamPlan(const PanelLayout& layout) {
  listColumns(layout);
  const std::int64_t bytesOfTask = std::clamp(layout.bytesOfValues() / manyTasks, fewestBytes, mostBytes);
  for (int panel = 0; panel < static_cast<int>(layout.panels().size()); ++panel) {
    addPanel(layout, panel, bytesOfTask);
  }
  scaleOfColumn_ = {};
}

void TeamPlan::listColumns(const PanelLayout& layout) {
  places_.reserve(static_cast<std::size_t>(layout.numColumns()));
  scaleOfColumn_.reserve(places_.capacity());
  for (const PanelStrip& strip : layout.strips()) {
    firstColumn_.push_back(static_cast<std::int64_t>(places_.size()));
    for (int r = strip.firstRun; r < strip.lastRun; ++r) {
      const PanelRun& run = layout.runs()[r];
      for (int c = 0; c < run.columns; ++c) {
        places_.push_back(run.input + c);
      }
      scaleOfColumn_.insert(scaleOfColumn_.end(), run.columns, run.scale);
    }
  }
}

StripPart TeamPlan::makePart(int strip, int column, int columns) {
  const std::int64_t first = firstColumn_[strip] + column;
  const auto place = places_.begin() + first;
  const bool areNeighbours =
      std::adjacent_find(place, place + columns, [](int a, int b) { return b != a + 1; }) == place + columns;
  const auto scale = scaleOfColumn_.begin() + first;
  const bool haveOneScale = std::all_of(scale, scale + columns, [&](double other) { return other == *scale; });
  const StripPart part{strip,
                       column,
                       columns,
                       areNeighbours ? *place : -1,
                       *scale,
                       first,
                       haveOneScale ? -1 : static_cast<std::int64_t>(scales_.size())};
  if (!haveOneScale) {
    scales_.insert(scales_.end(), scale, scale + columns);
  }
  return part;
}

void TeamPlan::addPanel(const PanelLayout& layout, int panelIndex, std::int64_t bytesOfTask) {
  const Panel& panel = layout.panels()[panelIndex];
  const std::size_t firstTask = tasks_.size();
  const auto here = [&] { return static_cast<int>(parts_.size()); };
  std::int64_t left = bytesOfTask;                     // that the task begun last still takes
  tasks_.push_back({panelIndex, here(), here(), -1});  // also of a panel without strips: it has an output
  for (int s = panel.firstStrip; s < panel.lastStrip; ++s) {
    const PanelStrip& strip = layout.strips()[s];
    const std::int64_t bytesOfColumn = layout.bytesOfColumn(strip);
    for (int column = 0; column < strip.columns;) {
      if (left < bytesOfColumn && parts_.size() > static_cast<std::size_t>(tasks_.back().firstPart)) {
        tasks_.push_back({panelIndex, here(), here(), -1});
        left = bytesOfTask;
      }
      const int columns = static_cast<int>(
          std::min<std::int64_t>(strip.columns - column, std::max<std::int64_t>(1, left / bytesOfColumn)));
      parts_.push_back(makePart(s, column, columns));
      tasks_.back().lastPart = here();
      left -= columns * bytesOfColumn;
      column += columns;
    }
  }
  if (tasks_.size() - firstTask > 1) {
    sharedPanels_.push_back({panelIndex, numPartials_, numPartials_});
    for (std::size_t t = firstTask; t < tasks_.size(); ++t) {
      tasks_[t].partial = numPartials_++;
    }
    sharedPanels_.back().lastPartial = numPartials_;
  }
}

}  // namespace Komvos::Impl
