/// \file Komvos_RankFile.hpp
/// Files of one rank each that take their places together, or not at all.
#pragma once

#include <fstream>
#include <iosfwd>
#include <string>

namespace Komvos::Impl {

/// prefix.rank3.komvos-hmatrix
std::string pathOfRank(const std::string& prefix, int rank);

/// Written beside its place. The destructor removes what was written, wherever it is then, unless keep() was called.
class RankFile {
 public:
  /// \param suffix no other save writes files with it \throws BadInput if the file, or later its place, is not writable
  RankFile(std::string path, const std::string& suffix);
  ~RankFile();
  RankFile(const RankFile&) = delete;
  RankFile& operator=(const RankFile&) = delete;

  std::ostream& stream() { return out_; }
  /// \throws BadInput if anything could not be written, as on a full disk
  void close();
  /// To its place, after close(). \throws BadInput
  void moveToPlace();
  void keep() { doomed_.clear(); }

 private:
  [[noreturn]] void fail(int code) const;

  std::string path_, doomed_;
  std::ofstream out_;
};

/// Opened to be read. \throws BadInput
std::ifstream openRankFile(const std::string& path);

}  // namespace Komvos::Impl
