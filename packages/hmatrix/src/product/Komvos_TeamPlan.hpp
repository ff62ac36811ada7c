/// \file Komvos_TeamPlan.hpp
/// How the product of panels is divided among the teams of a GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "Komvos_PanelLayout.hpp"

namespace Komvos::Impl {

/// Neighbouring columns of a strip.
struct StripPart {
  int strip, column, columns;
  int place;                 ///< of the input of the first column, where the others' follow it; else -1
  double scale;              ///< of all columns, where it is the same
  std::int64_t firstColumn;  ///< of all strips
  std::int64_t firstScale;   ///< in scales(), where they differ; else -1
};

/// What one team does: parts of one panel.
struct TeamTask {
  int panel;
  int firstPart, lastPart;
  int partial;  ///< where its sums go; -1: it is the only one of its panel, and they are its output
};

/// A panel of several tasks, whose sums are added in their order.
struct SharedPanel {
  int panel;
  int firstPartial, lastPartial;
};

/// Panels are cut into tasks of about equal bytes: one of a few rows and all columns of a large cluster has a thousand
/// times the bytes of others. The plan depends on the layout only, so that sums are the same on every device.
class TeamPlan {
 public:
  static constexpr std::int64_t fewestBytes = 8 * 1024, mostBytes = 64 * 1024;  ///< of a task, where there is a choice
  static constexpr std::int64_t manyTasks = 4096;                               ///< enough to keep a large GPU busy

  explicit TeamPlan(const PanelLayout& layout);

  const std::vector<StripPart>& parts() const { return parts_; }
  const std::vector<TeamTask>& tasks() const { return tasks_; }
  const std::vector<SharedPanel>& sharedPanels() const { return sharedPanels_; }
  const std::vector<int>& places() const { return places_; }     ///< of the input of each column of all strips
  const std::vector<double>& scales() const { return scales_; }  ///< of columns of parts with several
  int numPartials() const { return numPartials_; }

 private:
  void addPanel(const PanelLayout& layout, int panel, std::int64_t bytesOfTask);
  void listColumns(const PanelLayout& layout);
  StripPart makePart(int strip, int column, int columns);

  std::vector<StripPart> parts_;
  std::vector<TeamTask> tasks_;
  std::vector<SharedPanel> sharedPanels_;
  std::vector<int> places_;
  std::vector<double> scales_, scaleOfColumn_;
  std::vector<std::int64_t> firstColumn_;  ///< of each strip, of all
  int numPartials_ = 0;
};

}  // namespace Komvos::Impl
