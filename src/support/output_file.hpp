/// \file output_file.hpp
/// Files that are there as a whole or not at all. Used by one rank.
#pragma once

#include <fstream>
#include <string>

namespace Komvos::Program {

/// Written beside its final place and renamed by commit(); removed if that is not reached. Devices and pipes are
/// written to directly.
class OutputFile {
 public:
  /// \throws BadInput if the file cannot be written
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  std::ostream& stream() { return out_; }
  /// \throws BadInput if anything could not be written, as on a full disk
  void commit();

  /// Finds out early what the constructor would find out late; whoever reads a pipe does not notice. \throws BadInput
  static void checkWritable(const std::string& path);

 private:
  std::string path_;
  std::string temporary_;  // empty where path_ is written directly
  std::ofstream out_;
};

}  // namespace Komvos::Program
