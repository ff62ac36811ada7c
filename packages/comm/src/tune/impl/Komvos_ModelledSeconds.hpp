/// \file Komvos_ModelledSeconds.hpp
/// The machine model applied to a plan of which every rank knows its own part.
#pragma once

#include <mpi.h>

#include "Komvos_ExchangePlan.hpp"
#include "Komvos_MachineModel.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_SetupTransport.hpp"

namespace Komvos::Impl {

/// Seconds of one exchange of one column of double.
struct ModelledSeconds {
  double all = 0;  ///< of all messages
  double betweenNodes =
      0;  ///< of messages between nodes only: a lower bound with shared memory, which no formula models
};

/// \note Collective on `comm`, which has the ranks of the transport.
/// \throws BadInput on all ranks if the machine was calibrated on one node and the plan has several
ModelledSeconds modelledSeconds(MPI_Comm comm, SetupTransport& transport, const MachineModel& machine,
                                const NodeTopology& nodes, const ExchangePlan& plan);

}  // namespace Komvos::Impl
