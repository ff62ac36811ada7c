#include "progress_line.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

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

bool stdoutIsSeen() { return isatty(STDOUT_FILENO) != 0 && isTerminal("/proc/" + std::to_string(getppid()) + "/fd/1"); }

StatusLine::~StatusLine() {
  if (shown_) {
    std::fputs("\r\033[K", stdout);
    std::fflush(stdout);
  }
}

void StatusLine::show(const std::string& text) {
  const auto now = std::chrono::steady_clock::now();
  if (visible_ && now - last_ >= std::chrono::milliseconds(100)) {
    std::printf("\r\033[K%s", text.c_str());
    std::fflush(stdout);
    last_ = now;
    shown_ = true;
  }
}

ProgressLine::int_type ProgressLine::overflow(int_type c) {
  if (c == '\n') {
    read();
    text_.clear();
  } else if (c != traits_type::eof()) {
    text_ += static_cast<char>(c);
  }
  return traits_type::not_eof(c);
}

void ProgressLine::read() {
  int iteration = 0;
  double residual = 0;
  if (std::sscanf(text_.c_str(), " Iter %d, [%*d] : %lf", &iteration, &residual) == 2) {
    iteration_ = iteration;
    char shown[64];
    std::snprintf(shown, sizeof(shown), "iteration %d, residual %.2e", iteration, residual);
    line_.show(shown);
  }
}

}  // namespace Komvos::Program
