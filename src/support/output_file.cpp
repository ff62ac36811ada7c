#include "support/output_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "Komvos_Error.hpp"

namespace Komvos::Program {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void failToWrite(const std::string& path, int code) {
  throw BadInput("cannot write '" + path + "'" + (code != 0 ? ": " + std::string(std::strerror(code)) : ""));
}

}  // namespace

void OutputFile::checkWritable(const std::string& path) {
  std::error_code ignored;
  const auto status = fs::status(path, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status)) {
    if (access(path.c_str(), W_OK) != 0) {  // opening would tell the reader of a pipe that it ends
      failToWrite(path, errno);
    }
    return;
  }
  const OutputFile probe(path);
}

OutputFile::OutputFile(const std::string& path) : path_(path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (fs::is_directory(status)) {
    failToWrite(path, EISDIR);
  }
  errno = 0;
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    out_.open(path_);
    if (!out_) {
      failToWrite(path, errno);
    }
    return;
  }
  if (fs::exists(status)) {
    path_ = fs::canonical(path).string();  // a link stays a link
    if (access(path_.c_str(), W_OK) != 0) {
      failToWrite(path, errno);
    }
  }
  const std::string temporary = path_ + ".unfinished." + std::to_string(getpid());
  out_.open(temporary);
  if (!out_) {
    failToWrite(path, errno);
  }
  temporary_ = temporary;
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) {
    out_.close();
    std::remove(temporary_.c_str());
  }
}

void OutputFile::commit() {
  errno = 0;
  out_.close();
  if (!out_) {
    failToWrite(path_, errno);
  }
  if (!temporary_.empty() && std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    failToWrite(path_, errno);
  }
  temporary_.clear();
}

}  // namespace Komvos::Program
