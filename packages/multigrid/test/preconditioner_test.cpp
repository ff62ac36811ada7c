// What solves on the coarsest level of a MueLu preconditioner, and what becomes of it when that is reused.
#if __has_include(<Amesos2_config.h>)
#include <Amesos2_config.h>
#endif
#include <gtest/gtest.h>
#include <mpi.h>

#include <MueLu_TpetraOperator.hpp>
#include <Tpetra_Core.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_DirectSolver.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_MueLuLevels.hpp"
#include "Komvos_MueLuPreconditioner.hpp"
#include "Komvos_NodeTopology.hpp"
#include "support/grid_support.hpp"
#include "support/matrix_support.hpp"
#include "support/mpi_support.hpp"

namespace {

using namespace KomvosTest;
using Komvos::DirectMethod;
using Komvos::DirectSolver;
using Komvos::Impl::MueLuLevels;
using TpetraOperator = MueLu::TpetraOperator<double, Komvos::DefaultLocalOrdinal, GO, Komvos::DefaultNode>;

constexpr GO edge = 24;

int worldSize() { return Tpetra::getDefaultComm()->getSize(); }

MueLuLevels levelsOf(const RCP<Operator>& preconditioner) {
  return MueLuLevels(*Teuchos::rcp_dynamic_cast<TpetraOperator>(preconditioner, true)->GetHierarchy());
}

Komvos::Impl::MueLuSmoother coarsestOf(const RCP<Operator>& preconditioner) {
  const MueLuLevels levels = levelsOf(preconditioner);
  return levels.smoother(levels.count() - 1, "PreSmoother");
}

/// "klu", "mumps" or "superlu-dist", else MueLu's description of its own.
std::string solverOf(const RCP<Operator>& preconditioner) {
  const auto coarsest = coarsestOf(preconditioner);
  const std::string ours = "Komvos: ";
  EXPECT_EQ(coarsest.isOurs, coarsest.type.rfind(ours, 0) == 0) << coarsest.type;
  return coarsest.isOurs ? coarsest.type.substr(ours.size()) : coarsest.type;
}

/// \param expected in small letters
bool says(const std::string& description, const std::string& expected) {
  std::string small = description;
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return small.find(expected) != std::string::npos;
}

Teuchos::ParameterList withCoarsest(const std::string& type) {
  Teuchos::ParameterList parameters;
  parameters.set("coarse: max size", 60);
  if (!type.empty()) {
    parameters.set("coarse: type", type);
  }
  return parameters;
}

/// What the name of a library of ours leads to. \param inAmesos2 whether that has it, too
std::string expectedFor(DirectMethod method, bool inAmesos2) {
  const std::string ofMueLu = method == DirectMethod::mumps ? "MueLu's mumps" : "MueLu's superludist";
  return inAmesos2 ? ofMueLu : DirectSolver::isAvailable(method) ? Komvos::toString(method) : "klu";
}

TEST(CoarsestLevel, IsSolvedByWhatItsTypeNames) {
#ifdef HAVE_AMESOS2_MUMPS
  const std::string mumps = expectedFor(DirectMethod::mumps, true);
#else
  const std::string mumps = expectedFor(DirectMethod::mumps, false);
#endif
#ifdef HAVE_AMESOS2_SUPERLUDIST
  const std::string superluDist = expectedFor(DirectMethod::superluDist, true);
#else
  const std::string superluDist = expectedFor(DirectMethod::superluDist, false);
#endif
  const std::vector<std::pair<std::string, std::string>> cases = {{"", "klu"},
                                                                  {"KLU2", "klu"},
                                                                  {"Amesos2_KLU", "klu"},
                                                                  {"MUMPS", mumps},
                                                                  {"amesos2_mumps", mumps},
                                                                  {"Superlu_dist", superluDist},
                                                                  {"superlu-dist", superluDist},
                                                                  {"relaxation", "klu"},  // MueLu knows capitals only
                                                                  {"Pardisso", "klu"},
                                                                  {"RELAXATION", "MueLu's relaxation"},
                                                                  {"CHEBYSHEV", "MueLu's chebyshev"}};
  const auto matrix = grid(edge, 0.0);
  for (const auto& [type, expected] : cases) {
    const auto preconditioner = Komvos::createMueLuPreconditioner(matrix, withCoarsest(type));
    const std::string solver = solverOf(preconditioner), ofMueLu = "MueLu's ";
    if (expected.rfind(ofMueLu, 0) == 0) {
      EXPECT_TRUE(says(solver, expected.substr(ofMueLu.size()))) << type << ": " << solver;
    } else {
      EXPECT_EQ(solver, expected) << type;
    }
    Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1);
    b.putScalar(1.0);
    EXPECT_GT(iterationsOf("CG", matrix, preconditioner, b, x), 0) << type;
    EXPECT_LT(relativeResidual(*matrix, x, b), 1e-6) << type;
  }
}

