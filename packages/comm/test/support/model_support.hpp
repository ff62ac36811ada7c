/// \file model_support.hpp
/// Modelled times of exchanges whose plans are all at hand.
#pragma once

#include <vector>

#include "Komvos_ExchangeModel.hpp"

namespace KomvosTest {

/// Seconds. \param plans of all ranks
inline double modelledExchangeTime(const Komvos::MachineModel& machine, const std::vector<Komvos::ExchangePlan>& plans,
                                   const Komvos::NodeTopology& topology, int bytesPerValue) {
  Komvos::ModelAccumulator model(machine, topology, plans.empty() ? 0 : plans.front().numStages);
  for (const Komvos::ExchangePlan& plan : plans) {
    for (const Komvos::PlanMessage& send : plan.sends) {
      model.add(send.stage, plan.rank, send.peer, static_cast<long>(send.count) * bytesPerValue);
    }
  }
  return model.time();
}

}  // namespace KomvosTest
