/// \file Komvos_NodeAwareHierarchy.hpp
/// A MueLu hierarchy whose cycles exchange halos along node-aware routes.
#pragma once

#include <MueLu_Hierarchy_fwd.hpp>
#include <Teuchos_RCP.hpp>
#include <memory>
#include <string>
#include <vector>

#include "Komvos_ExchangeOptions.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "Komvos_NodeAwareImport.hpp"
#include "Komvos_TpetraShim.hpp"

// Not MueLu_TpetraOperator_fwd.hpp: with it, other headers of MueLu 16 do not compile.
namespace MueLu {
template <class, class, class, class>
class TpetraOperator;
}

namespace Komvos {

/// One exchange of a hierarchy: of a matrix, or between the ranks that restriction ends on and those of the next level.
struct LevelExchange {
  int level = 0;                                      ///< 0 is the finest
  std::string name;                                   ///< "A", "P", "R", "Pbar" or "Importer"
  Teuchos::RCP<const NodeAwareCrsMatrix<>> matrix;    ///< null for "Importer"
  std::shared_ptr<const NodeAwareImport<>> transfer;  ///< of "Importer" only
};

/// What makeNodeAware() has done to a hierarchy; on this rank, which has no part of some levels after rebalancing.
struct NodeAwareHierarchy {
  std::vector<LevelExchange> exchanges;  ///< by level; their reports say how they are tuned while the hierarchy is used
  std::vector<std::string> kept;         ///< what still exchanges as Tpetra does, and why
};

/// Lets the cycles of a hierarchy that is set up exchange all halos along node-aware routes, tuned halo by halo while
/// they are used:
///
/// \code
/// auto M = MueLu::CreateTpetraPreconditioner(Teuchos::RCP<Tpetra::Operator<>>(A), parameters);
/// Komvos::makeNodeAware(*M);
/// \endcode
///
/// - A, P and R of all levels, with implicit transposes and residuals, and `Pbar`
/// - P and R with what carries vectors to the ranks of a rebalanced level, where MueLu has not built it into them
/// - smoothers of Ifpack2: Chebyshev, relaxation by points (Jacobi, Gauss-Seidel, symmetric Gauss-Seidel and others),
///   and incomplete factorizations without overlap. The numbers are the same to rounding: a sweep computes
///   x + inv(M) (b - A x), with the residual of a node-aware matrix; Chebyshev keeps its estimate of the spectrum.
///
/// Other smoothers and coarse solvers stay as they are: see NodeAwareHierarchy::kept.
///
/// A matrix that is a NodeAwareCrsMatrix already stays, so that a solver and the finest level share one halo if MueLu
/// is given such a matrix. After MueLu::ReuseTpetraPreconditioner, call it again, before the next apply: what MueLu has
/// kept stays, and what it has made anew takes over the exchanges where maps and options are the same on all ranks
/// (unless ExchangeOptions::reuseDecisions is false): plans, decisions, buffers. Only the rest is planned again.
///
/// \note Collective on the communicator of the finest level.
/// \throws BadInput on all its ranks if the options cannot be used; the hierarchy then is as it was.
NodeAwareHierarchy makeNodeAware(
    MueLu::Hierarchy<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>& hierarchy,
    const ExchangeOptions& options = {});
/// The same for what MueLu::CreateTpetraPreconditioner returns.
NodeAwareHierarchy makeNodeAware(
    MueLu::TpetraOperator<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>& preconditioner,
    const ExchangeOptions& options = {});

}  // namespace Komvos
