/// \file plan_simulation.hpp
/// A plain interpreter of plans, with all ranks in one process: the slow twin of the exchange.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "Komvos_ExchangePlan.hpp"
#include "Komvos_Schedule.hpp"
#include "support/test_patterns.hpp"

namespace KomvosTest {

using Komvos::ExchangePlan;
using Komvos::NodeTopology;
using Komvos::Pattern;
using Komvos::PlanMessage;
using Komvos::ValueId;

/// (stage, from, to) -> values, in the order of the message.
using Messages = std::map<std::tuple<int, int, int>, std::vector<ValueId>>;

/// All of a plan as text, to compare two of them.
inline std::string describe(const ExchangePlan& plan) {
  std::ostringstream text;
  text << plan.route << " rank " << plan.rank << "/" << plan.numRanks << " stages " << plan.numStages << " owned "
       << plan.numOwned << " target " << plan.numTarget;
  for (const auto* messages : {&plan.sends, &plan.receives}) {
    text << (messages == &plan.sends ? "\nsends" : "\nreceives");
    for (const PlanMessage& m : *messages) {
      text << " [" << m.peer << " stage " << m.stage << " first " << m.first << " count " << m.count
           << (m.onNode ? " on]" : " off]");
    }
  }
  text << "\nsources";
  for (const int source : plan.sendSource) {
    text << ' ' << source;
  }
  text << "\nhighest";
  for (const int rank : plan.sendHighest) {
    text << ' ' << rank;
  }
  text << "\ndeliveries";
  for (const ExchangePlan::Delivery& d : plan.deliveries) {
    text << ' ' << d.position << "->" << d.target << (d.onNode ? "on" : "off");
  }
  return text.str();
}

/// Runs the plans stage by stage, with the name of each value in its place, and holds what happens against the
/// patterns. Problems are collected as text.
class PlanSimulation {
 public:
  PlanSimulation(const std::vector<ExchangePlan>& plans, const std::vector<Pattern>& patterns,
                 const NodeTopology& topology)
      : plans_(plans), patterns_(patterns), topology_(topology), received_(plans.size()) {
    for (const ExchangePlan& plan : plans_) {
      checkBuffers(plan, plan.sends, plan.sendLength(), "sends");
      checkBuffers(plan, plan.receives, plan.receiveLength(), "receives");
      received_[plan.rank].assign(plan.receiveLength(), ValueId{-1, -1});
    }
    if (problems_.empty()) {
      runForward();
      checkDeliveries();
      checkDuplicates();
      runBackward();
    }
  }

  /// Empty if all is well.
  const std::string& problems() const { return problems_; }
  const Messages& messages() const { return messages_; }

 private:
  void problem(int rank, const std::string& what) { problems_ += "rank " + std::to_string(rank) + ": " + what + "\n"; }

  void checkBuffers(const ExchangePlan& plan, const std::vector<PlanMessage>& messages, int length,
                    const std::string& what) {
    int next = 0;
    std::pair<int, int> last{-1, -1};
    for (const PlanMessage& m : messages) {
      const std::pair<int, int> now{m.stage, m.peer};
      if (m.first != next || m.count < 1 || m.peer == plan.rank || now <= last || m.stage >= plan.numStages ||
          m.onNode != topology_.sameNode(plan.rank, m.peer)) {
        problem(plan.rank, what + ": bad message with peer " + std::to_string(m.peer) + ", stage " +
                               std::to_string(m.stage) + ", count " + std::to_string(m.count));
      }
      next = m.first + m.count;
      last = now;
    }
    if (next != length) {
      problem(plan.rank, what + " fill " + std::to_string(next) + " of " + std::to_string(length));
    }
  }

  const PlanMessage* receiveOf(int rank, int stage, int from) const {
    for (const PlanMessage& m : plans_[rank].receives) {
      if (m.stage == stage && m.peer == from) {
        return &m;
      }
    }
    return nullptr;
  }

  void runForward() {
    std::size_t sent = 0;
    std::size_t expected = 0;
    for (const ExchangePlan& plan : plans_) {
      expected += plan.receives.size();
    }
    for (int stage = 0; stage < plans_.front().numStages; ++stage) {
      for (const ExchangePlan& plan : plans_) {
        for (const PlanMessage& m : plan.sends) {
          if (m.stage == stage) {
            ++sent;
            deliver(plan, m);
          }
        }
      }
    }
    if (sent != expected) {
      problem(-1, std::to_string(sent) + " messages sent, " + std::to_string(expected) + " received");
    }
  }

