/// \file progress_line.hpp
/// One line on the terminal that is rewritten in place while the work goes on.
#pragma once

#include <chrono>
#include <ostream>
#include <streambuf>
#include <string>

namespace Komvos::Program {

/// Whether someone sees stdout. Open MPI's launcher gives its processes a terminal of their own even where its output
/// goes to a file, so the launcher's stdout counts as well.
bool stdoutIsSeen();

/// A line on stdout, written ten times a second at most. Leaves no trace when it ends.
class StatusLine {
 public:
  explicit StatusLine(bool visible) : visible_(visible) {}
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void show(const std::string& text);

 private:
  bool visible_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point last_;
};

/// Belos' "Output Stream": swallows its table, and shows iteration and residual instead.
class ProgressLine : private std::streambuf {
 public:
  explicit ProgressLine(bool visible) : line_(visible) {}
  std::ostream& stream() { return stream_; }
  /// The last one that was announced, on the rank that Belos prints on; 0 on the others.
  int iteration() const { return iteration_; }

 private:
  int_type overflow(int_type c) override;
  void read();

  std::ostream stream_{this};
  StatusLine line_;
  int iteration_ = 0;
  std::string text_;  // of Belos' line so far
};

}  // namespace Komvos::Program
