/// \file preconditioner.hpp
/// MueLu or Jacobi for a problem.
#pragma once

#include <Tpetra_Operator.hpp>
#include <string>
#include <vector>

#include "Komvos_ExchangeOptions.hpp"
#include "Komvos_MueLuPreconditioner.hpp"
#include "problem/problem.hpp"

namespace Komvos::Program {

/// The graph of a matrix of a multigrid hierarchy, below the finest one: "level 1 A", "level 1 P", ...
struct LevelGraph {
  std::string name;
  int level;
  Teuchos::RCP<const Tpetra::CrsGraph<>> graph;
};

struct Preconditioner {
  Teuchos::RCP<Tpetra::Operator<>> op;  ///< null for "none"
  std::string description;
  NodeAwareHierarchy hierarchy;  ///< what exchanges node-aware in it; empty if it is no such hierarchy
  std::vector<LevelGraph> levelGraphs;
};

/// \param kind      "muelu", "jacobi" or "none"
/// \param matrix    the problem's matrix, as it is given to Belos; if it is node-aware, so is MueLu's hierarchy, unless
///                  the parameters say otherwise
/// \param muelu     parameters for MueLu; what they leave open is taken from the problem
/// \param visit     as in createMueLuPreconditioner, for muelu
/// \note Collective.
/// \throws BadInput on all ranks if the matrix does not allow it
Preconditioner makePreconditioner(const std::string& kind, const Problem& problem, const MatrixTraits& traits,
                                  const Teuchos::RCP<Matrix>& matrix, Teuchos::ParameterList& muelu,
                                  const ExchangeOptions& exchange, const LevelOperatorVisitor& visit = {});

}  // namespace Komvos::Program