  void deliver(const ExchangePlan& plan, const PlanMessage& m) {
    const PlanMessage* const receive = receiveOf(m.peer, m.stage, plan.rank);
    if (receive == nullptr || receive->count != m.count) {
      problem(plan.rank, "no receive for stage " + std::to_string(m.stage) + " to " + std::to_string(m.peer));
      return;
    }
    std::vector<ValueId>& values = messages_[{m.stage, plan.rank, m.peer}];
    for (int k = 0; k < m.count; ++k) {
      const int source = plan.sendSource[m.first + k];
      const ValueId value = source >= 0 ? ValueId{plan.rank, source} : received_[plan.rank].at(~source);
      if (value.owner < 0 || value.local >= plans_[value.owner].numOwned) {
        problem(plan.rank, "sends position " + std::to_string(m.first + k) + " before it has a value");
      }
      values.push_back(value);
      received_[m.peer][receive->first + k] = value;
    }
  }

  void checkDeliveries() {
    const ValueId none{-1, -1};
    for (const ExchangePlan& plan : plans_) {
      std::vector<ValueId> filled(plan.numTarget, none);
      for (const ExchangePlan::Delivery& d : plan.deliveries) {
        const ValueId value = received_[plan.rank].at(d.position);
        if (filled.at(d.target) != none || d.onNode != topology_.sameNode(plan.rank, value.owner)) {
          problem(plan.rank, "bad delivery to target " + std::to_string(d.target));
        }
        filled[d.target] = value;
      }
      std::vector<ValueId> wanted(plan.numTarget, none);
      for (const Pattern::Receive& receive : patterns_[plan.rank].receives) {
        wanted.at(receive.target) = receive.value;
      }
      if (filled != wanted) {
        problem(plan.rank, "its targets do not hold the values of the pattern");
      }
    }
  }

  /// No rank gets a value twice. No node does across the network, but on the routes that do not promise it; and where
  /// a pair of nodes has one message, it travels in the middle stage.
  void checkDuplicates() {
    std::vector<std::pair<int, ValueId>> atRank;
    std::vector<std::pair<int, ValueId>> atNode;
    std::set<std::pair<int, int>> pairs;
    const std::string& route = plans_.front().route;
    const bool perNode = route != "standard" && route.substr(0, 4) != "axis";
    const bool onePerPair = route == "three-step" || route == "sockets";
    const int middle = plans_.front().numStages / 2;
    for (const auto& [key, values] : messages_) {
      const auto& [stage, from, to] = key;
      const int node = topology_.nodeOf(to);
      const bool offNode = topology_.nodeOf(from) != node;
      if (onePerPair && offNode && (stage != middle || !pairs.emplace(topology_.nodeOf(from), node).second)) {
        problem(from, "sends another message to node " + std::to_string(node));
      }
      for (const ValueId& value : values) {
        if (value.owner == to) {
          problem(to, "gets its own value " + std::to_string(value.local));
        }
        atRank.emplace_back(to, value);
        if (perNode && offNode) {
          atNode.emplace_back(node, value);
        }
      }
    }
    checkOnce(atRank, "rank ");
    checkOnce(atNode, "node ");
  }

  void checkOnce(std::vector<std::pair<int, ValueId>>& arrivals, const std::string& where) {
    std::sort(arrivals.begin(), arrivals.end());
    const auto twice = std::adjacent_find(arrivals.begin(), arrivals.end());
    if (twice != arrivals.end()) {
      problem(twice->second.owner, "its value " + std::to_string(twice->second.local) + " gets to " + where +
                                       std::to_string(twice->first) + " twice");
    }
  }

  /// Every target gives 1; each owned value must come back as the number of targets that hold it.
  void runBackward() {
    std::vector<std::vector<long>> back(plans_.size());
    std::vector<std::vector<long>> owned(plans_.size());
    for (const ExchangePlan& plan : plans_) {
      back[plan.rank].assign(plan.receiveLength(), 0);
      owned[plan.rank].assign(plan.numOwned, 0);
      for (const ExchangePlan::Delivery& d : plan.deliveries) {
        back[plan.rank][d.position] += 1;
      }
    }
    for (int stage = plans_.front().numStages - 1; stage >= 0; --stage) {
      for (const ExchangePlan& plan : plans_) {
        for (const PlanMessage& m : plan.sends) {
          if (m.stage != stage) {
            continue;
          }
          const PlanMessage* const receive = receiveOf(m.peer, stage, plan.rank);
          for (int k = 0; receive != nullptr && k < m.count; ++k) {
            const int source = plan.sendSource[m.first + k];
            (source >= 0 ? owned[plan.rank][source] : back[plan.rank][~source]) += back[m.peer][receive->first + k];
          }
        }
      }
    }
    for (const Pattern& pattern : patterns_) {
      for (const Pattern::Receive& receive : pattern.receives) {
        --owned[receive.value.owner].at(receive.value.local);
      }
    }
    for (std::size_t rank = 0; rank < owned.size(); ++rank) {
      for (std::size_t i = 0; i < owned[rank].size(); ++i) {
        if (owned[rank][i] != 0) {
          problem(static_cast<int>(rank), "owned value " + std::to_string(i) + " comes back " +
                                              std::to_string(owned[rank][i]) + " times too often");
        }
      }
    }
  }

