/// \file model_table.hpp
/// A calibrated machine, for people.
#pragma once

#include <string>

#include "Komvos_MachineModel.hpp"

namespace Komvos::Program {

/// "between nodes, 4 pairs".
std::string nameOf(const MeasuredSeries& series);

/// Prints the parameters, and for each measured time what the model makes of it.
void printTable(const MachineModel& machine);

}  // namespace Komvos::Program
