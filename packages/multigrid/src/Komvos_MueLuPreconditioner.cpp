#include "Komvos_MueLuPreconditioner.hpp"

#include <MueLu_CreateTpetraPreconditioner.hpp>
#include <MueLu_Hierarchy.hpp>
#include <MueLu_Level.hpp>
#include <MueLu_SmootherBase.hpp>
#include <MueLu_TpetraOperator.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <Xpetra_CrsMatrixWrap.hpp>
#include <Xpetra_TpetraCrsMatrix.hpp>
#include <Xpetra_TpetraMultiVector.hpp>

#include "Komvos_CoarseSolver.hpp"
#include "Komvos_Error.hpp"

namespace Komvos {

namespace {

using SC = DefaultScalar;
using LO = DefaultLocalOrdinal;
using GO = DefaultGlobalOrdinal;
using NO = DefaultNode;
using Teuchos::RCP;
using Smoother = MueLu::SmootherBase<SC, LO, GO, NO>;
using Hierarchy = MueLu::Hierarchy<SC, LO, GO, NO>;
using XpetraOperator = Xpetra::Operator<SC, LO, GO, NO>;
using XpetraMultiVector = Xpetra::MultiVector<SC, LO, GO, NO>;

/// CoarseSolver where MueLu expects a smoother. The solution does not depend on the initial guess.
class CoarseSolverSmoother : public Smoother {
 public:
  explicit CoarseSolverSmoother(const Tpetra::CrsMatrix<>& matrix, const ExchangeOptions& options)
      : solver_(matrix, options) {}
  void Apply(XpetraMultiVector& x, const XpetraMultiVector& rhs, bool) const override {
    solver_.apply(Xpetra::toTpetra(rhs), Xpetra::toTpetra(x));
  }
  size_t getNodeSmootherComplexity() const override { return solver_.factorEntries(); }

 private:
  CoarseSolver solver_;
};

/// The Tpetra matrix a level keeps under `key`; null if there is none, also on ranks that rebalancing left empty.
RCP<const Tpetra::CrsMatrix<>> levelMatrix(MueLu::Level& level, const std::string& key) {
  if (!level.IsAvailable(key)) {
    return {};
  }
  const auto wrapped =
      Teuchos::rcp_dynamic_cast<Xpetra::CrsMatrixWrap<SC, LO, GO, NO>>(level.Get<RCP<XpetraOperator>>(key));
  if (wrapped.is_null()) {
    return {};
  }
  const auto matrix = Teuchos::rcp_dynamic_cast<Xpetra::TpetraCrsMatrix<SC, LO, GO, NO>>(wrapped->getCrsMatrix());
  return matrix.is_null() ? RCP<const Tpetra::CrsMatrix<>>() : matrix->getTpetra_CrsMatrix();
}

bool solvesCoarsestByKlu(const Teuchos::ParameterList& parameters) {
  const std::string type =
      parameters.isParameter("coarse: type") ? parameters.get<std::string>("coarse: type") : "KLU2";
  return type.empty() || type == "KLU2" || type == "Klu" || type == "KLU" || type == "Klu2" || type == "Amesos-KLU";
}

void setUserData(Teuchos::ParameterList& parameters, const RCP<Tpetra::MultiVector<>>& nullspace,
                 const RCP<Tpetra::MultiVector<>>& coordinates) {
  Teuchos::ParameterList& userData = parameters.sublist("user data");
  if (!nullspace.is_null()) {
    userData.set("Nullspace", nullspace);
  }
  if (!coordinates.is_null()) {
    userData.set("Coordinates", coordinates);
  }
}

/// Puts CoarseSolver in the place of the coarsest level's smoothers. After rebalancing, its matrix lives on a part of
/// the ranks, and the others have none.
void replaceCoarseSolver(MueLu::Level& coarsest, const ExchangeOptions& options) {
  const auto matrix = levelMatrix(coarsest, "A");
  if (matrix.is_null()) {
    return;
  }
  coarsest.Set<RCP<Smoother>>("PreSmoother", Teuchos::rcp(new CoarseSolverSmoother(*matrix, options)));
  if (coarsest.IsAvailable("PostSmoother")) {
    coarsest.Delete("PostSmoother", MueLu::NoFactory::get());
  }
}

/// The same, but if it throws on some ranks, all ranks of `comm` throw.
/// \note Collective on `comm`, the communicator of the finest level.
void replaceCoarseSolverOnAll(MPI_Comm comm, MueLu::Level& coarsest, const ExchangeOptions& options) {
  std::string error;
  try {
    replaceCoarseSolver(coarsest, options);
  } catch (const std::exception& thrown) {
    error = thrown.what();
  }
  throwOnAllIfAny(comm, error);
}

void visitLevels(Hierarchy& hierarchy, const LevelOperatorVisitor& visit) {
  for (int level = 0; level < hierarchy.GetNumLevels(); ++level) {
    for (const char* key : {"A", "P", "R"}) {
      if (const auto found = levelMatrix(*hierarchy.GetLevel(level), key); !found.is_null()) {
        visit(level, key, *found);
      }
    }
  }
}

}  // namespace

RCP<Tpetra::Operator<>> createMueLuPreconditioner(const RCP<Tpetra::CrsMatrix<>>& matrix,
                                                  const Teuchos::ParameterList& given,
                                                  const RCP<Tpetra::MultiVector<>>& nullspace,
                                                  const RCP<Tpetra::MultiVector<>>& coordinates,
                                                  const LevelOperatorVisitor& visit, const ExchangeOptions& options) {
  Teuchos::ParameterList parameters(given);
  if (!parameters.isParameter("verbosity")) {
    parameters.set("verbosity", "none");
  }
  const bool ownCoarseSolver = solvesCoarsestByKlu(parameters);
  if (ownCoarseSolver) {
    parameters.set("coarse: type", "RELAXATION");  // cheap to set up; replaced below
  }
  setUserData(parameters, nullspace, coordinates);
  const auto preconditioner = MueLu::CreateTpetraPreconditioner(RCP<Tpetra::Operator<>>(matrix), parameters);
  const RCP<Hierarchy> hierarchy = preconditioner->GetHierarchy();
  if (ownCoarseSolver) {
    replaceCoarseSolverOnAll(Tpetra::Details::extractMpiCommFromTeuchos(*matrix->getComm()),
                             *hierarchy->GetLevel(hierarchy->GetNumLevels() - 1), options);
  }
  if (visit) {
    visitLevels(*hierarchy, visit);
  }
  return preconditioner;
}

}  // namespace Komvos