/// Of the library that is named, not of another one.
TEST(CoarsestLevel, HasTheFactorsOfItsSolver) {
  const auto matrix = grid(edge, 0.0);
  for (const DirectMethod method : {DirectMethod::mumps, DirectMethod::superluDist}) {
    if (!DirectSolver::isAvailable(method)) {
      continue;
    }
    Teuchos::ParameterList parameters = withCoarsest("");
    parameters.set("node-aware: coarse method", Komvos::toString(method));
    const auto preconditioner = Komvos::createMueLuPreconditioner(matrix, parameters);
    const MueLuLevels levels = levelsOf(preconditioner);
    const auto coarsest = levels.matrix(levels.count() - 1, "A");
    ASSERT_FALSE(coarsest.is_null());
    EXPECT_EQ(coarsestOf(preconditioner).complexity, DirectSolver(*coarsest, method).factorEntries());
  }
}

TEST(CoarsestLevel, IsLeftToMueLuWhereALevelOrAFileSaysHow) {
  const auto matrix = grid(edge, 0.0);
  const int coarsest = levelsOf(Komvos::createMueLuPreconditioner(matrix, withCoarsest(""))).count() - 1;
  ASSERT_GE(coarsest, 1);
  for (int level = 0; level <= coarsest; ++level) {
    Teuchos::ParameterList parameters = withCoarsest("");
    parameters.sublist("level " + std::to_string(level)).set("coarse: type", "CHEBYSHEV");
    const std::string solver = solverOf(Komvos::createMueLuPreconditioner(matrix, parameters));
    EXPECT_TRUE(level == coarsest ? says(solver, "chebyshev") : solver == "klu") << level << ": " << solver;
  }

  const std::string file = ownFile("preconditioner_test");
  const auto comm = Tpetra::getDefaultComm();
  const auto write = [&](const std::string& entries) {
    comm->barrier();
    if (comm->getRank() == 0) {
      std::ofstream(file) << "<ParameterList name=\"MueLu\">" << entries << "</ParameterList>\n";
    }
    comm->barrier();
  };
  Teuchos::ParameterList named = withCoarsest("KLU2");
  named.set("xml parameter file", file);
  write(R"(<Parameter name="coarse: type" type="string" value="CHEBYSHEV"/>)");
  const std::string solver = solverOf(Komvos::createMueLuPreconditioner(matrix, named));
  EXPECT_TRUE(says(solver, "chebyshev")) << "the file goes first: " << solver;
  write(R"(<Parameter name="use node-aware" type="bool" value="true"/>)");
  Komvos::NodeAwareHierarchy made;
  EXPECT_EQ(solverOf(Komvos::createMueLuPreconditioner(matrix, named, {}, {}, {}, {}, &made)), "klu");
  EXPECT_FALSE(made.exchanges.empty()) << "entries of ours, too";
  comm->barrier();
  if (comm->getRank() == 0) {
    std::remove(file.c_str());
  }
  comm->barrier();
  const std::string error = commonError("no file", [&] { Komvos::createMueLuPreconditioner(matrix, named); });
  EXPECT_NE(error.find(file), std::string::npos) << error;
}

/// MueLu's interpreter of parameters of ML keeps factories among those of its smoothers.
TEST(CoarsestLevel, IsSolvedWithParametersOfMlToo) {
  const auto matrix = grid(edge, 0.0);
  Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1), y(matrix->getDomainMap(), 1);
  b.randomize();
  Teuchos::ParameterList parameters;
  parameters.set("parameterlist: syntax", "ml");
  parameters.set("coarse: max size", 60);
  const auto preconditioner = Komvos::createMueLuPreconditioner(matrix, parameters);
  EXPECT_EQ(solverOf(preconditioner), "klu");
  EXPECT_GT(levelsOf(preconditioner).count(), 1);
  preconditioner->apply(b, x);
  const auto made = Komvos::makeNodeAware(*Teuchos::rcp_dynamic_cast<TpetraOperator>(preconditioner, true));
  EXPECT_TRUE(made.kept.empty()) << made.kept.front();
  preconditioner->apply(b, y);
  y.update(-1, x, 1);
  EXPECT_LE(largestEntry(y), 1e-13 * largestEntry(x));
  EXPECT_GT(iterationsOf("CG", matrix, preconditioner, b, x), 0);
  EXPECT_LT(relativeResidual(*matrix, x, b), 1e-6);
  parameters.set("coarse: type", "Jacobi");
  const std::string solver = solverOf(Komvos::createMueLuPreconditioner(matrix, parameters));
  EXPECT_TRUE(says(solver, "relaxation")) << solver;
}

std::vector<std::string> methods() {
  std::vector<std::string> all = {"klu"};
  for (const DirectMethod method : {DirectMethod::mumps, DirectMethod::superluDist}) {
    if (DirectSolver::isAvailable(method)) {
      all.push_back(Komvos::toString(method));
    }
  }
  return all;
}

