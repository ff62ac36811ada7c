/// \file Komvos_HaloDescription.hpp
/// A halo in words, for describe().
#pragma once

#include <Teuchos_Describable.hpp>
#include <Teuchos_FancyOStream.hpp>
#include <cstddef>
#include <string>

#include "Komvos_ExchangePlan.hpp"
#include "Komvos_HaloReport.hpp"

namespace Komvos::Impl {

/// "route three-step, on node sharedMemory, 12 messages between nodes with 340 values, 20 on nodes with 96": of one
/// exchange of one column, over all ranks.
std::string haloInOneLine(const HaloReport& report);

/// All ranks together: route, messages, neighbours, times, and from VERB_MEDIUM on what was considered.
std::string haloOfAllRanks(const HaloReport& report, Teuchos::EVerbosityLevel level);

/// This rank: its messages, values and memory, with VERB_EXTREME every message.
std::string haloOfRank(const ExchangePlan& plan, std::size_t memoryBytes, Teuchos::EVerbosityLevel level);

}  // namespace Komvos::Impl
