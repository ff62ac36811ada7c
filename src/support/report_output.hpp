/// \file report_output.hpp
/// Where a report goes.
#pragma once

#include <mpi.h>

#include <string>

namespace Komvos::Program {

/// Prints and writes a report, from rank 0.
/// \param jsonFile empty: no JSON; "-": on stdout, the text then goes to stderr
/// \note Collective on `comm`. \throws BadInput on all ranks if the file cannot be written
void writeReport(const std::string& text, const std::string& json, bool quiet, const std::string& jsonFile,
                 MPI_Comm comm);

}  // namespace Komvos::Program
