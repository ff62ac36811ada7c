/// \file Komvos_RankFile.cpp
#include "Komvos_RankFile.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "Komvos_Error.hpp"

namespace Komvos::Impl {

namespace {
std::string reason(int code) { return code != 0 ? ": " + std::string(std::strerror(code)) : std::string(); }
}  // namespace

std::string pathOfRank(const std::string& prefix, int rank) {
  return prefix + ".rank" + std::to_string(rank) + ".komvos-hmatrix";
}

RankFile::RankFile(std::string path, const std::string& suffix) : path_(std::move(path)) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path_, ignored);
  if (std::filesystem::is_directory(status)) {
    fail(EISDIR);
  }
  if (std::filesystem::exists(status) && access(path_.c_str(), W_OK) != 0) {
    fail(errno);
  }
  const std::string temporary = path_ + suffix;
  errno = 0;
  out_.open(temporary, std::ios::binary | std::ios::trunc);
  if (!out_) {
    fail(errno);
  }
  doomed_ = temporary;
}

RankFile::~RankFile() {
  if (!doomed_.empty()) {
    out_.close();
    std::remove(doomed_.c_str());
  }
}

void RankFile::close() {
  errno = 0;
  out_.close();
  if (!out_) {
    fail(errno);
  }
}

void RankFile::moveToPlace() {
  errno = 0;
  if (std::rename(doomed_.c_str(), path_.c_str()) != 0) {
    fail(errno);
  }
  doomed_ = path_;
}

void RankFile::fail(int code) const { throw BadInput("cannot write '" + path_ + "'" + reason(code)); }

std::ifstream openRankFile(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw BadInput("cannot read '" + path + "'" + reason(EISDIR));
  }
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw BadInput("cannot read '" + path + "'" + reason(errno));
  }
  return in;
}

}  // namespace Komvos::Impl
