/// \file Komvos_SystemInfo.hpp
/// What a measurement was made with, for people and to tell measurements of different machines apart.
#pragma once

#include <string>

namespace Komvos::Impl {

/// As the system names it, "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", or "unknown processor". Read once in a process.
const std::string& processorName();

/// "Open MPI v4.1.4" or "MPICH 4.0.2", without what else some libraries say of themselves.
std::string mpiLibraryName();

}  // namespace Komvos::Impl
