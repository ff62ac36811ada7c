/// \file report_output.hpp
/// Where a report goes, and the other files that are asked for with it.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace Komvos::Program {

/// Before the work, not after it: finds out whether files can be written.
/// \param files empty names and "-" are left out
/// \param inputs what is read, and must stay
/// \note Collective on `comm`. \throws BadInput on all ranks, also where two are the same, or one is an input
void requireWritable(const std::vector<std::string>& files, const std::vector<std::string>& inputs, MPI_Comm comm);

/// If this output goes to stdout, whatever Trilinos prints goes to stderr from now on. \param file "-": stdout
void keepStdoutFor(const std::string& file);

/// After keepStdoutFor(), too. In the end main() looks whether stdout could be written.
void writeToStdout(const std::string& text);

/// Prints and writes a report, from rank 0.
/// \param jsonFile empty: no JSON; "-": on stdout, the text then goes to stderr
/// \note Collective on `comm`. \throws BadInput on all ranks if the file cannot be written
void writeReport(const std::string& text, const std::string& json, bool quiet, const std::string& jsonFile,
                 MPI_Comm comm);

}  // namespace Komvos::Program
