#include "Komvos_Schedule.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace Komvos::Impl {

namespace {

/// Which message each position of a buffer belongs to.
std::vector<int> messageOf(const std::vector<PlanMessage>& messages, int length) {
  std::vector<int> owner(length);
  for (std::size_t m = 0; m < messages.size(); ++m) {
    std::fill_n(owner.begin() + messages[m].first, messages[m].count, static_cast<int>(m));
  }
  return owner;
}

std::vector<Schedule::Message> copyMessages(const std::vector<PlanMessage>& messages) {
  std::vector<Schedule::Message> result;
  for (const PlanMessage& m : messages) {
    result.push_back({m.peer, m.stage, m.first, m.count, 0, -1, -1});
  }
  return result;
}

/// Pairs (key, value), keys < numKeys, to offsets and values; values of a key keep their order.
void bucket(const std::vector<std::pair<int, int>>& pairs, int numKeys, std::vector<int>& offset,
            std::vector<int>& values) {
  offset.assign(numKeys + 1, 0);
  for (const auto& pair : pairs) {
    ++offset[pair.first + 1];
  }
  std::partial_sum(offset.begin(), offset.end(), offset.begin());
  values.resize(pairs.size());
  std::vector<int> next(offset.begin(), offset.end() - 1);
  for (const auto& pair : pairs) {
    values[next[pair.first]++] = pair.second;
  }
}

/// (receive, send) pairs, as seen in direction of the schedule, to dependency lists and counts.
void setDependencies(Schedule& schedule, std::vector<std::pair<int, int>> edges) {
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  bucket(edges, static_cast<int>(schedule.receives.size()), schedule.dependentOffset, schedule.dependents);
  for (const auto& edge : edges) {
    ++schedule.sends[edge.second].waitsFor;
  }
}

/// Finds the receives whose values are not sent on and fill consecutive targets, or any where that is allowed: they can
/// be received in place.
void setDirectTargets(Schedule& schedule, const ExchangePlan& plan, const std::vector<int>& receiveOf,
                      const std::vector<bool>& canScatter) {
  const int unset = -1;
  const int several = -2;
  std::vector<int> targetOf(plan.receiveLength(), unset);
  for (const ExchangePlan::Delivery& delivery : plan.deliveries) {
    int& target = targetOf[delivery.position];
    target = target == unset ? delivery.target : several;
  }
  for (const int source : plan.sendSource) {
    if (source < 0) {
      targetOf[~source] = several;
    }
  }
  for (std::size_t m = 0; m < schedule.receives.size(); ++m) {
    Schedule::Message& message = schedule.receives[m];
    const auto targets = targetOf.begin() + message.first;
    const bool ends = std::all_of(targets, targets + message.count, [](int target) { return target >= 0; });
    bool direct = ends;
    for (int i = 1; i < message.count; ++i) {
      direct = direct && targets[i] == targets[0] + i;
    }
    if (direct) {
      message.directTarget = targets[0];
    } else if (ends && !canScatter.empty() && canScatter[m]) {
      message.scatter = static_cast<int>(schedule.scatterTargets.size());
      schedule.scatterTargets.insert(schedule.scatterTargets.end(), targets, targets + message.count);
    }
  }
  for (const ExchangePlan::Delivery& delivery : plan.deliveries) {
    const Schedule::Message& message = schedule.receives[receiveOf[delivery.position]];
    if (message.directTarget < 0 && message.scatter < 0) {
      GatherList& list = delivery.onNode ? schedule.copiedOnNode : schedule.copiedRest;
      list.to.push_back(delivery.target);
      list.from.push_back(delivery.position);
    }
  }
}

/// (to, from) pairs sorted by `to`, with several sources a row.
GatherList sums(const std::vector<std::pair<int, int>>& pairs) {
  GatherList list;
  for (const auto& [to, from] : pairs) {
    if (list.to.empty() || list.to.back() != to) {
      list.to.push_back(to);
      list.offset.push_back(static_cast<int>(list.from.size()));
    }
    list.from.push_back(from);
  }
  list.offset.push_back(static_cast<int>(list.from.size()));
  return list;
}

}  // namespace

