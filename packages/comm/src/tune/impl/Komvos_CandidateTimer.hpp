/// \file Komvos_CandidateTimer.hpp
/// Times the candidates of a halo on this machine.
#pragma once

#include <mpi.h>

#include <vector>

#include "Komvos_RouteCandidates.hpp"

namespace Komvos::Impl {

/// Times exchanges of one halo, on vectors of its own.
class CandidateTimer {
 public:
  /// \param numOwned, numTarget entries of the vectors on this rank, as in Pattern
  /// \param mpiIsGpuAware, forceStaging as for Exchange
  CandidateTimer(MPI_Comm comm, int numOwned, int numTarget, bool mpiIsGpuAware, bool forceStaging)
      : comm_(comm),
        numOwned_(numOwned),
        numTarget_(numTarget),
        mpiIsGpuAware_(mpiIsGpuAware),
        forceStaging_(forceStaging) {}

  /// Runs the contenders in turn, so that a disturbance hits all of them, in an order that rotates. Sets `seconds` and
  /// `report.measuredSeconds` of each.
  /// \note Collective.
  void measure(const std::vector<Candidate*>& contenders, int repeats) const;

 private:
  MPI_Comm comm_;
  int numOwned_;
  int numTarget_;
  bool mpiIsGpuAware_;
  bool forceStaging_;
};

}  // namespace Komvos::Impl
