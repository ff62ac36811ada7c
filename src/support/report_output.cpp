#include "support/report_output.hpp"

#include <filesystem>
#include <iostream>
#include <ostream>
#include <set>
#include <system_error>

#include "Komvos_Error.hpp"
#include "support/output_file.hpp"
#include "support/run_collectively.hpp"

namespace Komvos::Program {

namespace {

std::streambuf* realStdout = nullptr;  // where std::cout is stderr

}  // namespace

void requireWritable(const std::vector<std::string>& files, const std::vector<std::string>& inputs, MPI_Comm comm) {
  onRankZero(comm, [&] {
    std::set<std::string> seen;
    for (const std::string& file : files) {
      if (file.empty() || file == "-") {
        continue;
      }
      OutputFile::checkWritable(file);
      const bool isRegular = !std::filesystem::exists(file) || std::filesystem::is_regular_file(file);
      if (isRegular &&
          !seen.insert(std::filesystem::weakly_canonical(std::filesystem::absolute(file)).string()).second) {
        throw BadInput("two outputs go to '" + file + "'");
      }
      for (const std::string& input : inputs) {
        std::error_code ignored;
        if (!input.empty() && std::filesystem::equivalent(input, file, ignored)) {
          throw BadInput("an output would replace '" + input + "', which is read");
        }
      }
    }
  });
}

void keepStdoutFor(const std::string& file) {
  if (file == "-" && realStdout == nullptr) {
    realStdout = std::cout.rdbuf(std::cerr.rdbuf());
  }
}

void writeToStdout(const std::string& text) {
  std::ostream out(realStdout != nullptr ? realStdout : std::cout.rdbuf());
  out << text << std::flush;
}

void writeReport(const std::string& text, const std::string& json, bool quiet, const std::string& jsonFile,
                 MPI_Comm comm) {
  onRankZero(comm, [&] {
    const bool jsonOnStdout = jsonFile == "-";
    if (!quiet) {
      (jsonOnStdout ? std::cerr : std::cout) << text << std::flush;
    }
    if (jsonOnStdout) {
      writeToStdout(json);
    } else if (!jsonFile.empty()) {
      OutputFile file(jsonFile);
      file.stream() << json;
      file.commit();
    }
  });
}

}  // namespace Komvos::Program
