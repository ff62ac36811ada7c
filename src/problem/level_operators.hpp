/// \file level_operators.hpp
/// The operators whose halos are analyzed: the matrix, and the hierarchy that MueLu makes of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "Komvos_VirtualHalo.hpp"
#include "problem/problem.hpp"

namespace Komvos::Program {

struct LevelOperator {
  int level;         ///< 0 is the finest; P and R belong to the coarser of their two levels
  std::string name;  ///< "A", "P" or "R"
  long long rows;
  long long entries;
  int ranksWithRows;  ///< of `numRanks`
  VirtualHalo halo;   ///< of the product with a vector
};

/// Operators with the owners of their rows and columns, from fine to coarse.
class LevelOperators {
 public:
  /// The matrix of the problem alone.
  LevelOperators(const Problem& problem, std::vector<int> owners, int numRanks);

  /// Sets up a MueLu preconditioner for the problem, and takes A, P and R of every level. One process only.
  /// \throws BadInput if the matrix does not allow it; what MueLu throws
  void addHierarchy(const Problem& problem, Teuchos::ParameterList& muelu);

  int count() const { return static_cast<int>(operators_.size()); }
  /// Computed on each call, for a halo may be larger than its matrix.
  LevelOperator get(int index) const;

 private:
  struct Entry {
    int level;
    std::string name;
    Teuchos::RCP<const Matrix> matrix;
  };

  int numRanks_;
  std::vector<Entry> operators_;
  std::vector<std::vector<int>> owners_;  // of the rows of each level
};

}  // namespace Komvos::Program
