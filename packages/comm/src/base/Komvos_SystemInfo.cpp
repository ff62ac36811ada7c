#include "Komvos_SystemInfo.hpp"

#include <mpi.h>

#include <fstream>

#include "Komvos_Error.hpp"

namespace Komvos::Impl {

std::string processorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown processor";
}

std::string mpiLibraryName() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  mpiCheck(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
  const std::string name(text, static_cast<std::size_t>(length));
  return name.substr(0, name.find_first_of(",\n"));
}

}  // namespace Komvos::Impl
