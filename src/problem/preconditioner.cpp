#include "problem/preconditioner.hpp"

#include <Ifpack2_Relaxation.hpp>
#include <algorithm>

#include "Komvos_Error.hpp"
#include "Komvos_MueLuPreconditioner.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"

namespace Komvos::Program {

namespace {

void requireDiagonal(const MatrixTraits& traits, const std::string& kind) {
  if (traits.zeroDiagonalRow >= 0) {
    throw BadInput("the diagonal entry of row " + std::to_string(traits.zeroDiagonalRow + 1) + " is zero, --prec " +
                   kind + " divides by it; try --prec none --solver gmres");
  }
}

Preconditioner makeJacobi(const Teuchos::RCP<Matrix>& matrix) {
  using Relaxation = Ifpack2::Relaxation<Tpetra::RowMatrix<>>;
  const auto jacobi = Teuchos::rcp(new Relaxation(matrix));
  Teuchos::ParameterList parameters;
  parameters.set("relaxation: type", "Jacobi");
  jacobi->setParameters(parameters);
  jacobi->initialize();
  jacobi->compute();
  return {jacobi, "Jacobi (Ifpack2)", {}, {}};
}

/// MueLu's own default, Gauss-Seidel inside each rank, is not definite in parallel: CG with it breaks down on the power
/// grid dcpf_case8387pegase on 4 ranks. Chebyshev stays definite on any number of ranks.
void preferChebyshev(Teuchos::ParameterList& parameters) {
  for (auto entry = parameters.begin(); entry != parameters.end(); ++entry) {
    if (parameters.name(entry).find("smoother: ") == 0) {
      return;
    }
  }
  parameters.set("smoother: type", "CHEBYSHEV");
  parameters.sublist("smoother: params").set("chebyshev: degree", 2);
}

Preconditioner makeMueLu(const Problem& problem, const MatrixTraits& traits, const Teuchos::RCP<Matrix>& matrix,
                         Teuchos::ParameterList& parameters, const ExchangeOptions& exchange,
                         const LevelOperatorVisitor& visit) {
  if (traits.symmetric && traits.positiveDiagonal) {
    preferChebyshev(parameters);
  }
  if (problem.dofsPerNode > 1 && !parameters.isParameter("number of equations")) {
    parameters.set("number of equations", problem.dofsPerNode);
  }
  // An aggregate of fewer unknowns than the null space has columns leaves empty coarse rows.
  if (!problem.nullspace.is_null() && !parameters.isParameter("rap: fix zero diagonals")) {
    parameters.set("rap: fix zero diagonals", true);
  }
  const char* const nodeAware = "use node-aware";
  if (!parameters.isParameter(nodeAware) && !Teuchos::rcp_dynamic_cast<NodeAwareCrsMatrix<>>(matrix).is_null()) {
    parameters.set(nodeAware, true);
  }
  Preconditioner result;
  int levels = 1;
  const auto collect = [&](int level, const std::string& name, const Matrix& A) {
    if (visit) {
      visit(level, name, A);
    }
    levels = std::max(levels, level + 1);
    const bool everywhere = A.getComm()->getSize() == matrix->getComm()->getSize();
    if (level > 0 && everywhere) {
      result.levelGraphs.push_back({"level " + std::to_string(level) + " " + name, level, A.getCrsGraph()});
    }
  };
  result.op = createMueLuPreconditioner(matrix, parameters, problem.nullspace, problem.coordinates, collect, exchange,
                                        &result.hierarchy);
  // Rebalancing may leave rank 0 without a part of the coarsest ones.
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &levels, 1, MPI_INT, MPI_MAX, mpiOf(matrix->getComm())), "MPI_Allreduce");
  result.description = "MueLu, " + std::to_string(levels) + (levels == 1 ? " level" : " levels");
  return result;
}

}  // namespace

Preconditioner makePreconditioner(const std::string& kind, const Problem& problem, const MatrixTraits& traits,
                                  const Teuchos::RCP<Matrix>& matrix, Teuchos::ParameterList& muelu,
                                  const ExchangeOptions& exchange, const LevelOperatorVisitor& visit) {
  if (kind == "jacobi") {
    requireDiagonal(traits, kind);
    return makeJacobi(matrix);
  }
  if (kind == "muelu") {
    if (muelu.numParams() == 0) {  // else the smoothers may be such that do not divide
      requireDiagonal(traits, kind);
    }
    return makeMueLu(problem, traits, matrix, muelu, exchange, visit);
  }
  return {Teuchos::null, "none", {}, {}};
}

}  // namespace Komvos::Program