TEST(CoarsestLevel, RefusesEntriesThatContradictEachOther) {
  const auto matrix = grid(edge, 0.0);
  for (const auto& [method, type] :
       {std::pair("klu", "CHEBYSHEV"), std::pair("mumps", "RELAXATION"), std::pair("klu", "MUMPS")}) {
    Teuchos::ParameterList parameters = withCoarsest(type);
    parameters.set("node-aware: coarse method", method);
    commonError(method, [&, &type = type] { Komvos::createMueLuPreconditioner(matrix, parameters); });
  }
  for (const std::string& method : methods()) {
    for (const std::string& type : {std::string("KLU"), method}) {
      Teuchos::ParameterList parameters = withCoarsest(type);
      parameters.set("node-aware: coarse method", method);
      EXPECT_EQ(solverOf(Komvos::createMueLuPreconditioner(matrix, parameters)), method) << type;
    }
  }
}

TEST(CoarsestLevel, IsSolvedOnTheRanksThatAreAskedFor) {
  const auto matrix = grid(edge, 0.0);
  Komvos::ExchangeOptions options;
  options.topology = std::make_shared<const Komvos::NodeTopology>(
      Komvos::NodeTopology::uniform(worldSize(), 2));  // the last may be one
  const int nodes = (worldSize() + 1) / 2;
  const auto check = [&](const auto& solvers, int solving) {
    Teuchos::ParameterList parameters = withCoarsest("");
    parameters.set("node-aware: coarse solvers", solvers);
    const auto preconditioner = Komvos::createMueLuPreconditioner(matrix, parameters, {}, {}, {}, options);
    int here = coarsestOf(preconditioner).complexity > 0 ? 1 : 0, all = 0;
    MPI_Allreduce(&here, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_EQ(all, solving) << solvers;
  };
  check("one", 1);
  check("each node", nodes);
  check("auto", nodes);
  for (const int solvers : {1, 2, 3, 1000}) {
    check(solvers, std::min(solvers, nodes));
  }
}

/// A hierarchy of one level is its coarse solver: the inverse of the matrix.
TEST(CoarsestLevel, IsFactoredAgainWhenAPreconditionerIsReused) {
  const auto matrix = grid(edge, 0.0), next = withOtherValues(*grid(edge, 0.3));
  Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1);
  b.randomize();
  for (const std::string& method : methods()) {
    for (const char* const reuse : {"none", "RP", "full"}) {
      SCOPED_TRACE(method + ", " + reuse);
      Teuchos::ParameterList parameters;
      parameters.set("coarse: max size", 10000);
      parameters.set("node-aware: coarse method", method);
      parameters.set("reuse: type", reuse);
      const auto preconditioner = Komvos::createMueLuPreconditioner(matrix, parameters);
      ASSERT_EQ(levelsOf(preconditioner).count(), 1);
      preconditioner->apply(b, x);
      EXPECT_LT(relativeResidual(*matrix, x, b), 1e-12);
      for (const auto& values : {next, matrix}) {
        Komvos::reuseMueLuPreconditioner(values, *preconditioner);
        preconditioner->apply(b, x);
        EXPECT_LT(relativeResidual(*values, x, b), 1e-12);
      }
    }
  }
}

/// The same matrix on a duplicate of its communicator, which it holds alone.
RCP<Matrix> onOtherComm(const Matrix& matrix) {
  const auto rows = makeMap(globalIds(*matrix.getRowMap()), matrix.getComm()->duplicate());
  const auto copy = rcp(new Matrix(rows, matrix.getGlobalMaxNumRowEntries()));
  const auto local = matrix.getLocalMatrixHost();
  for (int row = 0; row < static_cast<int>(Komvos::Impl::localRows(matrix)); ++row) {
    for (auto k = local.graph.row_map(row); k < local.graph.row_map(row + 1); ++k) {
      copy->insertGlobalValues(rows->getGlobalElement(row),
                               Teuchos::tuple<GO>(matrix.getColMap()->getGlobalElement(local.graph.entries(k))),
                               Teuchos::tuple<double>(local.values(k)));
    }
  }
  copy->fillComplete(rows, rows);
  return copy;
}

TEST(CoarsestLevel, OutlivesTheCommunicatorOfTheMatrixBefore) {
  for (const bool nodeAware : {false, true}) {
    Teuchos::ParameterList parameters = withCoarsest("");
    parameters.set("use node-aware", nodeAware);
    RCP<Matrix> matrix = onOtherComm(*grid(edge, 0.0));
    const auto preconditioner = Komvos::createMueLuPreconditioner(matrix, parameters);
    for (const double wind : {0.2, 0.1}) {
      Vector b(matrix->getRangeMap(), 1), x(matrix->getDomainMap(), 1);
      b.putScalar(1.0);
      EXPECT_GT(iterationsOf("GMRES", matrix, preconditioner, b, x), 0);
      EXPECT_LT(relativeResidual(*matrix, x, b), 1e-6);
      matrix = onOtherComm(*grid(edge, wind));
      Komvos::reuseMueLuPreconditioner(matrix, *preconditioner);
    }
  }
}

}  // namespace
