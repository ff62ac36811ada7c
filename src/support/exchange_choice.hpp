/// \file exchange_choice.hpp
/// The part of the command line that says how halos are exchanged, and what it comes to.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "Komvos_ExchangeOptions.hpp"

namespace CLI {
class App;
}

namespace Komvos::Program {

struct ExchangeChoice {
  std::string ranksPerNode;
  int ranksPerSocket = 0;  ///< 0: not given
  std::string route;
  std::string pairing;
  std::string intraNode;
  std::string tuning;
  std::string machine;
  std::string tuningCacheFile;
  bool requireTuningCache = false;
  std::string saveTuningCacheFile;
};

/// For reports.
struct ExchangeSummary {
  std::string topology;  ///< for people
  std::vector<int> ranksPerNode;
  int ranks = 0;
  bool topologyGiven = false;
  std::string route, pairing, intraNode;  ///< as asked for
  std::string tuning;
  bool fromTuningCache = false;  ///< a tuning cache decides instead, where it has a decision
};

/// Adds --ranks-per-node, --route and the like to a subcommand; parsing fills `choice`, which must outlive it.
void addExchangeOptions(CLI::App& command, ExchangeChoice& choice);

/// Options for all halos of this run, none of them left to the environment: the command line, then the environment,
/// then defaults. What was found is noted in the summary.
/// \note Collective on `comm`. \throws BadInput on all ranks
ExchangeOptions resolveExchange(const ExchangeChoice& choice, MPI_Comm comm, ExchangeSummary& summary);

/// Writes the decisions for --tuning-cache, from rank 0: those of this run, and those that were read for other halos.
/// \note Collective on `comm`. \throws BadInput on all ranks
void saveTuningCache(const std::string& path, const ExchangeOptions& exchange, MPI_Comm comm);

}  // namespace Komvos::Program
