/// \file analyze_report.hpp
/// What `komvos analyze` found: as a table, CSV, JSON, and one sentence.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "analyze/virtual_cluster.hpp"

namespace Komvos::Program {

struct OperatorResult {
  int level = 0;
  std::string name;  ///< "A", "P", "R"
  long long rows = 0;
  long long entries = 0;
  int ranksWithRows = 0;
  long long needs = 0;              ///< pairs of a value and a rank that needs it
  std::vector<RouteResult> routes;  ///< standard first

  std::string label() const { return std::to_string(level) + " " + name; }
  const RouteResult& standard() const { return routes.front(); }
  const RouteResult& fastest() const;  ///< by the model
};

struct AnalyzeReport {
  std::string problem;
  std::string partition, pairing, topology, machine;
  int ranks = 0;
  int nodes = 0;
  bool hierarchy = false;
  std::vector<std::string> networks;  ///< simulated ones, with their parameters
  std::vector<OperatorResult> operators;

  std::string cluster() const { return topology + " of " + machine; }  ///< for people
  double standardSeconds() const;                                      ///< modelled, one exchange of every operator
  double fastestSeconds() const;                                       ///< the same, each operator by its fastest route
  std::vector<std::string> simulatedKinds() const;                     ///< of networks: "torus", "fat-tree"
};

void writeText(std::ostream& out, const AnalyzeReport& report);
void writeCsv(std::ostream& out, const AnalyzeReport& report);
void writeJson(std::ostream& out, const AnalyzeReport& report);

/// Whether other routes than standard help, where and by how much according to the model, and what SimGrid says about
/// the same routes if it was asked.
std::string conclusion(const AnalyzeReport& report);

}  // namespace Komvos::Program
