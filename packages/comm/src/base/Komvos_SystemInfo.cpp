#include "Komvos_SystemInfo.hpp"

#include <mpi.h>

#include <algorithm>
#include <fstream>
#include <istream>
#include <map>

#include "Komvos_Error.hpp"

namespace Komvos::Impl {

namespace {

std::string readProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  return processorNameIn(file);
}

}  // namespace

const std::string& processorName() {
  static const std::string name = readProcessorName();
  return name;
}

std::string processorNameIn(std::istream& cpuinfo) {
  // Of the first processor, which ends with an empty line: others may differ, and there may be hundreds.
  std::map<std::string, std::string> first;
  for (std::string line; std::getline(cpuinfo, line) && !line.empty();) {
    const std::size_t colon = line.find(": ");
    const std::size_t end = line.find_first_of("\t:");
    if (colon != std::string::npos) {
      first.emplace(line.substr(0, line.find_last_not_of(' ', end - 1) + 1), line.substr(colon + 2));
    }
  }
  for (const char* name : {"model name", "cpu"}) {  // x86, POWER
    if (first.count(name) > 0) {
      return first[name];
    }
  }
  if (first.count("CPU implementer") > 0) {
    return "ARM implementer " + first["CPU implementer"] + ", part " + first["CPU part"];
  }
  return "unknown processor";
}

std::string mpiLibraryName() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  mpiCheck(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
  std::string name(text, static_cast<std::size_t>(length));
  name.resize(std::min(name.size(), name.find_first_of(",\n")));
  const std::string label = " Version:";  // "MPICH Version:	4.0.2"
  const std::size_t found = name.find(label);
  if (found != std::string::npos) {
    name.erase(found, label.size());
  }
  std::replace(name.begin(), name.end(), '\t', ' ');
  return name;
}

}  // namespace Komvos::Impl
