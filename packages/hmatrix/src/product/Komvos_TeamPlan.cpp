/// \file Komvos_TeamPlan.cpp
#include "Komvos_TeamPlan.hpp"

#include <algorithm>

namespace Komvos::Impl {

TeamPlan::TeamPlan(const PanelLayout& layout, std::size_t bytesOfWhole) {
  listRuns(layout);
  const std::int64_t bytesOfTask = std::clamp(layout.bytesOfValues() / manyTasks, fewestBytes, mostBytes);
  for (int panel = 0; panel < static_cast<int>(layout.panels().size()); ++panel) {
    addPanel(layout, panel, bytesOfTask, bytesOfWhole);
  }
}

void TeamPlan::listRuns(const PanelLayout& layout) {
  runOfColumn_.reserve(static_cast<std::size_t>(layout.numColumns()));
  firstOfRun_.resize(layout.runs().size());
  for (const PanelStrip& strip : layout.strips()) {
    firstColumn_.push_back(static_cast<std::int64_t>(runOfColumn_.size()));
    int column = 0;
    for (int run = strip.firstRun; run < strip.lastRun; ++run) {
      firstOfRun_[run] = column;
      column += layout.runs()[run].columns;
      runOfColumn_.insert(runOfColumn_.end(), layout.runs()[run].columns, run);
    }
  }
}

void TeamPlan::addPanel(const PanelLayout& layout, int panelIndex, std::int64_t bytesOfTask, std::size_t bytesOfWhole) {
  const Panel& panel = layout.panels()[panelIndex];
  const std::size_t firstTask = tasks_.size();
  const auto here = [&] { return static_cast<int>(parts_.size()); };
  std::int64_t left = 0;                               // bytes that the task begun last still takes
  tasks_.push_back({panelIndex, here(), here(), -1});  // also of a panel without strips: it has an output
  left = bytesOfTask;
  for (int s = panel.firstStrip; s < panel.lastStrip; ++s) {
    const PanelStrip& strip = layout.strips()[s];
    const std::int64_t bytesOfValue = strip.format == ValueFormat::Whole ? static_cast<std::int64_t>(bytesOfWhole)
                                                                         : static_cast<std::int64_t>(strip.format);
    const std::int64_t bytesOfColumn = strip.rows * bytesOfValue;
    for (int column = 0; column < strip.columns;) {
      if (left < bytesOfColumn && parts_.size() > static_cast<std::size_t>(tasks_.back().firstPart)) {
        tasks_.push_back({panelIndex, here(), here(), -1});
        left = bytesOfTask;
      }
      const int columns = static_cast<int>(
          std::min<std::int64_t>(strip.columns - column, std::max<std::int64_t>(1, left / bytesOfColumn)));
      const std::int64_t first = firstColumn_[s] + column;
      const int run = runOfColumn_[first];
      parts_.push_back({s, column, columns, runOfColumn_[first + columns - 1] == run ? run : -1, first});
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
