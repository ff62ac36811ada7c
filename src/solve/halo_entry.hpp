/// \file halo_entry.hpp
/// What the report of a solve says about one halo.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "Komvos_HaloReport.hpp"

namespace Komvos::Program {

struct HaloEntry {
  std::string name;  ///< "A", "level 1 P"
  int level;         ///< 0 is the finest
  bool used;         ///< exchanged by Komvos in this solve; else only planned, to see what there is to gain
  HaloReport report;
};

/// Adds what other ranks know: rebalancing leaves coarse levels on some of the ranks, perhaps without rank 0. Then all
/// ranks have the same, level by level. \note Collective on `comm`.
void addOfAllRanks(std::vector<HaloEntry>& halos, MPI_Comm comm);
/// The same with sentences, one for each "level N, NAME: " that they begin with.
void addOfAllRanks(std::vector<std::string>& sentences, MPI_Comm comm);

}  // namespace Komvos::Program
