/// \file level_operators.hpp
/// The operators whose halos are analyzed: the matrix, and the hierarchy that MueLu makes of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "Komvos_NodeTopology.hpp"
#include "Komvos_VirtualHalo.hpp"
#include "problem/problem.hpp"

namespace Komvos::Program {

struct LevelOperator {
  int level;         ///< 0 is the finest; P and R belong to the coarser of their two levels
  std::string name;  ///< "A", "P", "R"; of the coarsest level "G" and "S", what CoarseSolver gathers and scatters
  long long rows;
  long long entries;  ///< of G and S: values that arrive
  int ranksWithRows;  ///< of `numRanks`
  VirtualHalo halo;   ///< of the product with a vector
};

/// Operators with the owners of their rows and columns, from fine to coarse.
class LevelOperators {
 public:
  /// The matrix of the problem alone.
  LevelOperators(const Problem& problem, std::vector<int> owners, int numRanks);

  /// Sets up a MueLu preconditioner for the problem, and takes A, P and R of every level, and what CoarseSolver would
  /// send on these nodes. One process only.
  /// \throws BadInput if the matrix does not allow it; what MueLu throws
  void addHierarchy(const Problem& problem, Teuchos::ParameterList& muelu, const NodeTopology& nodes);

  int count() const { return static_cast<int>(operators_.size()); }
  /// Computed on each call, for a halo may be larger than its matrix.
  LevelOperator get(int index) const;

 private:
  struct Entry {
    int level;
    std::string name;
    Teuchos::RCP<const Matrix> matrix;  // null for G and S
  };

  LevelOperator gathered(const Entry& entry) const;

  int numRanks_;
  std::vector<Entry> operators_;
  std::vector<std::vector<int>> owners_;  // of the rows of each level
  std::vector<int> solvers_;              // ranks that solve the coarsest level
  std::vector<int> solverOf_;             // for each rank, an index in solvers_
};

}  // namespace Komvos::Program
