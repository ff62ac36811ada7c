/// \file bem_report.hpp
/// The result of `komvos bem`, for people and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "Komvos_HMatrixOperator.hpp"
#include "Komvos_HMatrixPreconditioner.hpp"
#include "bem/boundary_problem.hpp"
#include "bem/error_estimate.hpp"
#include "bem/product_times.hpp"
#include "problem/belos_solve.hpp"
#include "support/exchange_choice.hpp"

namespace Komvos::Program {

/// Where the time of a solve went: seconds, the mean of all ranks.
struct SolveParts {
  double product = 0, exchange = 0, preconditioner = 0, rest = 0;
};

struct BemSolve : BelosResult {
  std::string preconditioner;
  HMatrixPreconditionerReport preconditionerReport;
  int rightHandSides = 0;
  int groups = 0;  ///< of right-hand sides that were solved together, one after the other; iterations are their sum
  long products = 0;
  SolveParts parts;
};

struct BemReport : ExchangeSummary {
  std::string geometry, kernel, problem;
  int triangles = 0, bodies = 0;
  long long vertices = 0;
  double area = 0;
  std::vector<std::string> faults;
  double accuracy = 0, eta = 0;
  int leafSize = 0, depth = 0;
  std::string approximation, clusterSplit, storage;
  bool isComplex = false;
  HMatrixOperatorReport matrix;
  ErrorEstimate error;
  ProductTimes products;
  std::optional<BemSolve> solve;
  PhysicsReport physics;
  double meshSeconds = 0;   ///< reading or generating, checking
  double setupSeconds = 0;  ///< clusters and matrix
};

std::string toText(const BemReport& report);
std::string toJson(const BemReport& report);

/// "not converged: ..." on one line; empty if it converged, or if nothing was solved.
std::string whyNotConverged(const BemReport& report);

}  // namespace Komvos::Program
