/// \file Komvos_RouteCandidates.hpp
/// The variants of a halo that are worth comparing: routes, each by messages and by shared memory on the nodes.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "Komvos_ExchangePlan.hpp"
#include "Komvos_HaloReport.hpp"
#include "Komvos_ModelledSeconds.hpp"
#include "Komvos_Pattern.hpp"
#include "Komvos_ResolvedOptions.hpp"
#include "Komvos_SetupTransport.hpp"

namespace Komvos::Impl {

/// The routes, beside the standard one, that differ from each other on these nodes, the three-step route first.
/// \param sockets may be null
std::vector<RouteChoice> combiningRoutes(const NodeTopology& nodes, const NodeTopology* sockets);

/// A variant that is planned, and what is known about its time.
struct Candidate {
  HaloCandidate report;
  std::shared_ptr<const ExchangePlan> plan;
  ModelledSeconds modelled;     ///< zero without a machine model
  std::vector<double> seconds;  ///< measured, one for each repeat, maximum over ranks
};

/// Plans one more route, by messages. \param patterns of this rank, normalized; their standard route is planned
/// \note Collective on the transport. \throws BadInput on all ranks
Candidate planCandidate(PrivateComm& comm, MpiSetupTransport& transport, const ResolvedOptions& options,
                        const std::vector<Pattern>& patterns, const RouteChoice& choice);

/// Adds what the machine model says, if the options have one. \note Collective on the transport if they have.
void addModel(const PrivateComm& comm, MpiSetupTransport& transport, const ResolvedOptions& options,
              Candidate& candidate);

/// Whether vectors of the default device can go through shared memory at all.
bool canShareMemory(const ResolvedOptions& options);

/// Plans the candidates that the options allow.
/// \param standard the standard route by messages, which is a reference in any case
/// \param pattern  normalized
/// \param options  with the decision of a tuning cache, if there is one, already taken over
/// \return `standard`, then the others
/// \note Collective on `comm`. \throws BadInput on all ranks
std::vector<Candidate> planCandidates(MPI_Comm comm, Candidate standard, Pattern pattern,
                                      const ResolvedOptions& options);

}  // namespace Komvos::Impl
