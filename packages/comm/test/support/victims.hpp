/// \file victims.hpp
/// Which ranks miss values when one rank sends none.
#pragma once

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "Komvos_ExchangePlan.hpp"
#include "Komvos_Schedule.hpp"

namespace KomvosTest {

/// Who is sure to miss values when `guilty` sends none, and who may be: a rank that has heard of the failure sends
/// nothing on, whatever the stage of the message that told it; what it sent before has values.
struct Victims {
  std::set<int> sure, possible;
};

inline Victims victimsOf(const std::vector<Komvos::ExchangePlan>& plans, int guilty, bool reverse) {
  using Komvos::Impl::Schedule;
  std::vector<Schedule> schedules;
  for (const Komvos::ExchangePlan& plan : plans) {
    schedules.push_back(reverse ? Komvos::Impl::reverseSchedule(plan) : Komvos::Impl::forwardSchedule(plan));
  }
  Victims victims;
  std::set<std::tuple<int, int, int>> empty;  // messages (from, to, stage) that are sure to be
  const auto waitsForEmpty = [&](int rank, int send) {
    const Schedule& schedule = schedules[rank];
    for (std::size_t r = 0; r < schedule.receives.size(); ++r) {
      const auto first = schedule.dependents.begin() + schedule.dependentOffset[r];
      const auto last = schedule.dependents.begin() + schedule.dependentOffset[r + 1];
      if (empty.count({schedule.receives[r].peer, rank, schedule.receives[r].stage}) != 0 &&
          std::find(first, last, send) != last) {
        return true;
      }
    }
    return false;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (int rank = 0; rank < static_cast<int>(plans.size()); ++rank) {
      const std::vector<Schedule::Message>& sends = schedules[rank].sends;
      for (int s = 0; s < static_cast<int>(sends.size()); ++s) {
        if (rank == guilty || waitsForEmpty(rank, s)) {
          changed = empty.emplace(rank, sends[s].peer, sends[s].stage).second || changed;
          victims.sure.insert(sends[s].peer);
        }
        if (rank == guilty || (sends[s].waitsFor > 0 && victims.possible.count(rank) != 0)) {
          changed = victims.possible.insert(sends[s].peer).second || changed;
        }
      }
    }
  }
  return victims;
}

}  // namespace KomvosTest