Schedule forwardSchedule(const ExchangePlan& plan, const std::vector<bool>& canScatter) {
  Schedule schedule;
  schedule.sends = copyMessages(plan.sends);
  schedule.receives = copyMessages(plan.receives);
  schedule.sendLength = plan.sendLength();
  schedule.receiveLength = plan.receiveLength();
  const std::vector<int> receiveOf = messageOf(plan.receives, plan.receiveLength());
  std::vector<std::pair<int, int>> edges;
  for (std::size_t m = 0; m < plan.sends.size(); ++m) {
    schedule.relayOffset.push_back(schedule.forward.size());
    for (int p = plan.sends[m].first; p < plan.sends[m].first + plan.sends[m].count; ++p) {
      const int source = plan.sendSource[p];
      GatherList& list = source >= 0 ? schedule.initial : schedule.forward;
      list.to.push_back(p);
      list.from.push_back(source >= 0 ? source : ~source);
      if (source < 0) {
        edges.emplace_back(receiveOf[~source], static_cast<int>(m));
      }
    }
  }
  schedule.relayOffset.push_back(schedule.forward.size());
  setDependencies(schedule, std::move(edges));
  schedule.onNodeReceive.assign(plan.receives.size(), false);
  for (const ExchangePlan::Delivery& delivery : plan.deliveries) {
    GatherList& list = delivery.onNode ? schedule.finalOnNode : schedule.finalRest;
    list.to.push_back(delivery.target);
    list.from.push_back(delivery.position);
    if (delivery.onNode) {
      schedule.onNodeReceive[receiveOf[delivery.position]] = true;
    }
  }
  setDirectTargets(schedule, plan, receiveOf, canScatter);
  return schedule;
}

Schedule reverseSchedule(const ExchangePlan& plan) {
  Schedule schedule;
  schedule.sends = copyMessages(plan.receives);
  schedule.receives = copyMessages(plan.sends);
  schedule.sendLength = plan.receiveLength();
  schedule.receiveLength = plan.sendLength();
  schedule.relayAdds = true;
  const std::vector<int> receiveOf = messageOf(plan.receives, plan.receiveLength());

  // A value that came to several targets goes back as their sum; one that only travelled on starts from zero.
  std::vector<std::pair<int, int>> fromTargets;
  for (const ExchangePlan::Delivery& delivery : plan.deliveries) {
    fromTargets.emplace_back(delivery.position, delivery.target);
  }
  std::sort(fromTargets.begin(), fromTargets.end());
  bucket(fromTargets, plan.receiveLength(), schedule.initial.offset, schedule.initial.from);
  schedule.initial.to.resize(plan.receiveLength());
  std::iota(schedule.initial.to.begin(), schedule.initial.to.end(), 0);

  // What travelled on comes back along the messages it left in, and is added in their order.
  std::vector<std::pair<int, int>> travelled;
  std::vector<std::pair<int, int>> owned;
  std::vector<std::pair<int, int>> edges;
  for (std::size_t m = 0; m < plan.sends.size(); ++m) {
    for (int p = plan.sends[m].first; p < plan.sends[m].first + plan.sends[m].count; ++p) {
      const int source = plan.sendSource[p];
      if (source >= 0) {
        owned.emplace_back(source, p);
      } else {
        travelled.emplace_back(~source, p);
        edges.emplace_back(static_cast<int>(m), receiveOf[~source]);
      }
    }
  }
  setDependencies(schedule, std::move(edges));
  std::sort(travelled.begin(), travelled.end());
  schedule.forward = sums(travelled);
  auto row = schedule.forward.to.begin();
  for (const PlanMessage& message : plan.receives) {
    row = std::lower_bound(row, schedule.forward.to.end(), message.first);
    schedule.relayOffset.push_back(static_cast<int>(row - schedule.forward.to.begin()));
  }
  schedule.relayOffset.push_back(schedule.forward.size());
  std::sort(owned.begin(), owned.end());
  schedule.finalRest = sums(owned);
  schedule.onNodeReceive.assign(plan.sends.size(), false);
  return schedule;
}

void Schedule::dropLists() { initial = forward = finalOnNode = finalRest = copiedOnNode = copiedRest = GatherList(); }

std::size_t Schedule::memoryBytes() const {
  return (sends.size() + receives.size()) * sizeof(Message) + onNodeReceive.size() / 8 +
         (dependentOffset.size() + dependents.size() + relayOffset.size() + scatterTargets.size()) * sizeof(int);
}

}  // namespace Komvos::Impl
