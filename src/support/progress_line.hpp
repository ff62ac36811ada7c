/// \file progress_line.hpp
/// What Belos prints while it iterates, as one line that is rewritten in place.
#pragma once

#include <chrono>
#include <ostream>
#include <streambuf>
#include <string>

namespace Komvos::Program {

/// Whether someone sees stdout. Open MPI's launcher gives its processes a terminal of their own even where its output
/// goes to a file, so the launcher's stdout counts as well.
bool isInteractive();

/// One line on stdout that is rewritten in place; leaves no trace when it ends.
class StatusLine {
 public:
  explicit StatusLine(bool visible) : visible_(visible) {}
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  void show(const std::string& text);
  void clear();

 private:
  bool visible_;
  bool shown_ = false;
};

/// Belos' "Output Stream": swallows its table, and shows iteration and residual as a StatusLine, ten times a second at
/// most.
class ProgressLine : private std::streambuf {
 public:
  explicit ProgressLine(bool visible) : status_(visible) {}
  std::ostream& stream() { return stream_; }
  /// The last one that was announced, on the rank that Belos prints on; 0 on the others.
  int iteration() const { return iteration_; }

 private:
  int_type overflow(int_type c) override;
  void read();

  std::ostream stream_{this};
  StatusLine status_;
  int iteration_ = 0;
  std::string line_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace Komvos::Program
