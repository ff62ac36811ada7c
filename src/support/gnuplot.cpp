#include "support/gnuplot.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "Komvos_Error.hpp"
#include "support/output_file.hpp"
#include "support/text_format.hpp"

namespace Komvos::Program::Gnuplot {

namespace {

/// A nameless file that vanishes with this object.
class TemporaryFile {
 public:
  TemporaryFile() : file_(std::tmpfile()) {
    if (file_ == nullptr) {
      throw Error(std::string("cannot make a temporary file for gnuplot: ") + std::strerror(errno));
    }
  }
  ~TemporaryFile() { std::fclose(file_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int descriptor() const { return fileno(file_); }

  /// Writes the text and goes back to its beginning.
  void fill(const std::string& text) {
    const bool written = std::fwrite(text.data(), 1, text.size(), file_) == text.size();
    if (std::fflush(file_) != 0 || !written) {
      throw Error(std::string("cannot write a temporary file for gnuplot: ") + std::strerror(errno));
    }
    std::rewind(file_);
  }

  std::string text() {
    std::rewind(file_);
    std::string text;
    std::array<char, 4096> part;
    for (std::size_t count = 1; count > 0;) {
      count = std::fread(part.data(), 1, part.size(), file_);
      text.append(part.data(), count);
    }
    return text;
  }

 private:
  std::FILE* file_;
};

/// Runs gnuplot without the user's configuration. \return whether it ended with status 0
bool runGnuplot(const TemporaryFile& in, const TemporaryFile& out, const TemporaryFile& errors) {
  char name[] = "gnuplot";
  char defaults[] = "--default-settings";
  char* arguments[] = {name, defaults, nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), STDERR_FILENO);
  pid_t child = 0;
  const int failure = posix_spawnp(&child, name, &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    throw Error(std::string("cannot run gnuplot: ") + std::strerror(failure));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      throw Error(std::string("cannot wait for gnuplot: ") + std::strerror(errno));
    }
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

void requireInstalled(const std::string& option) {
  if (std::system("command -v gnuplot > /dev/null 2>&1") != 0) {
    throw BadInput(option + " needs gnuplot, which is not installed (Debian: gnuplot-nox)");
  }
}

void drawSvg(const std::string& path, int width, int height, const std::string& script) {
  OutputFile file(path);
  // Files rather than pipes: a gnuplot that ends early cannot kill this process by SIGPIPE, and neither of the two
  // processes waits for the other to read.
  TemporaryFile in, out, errors;
  in.fill("set encoding utf8\n" +
          format("set terminal svg size %d,%d noenhanced font 'sans-serif,13' background '#ffffff'\n", width, height) +
          script);
  const bool succeeded = runGnuplot(in, out, errors);
  const std::string picture = out.text();
  if (!succeeded || picture.find("</svg>") == std::string::npos) {
    throw Error("gnuplot drew no plot: " + errors.text());
  }
  file.stream() << picture;
  file.commit();
}

std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text) {
    // A single quote is doubled; a line break would end the command.
    word += c == '\'' ? std::string("''") : std::string(1, static_cast<unsigned char>(c) < ' ' ? ' ' : c);
  }
  return word + "'";
}

}  // namespace Komvos::Program::Gnuplot
