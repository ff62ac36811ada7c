#include "support/report_output.hpp"

#include <iostream>

#include "support/output_file.hpp"
#include "support/run_collectively.hpp"

namespace Komvos::Program {

void requireWritable(const std::vector<std::string>& files, MPI_Comm comm) {
  onRankZero(comm, [&] {
    for (const std::string& file : files) {
      if (!file.empty() && file != "-") {
        OutputFile::checkWritable(file);
      }
    }
  });
}

void writeReport(const std::string& text, const std::string& json, bool quiet, const std::string& jsonFile,
                 MPI_Comm comm) {
  onRankZero(comm, [&] {
    const bool jsonOnStdout = jsonFile == "-";
    if (!quiet) {
      (jsonOnStdout ? std::cerr : std::cout) << text << std::flush;
    }
    if (jsonOnStdout) {
      std::cout << json << std::flush;
    } else if (!jsonFile.empty()) {
      OutputFile file(jsonFile);
      file.stream() << json;
      file.commit();
    }
  });
}

}  // namespace Komvos::Program
