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
bool stdoutIsSeen();

/// Belos' "Output Stream": swallows its table, and shows iteration and residual on stdout, ten times a second at most.
/// Leaves no trace of the line when it ends.
class ProgressLine : private std::streambuf {
 public:
  explicit ProgressLine(bool visible) : visible_(visible) {}
  ~ProgressLine() override { clear(); }
  std::ostream& stream() { return stream_; }
  /// The last one that was announced, on the rank that Belos prints on; 0 on the others.
  int iteration() const { return iteration_; }

 private:
  int_type overflow(int_type c) override;
  void read();
  void show(double residual);
  void clear();

  std::ostream stream_{this};
  bool visible_;
  bool shown_ = false;
  int iteration_ = 0;
  std::string line_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace Komvos::Program
