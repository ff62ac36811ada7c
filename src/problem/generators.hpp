/// \file generators.hpp
/// Problems that are the same on any number of ranks: each row is computed where it lives.
#pragma once

#include "problem/problem.hpp"

namespace Komvos::Program {

/// Matrix, coordinates and null space; `options.problem` and `options.size` must be set. \note Collective.
/// \throws BadInput on all ranks if the size cannot be generated
Problem generate(const ProblemOptions& options, const CommPtr& comm);

}  // namespace Komvos::Program
