/// \file helmholtz.hpp
/// The complex matrix of `komvos bem`.
#pragma once

#include <vector>

#include "Komvos_BlockTree.hpp"
#include "Komvos_ExchangeOptions.hpp"
#include "bem/bem_mesh.hpp"
#include "bem/bem_options.hpp"
#include "bem/bem_report.hpp"
#include "problem/problem.hpp"

namespace Komvos::Program {

/// Makes the matrix of Helmholtz's kernel, and measures it. No equations are solved.
/// \return the blocks of this rank \note Collective.
std::vector<Block> measureHelmholtz(const BemOptions& options, const BemMesh& mesh, const CommPtr& comm,
                                    const ExchangeOptions& exchange, bool showProgress, BemReport& report);

}  // namespace Komvos::Program
