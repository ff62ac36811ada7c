/// \file matrix_market.hpp
/// Checks Matrix Market files before the collective reader of Tpetra gets them. Plain C++, run by one rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace Komvos::Program {

/// Reads the whole file once.
/// \param largestIndex what the installed global ordinal can hold
/// \return the number of rows
/// \throws BadInput, naming file and line, unless it is a real or integer square matrix in coordinate format with as
/// many entries as announced, all finite and in range, and no row or column without a non-zero entry
std::int64_t checkMatrixFile(const std::string& path, std::int64_t largestIndex);

/// \return the values of a vector: array format, real or integer, one column
/// \throws BadInput, naming file and line, on anything else, or if it has not `rows` finite values
std::vector<double> readVectorFile(const std::string& path, std::int64_t rows);

}  // namespace Komvos::Program
