/// \file Komvos_SystemInfo.hpp
/// What a measurement was made with, for people and to tell measurements of different machines apart.
#pragma once

#include <iosfwd>
#include <string>

namespace Komvos::Impl {

/// As the system names it, "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz" or "POWER9, altivec supported"; where it has
/// numbers only, "ARM implementer 0x41, part 0xd0c"; or "unknown processor". Read once in a process.
const std::string& processorName();

/// The same from text like that of /proc/cpuinfo.
std::string processorNameIn(std::istream& cpuinfo);

/// "Open MPI v4.1.4" or "MPICH 4.0.2", without what else some libraries say of themselves.
std::string mpiLibraryName();

}  // namespace Komvos::Impl
