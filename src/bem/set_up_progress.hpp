/// \file set_up_progress.hpp
/// How far the set-up of a matrix is, on a terminal.
#pragma once

#include <chrono>

#include "Komvos_HMatrix.hpp"
#include "support/progress_line.hpp"
#include "support/text_format.hpp"

namespace Komvos::Program {

/// A line while the matrix is made, rewritten ten times a second at most; nothing is left of it.
class SetUpProgress {
 public:
  explicit SetUpProgress(bool visible) : visible_(visible), line_(visible) {}

  /// The options, with progress shown here; this must outlive the set-up.
  HMatrixOptions listening(HMatrixOptions options) {
    if (visible_) {
      options.progress = [this](double part) { show(part); };
    }
    return options;
  }
  void clear() { line_.clear(); }

 private:
  void show(double part) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ >= std::chrono::milliseconds(100)) {
      line_.show(format("set-up %.0f %%", 100 * part));
      last_ = now;
    }
  }

  bool visible_;
  StatusLine line_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace Komvos::Program
