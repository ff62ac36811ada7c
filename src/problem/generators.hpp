/// \file generators.hpp
/// Generated problems. They are the same on any number of ranks: each row is computed by its owner, from its index.
#pragma once

#include "problem/problem.hpp"

namespace Komvos::Program {

/// Matrix, coordinates and null space; `options.problem` and `options.size` must be set. \note Collective.
/// \throws BadInput on all ranks if the size cannot be generated
Problem generate(const ProblemOptions& options, const CommPtr& comm);

}  // namespace Komvos::Program
