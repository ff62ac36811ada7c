#include "Komvos_SystemInfo.hpp"

#include <mpi.h>

#include <algorithm>
#include <fstream>

#include "Komvos_Error.hpp"

namespace Komvos::Impl {

namespace {

std::string readProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown processor";
}

}  // namespace

const std::string& processorName() {
  static const std::string name = readProcessorName();
  return name;
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