  const std::vector<ExchangePlan>& plans_;
  const std::vector<Pattern>& patterns_;
  const NodeTopology& topology_;
  std::vector<std::vector<ValueId>> received_;
  Messages messages_;
  std::string problems_;
};

/// Runs schedules driven by messages that arrive in a random order. `sources` and `targets` are one vector per rank.
/// \return problems as text
template <class Value>
std::string runSchedules(const std::vector<Komvos::Impl::Schedule>& schedules,
                         const std::vector<std::vector<Value>>& sources, std::vector<std::vector<Value>>& targets,
                         bool add, Random& random) {
  using Komvos::Impl::GatherList;
  using Komvos::Impl::Schedule;
  struct InFlight {
    int from, to, stage;
    std::vector<Value> data;
  };
  const int numRanks = static_cast<int>(schedules.size());
  std::vector<std::vector<Value>> sendBuffer(numRanks);
  std::vector<std::vector<Value>> receiveBuffer(numRanks);
  std::vector<std::vector<int>> waiting(numRanks);
  std::vector<InFlight> flying;
  std::string problems;
  const auto gather = [](const GatherList& list, int first, int last, std::vector<Value>& to,
                         const std::vector<Value>& from, bool adds) {
    for (int row = first; row < last; ++row) {
      const int begin = list.offset.empty() ? row : list.offset[row];
      const int end = list.offset.empty() ? row + 1 : list.offset[row + 1];
      Value sum{};
      for (int j = begin; j < end; ++j) {
        sum += from.at(list.from[j]);
      }
      to.at(list.to[row]) = adds ? to.at(list.to[row]) + sum : sum;
    }
  };
  const auto start = [&](int rank, const Schedule::Message& m) {
    const auto first = sendBuffer[rank].begin() + m.first;
    flying.push_back({rank, m.peer, m.stage, std::vector<Value>(first, first + m.count)});
  };
  for (int rank = 0; rank < numRanks; ++rank) {
    const Schedule& schedule = schedules[rank];
    sendBuffer[rank].assign(schedule.sendLength, Value{-999});
    receiveBuffer[rank].assign(schedule.receiveLength, Value{-999});
    gather(schedule.pack, 0, schedule.pack.size(), sendBuffer[rank], sources[rank], false);
    for (const Schedule::Message& m : schedule.sends) {
      waiting[rank].push_back(m.waitsFor);
      if (m.waitsFor == 0) {
        start(rank, m);
      }
    }
  }
  std::size_t arrived = 0;
  while (!flying.empty()) {
    std::swap(flying[random.below(static_cast<int>(flying.size()))], flying.back());
    const InFlight message = std::move(flying.back());
    flying.pop_back();
    const Schedule& schedule = schedules[message.to];
    std::size_t r = 0;
    while (r < schedule.receives.size() &&
           (schedule.receives[r].peer != message.from || schedule.receives[r].stage != message.stage)) {
      ++r;
    }
    if (r == schedule.receives.size() || schedule.receives[r].count != static_cast<int>(message.data.size())) {
      return problems + "rank " + std::to_string(message.to) + " has no receive for a message of rank " +
             std::to_string(message.from) + "\n";
    }
    ++arrived;
    std::copy(message.data.begin(), message.data.end(), receiveBuffer[message.to].begin() + schedule.receives[r].first);
    for (int d = schedule.dependentOffset[r]; d < schedule.dependentOffset[r + 1]; ++d) {
      const int send = schedule.dependents[d];
      if (--waiting[message.to][send] == 0) {
        gather(schedule.relay, schedule.relayOffset[send], schedule.relayOffset[send + 1], sendBuffer[message.to],
               receiveBuffer[message.to], schedule.relayAdds);
        start(message.to, schedule.sends[send]);
      }
    }
  }
  for (int rank = 0; rank < numRanks; ++rank) {
    const Schedule& schedule = schedules[rank];
    arrived -= schedule.receives.size();
    gather(schedule.unpackAll.onNode, 0, schedule.unpackAll.onNode.size(), targets[rank], receiveBuffer[rank], add);
    gather(schedule.unpackAll.rest, 0, schedule.unpackAll.rest.size(), targets[rank], receiveBuffer[rank], add);
  }
  return arrived == 0 ? problems : problems + "some messages never arrived\n";
}

}  // namespace KomvosTest
