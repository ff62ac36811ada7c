#include "support/progress_line.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "support/text_format.hpp"

namespace Komvos::Program {

namespace {

/// Major numbers of terminals on Linux: consoles, serial lines, pseudo-terminals.
bool isTerminal(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0 || !S_ISCHR(status.st_mode)) {
    return false;
  }
  const unsigned major = static_cast<unsigned>(status.st_rdev >> 8 & 0xfff);
  return major == 4 || major == 5 || (major >= 136 && major <= 143);
}

}  // namespace

bool isInteractive() {
  return isatty(STDOUT_FILENO) != 0 && isTerminal("/proc/" + std::to_string(getppid()) + "/fd/1");
}

void StatusLine::show(const std::string& text) {
  if (visible_) {
    std::printf("\r\033[K%s", text.c_str());
    std::fflush(stdout);
    shown_ = true;
  }
}

void StatusLine::clear() {
  if (shown_) {
    std::fputs("\r\033[K", stdout);
    std::fflush(stdout);
    shown_ = false;
  }
}

ProgressLine::int_type ProgressLine::overflow(int_type c) {
  if (c == '\n') {
    read();
    line_.clear();
  } else if (c != traits_type::eof()) {
    line_ += static_cast<char>(c);
  }
  return traits_type::not_eof(c);
}

void ProgressLine::read() {
  int iteration = 0;
  double residual = 0;
  if (std::sscanf(line_.c_str(), " Iter %d, [%*d] : %lf", &iteration, &residual) == 2) {
    iteration_ = iteration;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ >= std::chrono::milliseconds(100)) {
      status_.show(format("iteration %d, residual %.2e", iteration, residual));
      last_ = now;
    }
  }
}

}  // namespace Komvos::Program
