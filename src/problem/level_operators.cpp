#include "problem/level_operators.hpp"

#include <algorithm>
#include <set>

#include "Komvos_CoarseSolver.hpp"
#include "Komvos_MueLuPreconditioner.hpp"
#include "problem/preconditioner.hpp"
#include "problem/virtual_partition.hpp"

namespace Komvos::Program {

namespace {

using LO = DefaultLocalOrdinal;

/// Owners in the order of a matrix' local columns.
std::vector<int> columnOwners(const Matrix& matrix, const std::vector<int>& domainOwners) {
  const Map& columns = *matrix.getColMap();
  const Map& domain = *matrix.getDomainMap();
  std::vector<int> owners(Impl::localLength(columns));
  for (std::size_t c = 0; c < owners.size(); ++c) {
    owners[c] = domainOwners[domain.getLocalElement(columns.getGlobalElement(static_cast<LO>(c)))];
  }
  return owners;
}

}  // namespace

LevelOperators::LevelOperators(const Problem& problem, std::vector<int> owners, int numRanks)
    : numRanks_(numRanks), operators_{{0, "A", problem.matrix}}, owners_{std::move(owners)} {}

void LevelOperators::addHierarchy(const Problem& problem, Teuchos::ParameterList& muelu, const NodeTopology& nodes) {
  const MatrixTraits traits = examine(*problem.matrix);
  const auto visit = [this](int level, const std::string& name, const Matrix& matrix) {
    if (level > 0) {
      operators_.push_back({level, name, Teuchos::rcp(new Matrix(matrix))});  // shares graph and values
    }
  };
  const int numCoarseSolvers = coarseSolversOf(muelu);  // before entries of ours are taken out
  ExchangeOptions exchange;                             // nobody applies the preconditioner
  makePreconditioner("muelu", problem, traits, problem.matrix, muelu, exchange, visit);
  const int modes =
      problem.nullspace.is_null() ? problem.dofsPerNode : static_cast<int>(problem.nullspace->getNumVectors());
  for (const Entry& entry : operators_) {
    if (entry.name == "P") {
      const bool whole = entry.matrix->getGlobalNumCols() % modes == 0;
      owners_.push_back(coarseOwners(*entry.matrix, owners_[entry.level - 1], whole ? modes : 1));
    }
  }
  if (const int coarsest = operators_.back().level; coarsest > 0) {
    const CoarseSolverRanks solvers(nodes, numCoarseSolvers);
    for (int solver = 0; solver < solvers.count(); ++solver) {
      solvers_.push_back(solvers.rank(solver));
    }
    for (int rank = 0; rank < numRanks_; ++rank) {
      solverOf_.push_back(solvers.solverOf(rank));
    }
    operators_.push_back({coarsest, "G", Teuchos::null});
    operators_.push_back({coarsest, "S", Teuchos::null});
  }
}

/// As a product: solvers have all rows, one copy after the other. G fills the copies from the rows, S the rows from one
/// copy each.
LevelOperator LevelOperators::gathered(const Entry& entry) const {
  const std::vector<int>& owners = owners_[entry.level];
  std::vector<int> copies;  // their ranks
  for (const int solver : solvers_) {
    copies.insert(copies.end(), owners.size(), solver);
  }
  const bool gathers = entry.name == "G";
  const std::vector<int>& to = gathers ? copies : owners;
  std::vector<std::size_t> offsets(to.size() + 1);
  std::vector<int> columns(to.size());
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::size_t row = i % owners.size();
    columns[i] = static_cast<int>(gathers ? row : solverOf_[owners[row]] * owners.size() + row);
    offsets[i + 1] = i + 1;
  }
  const CsrStructure structure{to.size(), offsets.data(), columns.data()};
  return {entry.level,
          entry.name,
          static_cast<long long>(owners.size()),
          static_cast<long long>(to.size()),
          static_cast<int>(std::set<int>(to.begin(), to.end()).size()),
          VirtualHalo::ofProduct(numRanks_, structure, to, gathers ? owners : copies)};
}

LevelOperator LevelOperators::get(int index) const {
  const Entry& entry = operators_.at(index);
  if (entry.matrix.is_null()) {
    return gathered(entry);
  }
  const std::vector<int>& rows = owners_[entry.level - (entry.name == "P" ? 1 : 0)];
  const std::vector<int>& columns = owners_[entry.level - (entry.name == "R" ? 1 : 0)];
  const auto graph = entry.matrix->getLocalMatrixHost().graph;
  const CsrStructure structure{static_cast<std::size_t>(graph.numRows()), graph.row_map.data(), graph.entries.data()};
  return {entry.level,
          entry.name,
          static_cast<long long>(entry.matrix->getGlobalNumRows()),
          static_cast<long long>(Impl::localEntries(*entry.matrix)),
          static_cast<int>(std::set<int>(rows.begin(), rows.end()).size()),
          VirtualHalo::ofProduct(numRanks_, structure, rows, columnOwners(*entry.matrix, columns))};
}

}  // namespace Komvos::Program
