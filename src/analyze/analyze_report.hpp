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
  const RouteResult& fastest() const;
};

struct AnalyzeReport {
  std::string problem;
  std::string partition, pairing, topology, machine;
  int ranks = 0;
  int nodes = 0;
  bool hierarchy = false;
  std::vector<std::string> networks;  ///< simulated ones, with their parameters
  std::vector<OperatorResult> operators;
};

void writeText(std::ostream& out, const AnalyzeReport& report);
void writeCsv(std::ostream& out, const AnalyzeReport& report);
void writeJson(std::ostream& out, const AnalyzeReport& report);

/// Whether another route than standard would help, where, and by how much, by the modelled times; and what SimGrid says
/// of these choices, where it was asked.
std::string conclusion(const AnalyzeReport& report);

}  // namespace Komvos::Program
