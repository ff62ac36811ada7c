#include "Komvos_Schedule.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

// How this works. A plan lists messages, where each sent value comes from (the vector, or a received position) and
// where each received value goes. forwardSchedule() sorts the sent values into `pack` and `relay`, and each pair (a
// receive, a send that relays one of its values) becomes an edge: the send waits for the receive. setDependencies()
// turns edges into lists and counts. setContiguousTargets() and setScattered() find the messages that skip the receive
// buffer; relays and deliveries become lists with and without these messages.
//
// reverseSchedule() exchanges the roles: the plan's receives are sent, its sends are received. A value is first the sum
// of the targets it was delivered to (`pack`), then gets what comes back along the messages it was relayed in (`relay`,
// which adds). Sums are sorted by position, so that their order does not depend on when messages arrive.
//
// reverseSelection() picks one of these sources in the place of each sum. sendHighest says which ranks stand behind it.

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
    result.push_back({m.peer, m.stage, m.first, m.count, 0});
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

/// Different (receive, send) pairs, as seen in direction of the schedule, to dependency lists and counts.
void setDependencies(Schedule& schedule, std::vector<std::pair<int, int>> edges) {
  std::sort(edges.begin(), edges.end());
  bucket(edges, static_cast<int>(schedule.receives.size()), schedule.dependentOffset, schedule.dependents);
  for (const auto& edge : edges) {
    ++schedule.sends[edge.second].waitsFor;
  }
}

/// For each received position the one target it fills, or a negative number: it fills none, or several, or is relayed.
std::vector<int> onlyTargets(const ExchangePlan& plan) {
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
  return targetOf;
}

/// Marks the receives that are contiguous.
void setContiguousTargets(Schedule& schedule, const ExchangePlan& plan) {
  const std::vector<int> targetOf = onlyTargets(plan);
  for (Schedule::Message& message : schedule.receives) {
    const auto targets = targetOf.begin() + message.first;
    bool contiguous = std::all_of(targets, targets + message.count, [](int target) { return target >= 0; });
    for (int i = 1; i < message.count; ++i) {
      contiguous = contiguous && targets[i] == targets[0] + i;
    }
    if (contiguous) {
      message.contiguousTarget = targets[0];
    }
  }
}

/// Which relays of a plan are to be known once each.
class DifferentEdges {
 public:
  explicit DifferentEdges(std::size_t numReceives) : lastSend_(numReceives, -1) {}
  /// \param send in ascending order
  bool isNew(int receive, int send) { return std::exchange(lastSend_[receive], send) != send; }

 private:
  std::vector<int> lastSend_;
};

/// Where received values go: entries[offset[position]] and those that follow, ascending.
struct EntriesOfValues {
  std::vector<int> offset, entries;

  int count(const Schedule::Message& message) const {
    return offset[message.first + message.count] - offset[message.first];
  }
  /// Whether each value of a message goes to one entry.
  bool inOrder(const Schedule::Message& message) const {
    for (int p = message.first; p < message.first + message.count; ++p) {
      if (offset[p + 1] - offset[p] != 1) {
        return false;
      }
    }
    return true;
  }
};

Schedule::Scatter storeEntries(Schedule& schedule, const EntriesOfValues& lists, const Schedule::Message& message) {
  Schedule::Scatter scatter{static_cast<int>(schedule.scatterTargets.size()), lists.count(message), -1};
  const int begin = lists.offset[message.first], end = begin + scatter.count;
  schedule.scatterTargets.insert(schedule.scatterTargets.end(), lists.entries.begin() + begin,
                                 lists.entries.begin() + end);
  if (!lists.inOrder(message)) {
    scatter.from = static_cast<int>(schedule.scatterSources.size());
    for (int value = 0; value < message.count; ++value) {
      const int position = message.first + value;
      schedule.scatterSources.insert(schedule.scatterSources.end(), lists.offset[position + 1] - lists.offset[position],
                                     value);
    }
  }
  return scatter;
}

/// Marks the receives that are scattered, and lists where their values go.
void setScattered(Schedule& schedule, const ExchangePlan& plan, const CopiedMessages& copied,
                  const std::vector<int>& receiveOf) {
  if (copied.receives.empty()) {
    return;
  }
  std::vector<bool> canScatter = copied.receives;
  std::vector<std::pair<int, int>> deliveries, relays;  // position, entry
  deliveries.reserve(plan.deliveries.size());
  for (const ExchangePlan::Delivery& delivery : plan.deliveries) {  // by target
    deliveries.emplace_back(delivery.position, delivery.target);
  }
  for (std::size_t m = 0; m < plan.sends.size(); ++m) {
    for (int p = plan.sends[m].first; p < plan.sends[m].first + plan.sends[m].count; ++p) {
      if (const int source = plan.sendSource[p]; source < 0) {
        relays.emplace_back(~source, p);
        if (copied.sendsReadInPlace[m]) {  // its receiver reads the receive buffer
          canScatter[receiveOf[~source]] = false;
        }
      }
    }
  }
  EntriesOfValues toVector, toSends;
  bucket(deliveries, schedule.receiveLength, toVector.offset, toVector.entries);
  bucket(relays, schedule.receiveLength, toSends.offset, toSends.entries);
  for (std::size_t m = 0; m < schedule.receives.size(); ++m) {
    Schedule::Message& message = schedule.receives[m];
    const auto isSimple = [&](const EntriesOfValues& lists) {
      return lists.count(message) == 0 || lists.inOrder(message);
    };
    const bool oneIndexDoes = isSimple(toVector) && isSimple(toSends);
    if (canScatter[m] && message.contiguousTarget < 0 && (oneIndexDoes || !copied.picked[m])) {
      message.isScattered = true;
      message.toVector = storeEntries(schedule, toVector, message);
      message.toSends = storeEntries(schedule, toSends, message);
      schedule.scattersToSends = schedule.scattersToSends || message.toSends.count > 0;
    }
  }
}

/// `relayBuffered`: `relay` without the values of scattered messages.
void setBufferedRelays(Schedule& schedule, const std::vector<int>& receiveOf) {
  if (!schedule.scattersToSends) {
    return;
  }
  for (std::size_t send = 0; send < schedule.sends.size(); ++send) {
    schedule.relayBufferedOffset.push_back(schedule.relayBuffered.size());
    for (int row = schedule.relayOffset[send]; row < schedule.relayOffset[send + 1]; ++row) {
      const int from = schedule.relay.from[row];
      if (!schedule.receives[receiveOf[from]].isScattered) {
        schedule.relayBuffered.to.push_back(schedule.relay.to[row]);
        schedule.relayBuffered.from.push_back(from);
      }
    }
  }
  schedule.relayBufferedOffset.push_back(schedule.relayBuffered.size());
}

/// Deliveries of a plan to unpack lists. \param receiveOf which receive a position belongs to
void setUnpackLists(Schedule& schedule, const ExchangePlan& plan, const std::vector<int>& receiveOf) {
  const auto append = [](UnpackLists& lists, const ExchangePlan::Delivery& delivery) {
    GatherList& list = delivery.onNode ? lists.onNode : lists.rest;
    list.to.push_back(delivery.target);
    list.from.push_back(delivery.position);
  };
  schedule.onNodeReceive.assign(plan.receives.size(), false);
  for (const ExchangePlan::Delivery& delivery : plan.deliveries) {
    const int receive = receiveOf[delivery.position];
    const Schedule::Message& message = schedule.receives[receive];
    append(schedule.unpackAll, delivery);
    if (message.contiguousTarget < 0 && !message.isScattered) {
      append(schedule.unpackBuffered, delivery);
    }
    if (delivery.onNode) {
      schedule.onNodeReceive[receive] = true;
    }
  }
}

/// What starts in the vector is packed at first, what has arrived is relayed: both lists, and who waits for whom.
void setForwardSends(Schedule& schedule, const ExchangePlan& plan, const std::vector<int>& receiveOf) {
  std::vector<std::pair<int, int>> edges;
  DifferentEdges different(plan.receives.size());
  for (std::size_t m = 0; m < plan.sends.size(); ++m) {
    schedule.relayOffset.push_back(schedule.relay.size());
    for (int p = plan.sends[m].first; p < plan.sends[m].first + plan.sends[m].count; ++p) {
      const int source = plan.sendSource[p];
      GatherList& list = source >= 0 ? schedule.pack : schedule.relay;
      list.to.push_back(p);
      list.from.push_back(source >= 0 ? source : ~source);
      if (source < 0 && different.isNew(receiveOf[~source], static_cast<int>(m))) {
        edges.emplace_back(receiveOf[~source], static_cast<int>(m));
      }
    }
  }
  schedule.relayOffset.push_back(schedule.relay.size());
  setDependencies(schedule, std::move(edges));
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

/// A value that came to several targets goes back as their sum; one that only travelled on starts from zero.
GatherList packTargets(const ExchangePlan& plan) {
  std::vector<std::pair<int, int>> fromTargets;
  for (const ExchangePlan::Delivery& delivery : plan.deliveries) {
    fromTargets.emplace_back(delivery.position, delivery.target);
  }
  std::sort(fromTargets.begin(), fromTargets.end());
  GatherList list;
  bucket(fromTargets, plan.receiveLength(), list.offset, list.from);
  list.to.resize(plan.receiveLength());
  std::iota(list.to.begin(), list.to.end(), 0);
  return list;
}

}  // namespace

Schedule forwardSchedule(const ExchangePlan& plan, const CopiedMessages& copied) {
  Schedule schedule;
  schedule.sends = copyMessages(plan.sends);
  schedule.receives = copyMessages(plan.receives);
  schedule.sendLength = plan.sendLength();
  schedule.receiveLength = plan.receiveLength();
  const std::vector<int> receiveOf = messageOf(plan.receives, plan.receiveLength());
  setForwardSends(schedule, plan, receiveOf);
  setContiguousTargets(schedule, plan);
  setScattered(schedule, plan, copied, receiveOf);
  setBufferedRelays(schedule, receiveOf);
  setUnpackLists(schedule, plan, receiveOf);
  return schedule;
}

Schedule reverseSchedule(const ExchangePlan& plan) {
  Schedule schedule;
  schedule.sends = copyMessages(plan.receives);
  schedule.receives = copyMessages(plan.sends);
  schedule.sendLength = plan.receiveLength();
  schedule.receiveLength = plan.sendLength();
  schedule.relayAdds = true;
  schedule.pack = packTargets(plan);

  // What was relayed comes back along the messages it left in, and is added in their order.
  const std::vector<int> receiveOf = messageOf(plan.receives, plan.receiveLength());
  std::vector<std::pair<int, int>> relayed;
  std::vector<std::pair<int, int>> owned;
  std::vector<std::pair<int, int>> edges;
  DifferentEdges different(plan.receives.size());
  for (std::size_t m = 0; m < plan.sends.size(); ++m) {
    for (int p = plan.sends[m].first; p < plan.sends[m].first + plan.sends[m].count; ++p) {
      const int source = plan.sendSource[p];
      if (source >= 0) {
        owned.emplace_back(source, p);
      } else {
        relayed.emplace_back(~source, p);
        if (different.isNew(receiveOf[~source], static_cast<int>(m))) {
          edges.emplace_back(static_cast<int>(m), receiveOf[~source]);
        }
      }
    }
  }
  setDependencies(schedule, std::move(edges));
  std::sort(relayed.begin(), relayed.end());
  schedule.relay = sums(relayed);
  auto row = schedule.relay.to.begin();
  for (const PlanMessage& message : plan.receives) {
    row = std::lower_bound(row, schedule.relay.to.end(), message.first);
    schedule.relayOffset.push_back(static_cast<int>(row - schedule.relay.to.begin()));
  }
  schedule.relayOffset.push_back(schedule.relay.size());
  std::sort(owned.begin(), owned.end());
  schedule.unpackAll.rest = sums(owned);
  schedule.onNodeReceive.assign(plan.sends.size(), false);
  return schedule;
}

SelectedCopies reverseSelection(const ExchangePlan& plan) {
  const int none = -1;
  std::vector<int> ownTarget(plan.receiveLength(), none);  // by received position
  std::vector<int> relayed(plan.receiveLength(), none);    // a position of the send buffer, by received position
  std::vector<int> sent(plan.numOwned, none);              // the same by owned index
  for (const ExchangePlan::Delivery& delivery : plan.deliveries) {
    ownTarget[delivery.position] = std::max(ownTarget[delivery.position], delivery.target);
  }
  for (int p = 0; p < plan.sendLength(); ++p) {
    const int source = plan.sendSource[p];
    int& best = source >= 0 ? sent[source] : relayed[~source];
    best = best == none || plan.sendHighest[p] > plan.sendHighest[best] ? p : best;
  }
  SelectedCopies lists;
  const auto append = [](GatherList& list, int to, int from) {
    list.to.push_back(to);
    list.from.push_back(from);
  };
  for (const PlanMessage& message : plan.receives) {
    lists.relayOffset.push_back(lists.relay.size());
    for (int p = message.first; p < message.first + message.count; ++p) {
      const bool travelsOn = relayed[p] != none && (ownTarget[p] == none || plan.sendHighest[relayed[p]] > plan.rank);
      travelsOn ? append(lists.relay, p, relayed[p]) : append(lists.pack, p, ownTarget[p]);
    }
  }
  lists.relayOffset.push_back(lists.relay.size());
  for (int i = 0; i < plan.numOwned; ++i) {
    if (sent[i] != none) {
      append(lists.unpack, i, sent[i]);
    }
  }
  return lists;
}

void Schedule::dropLists() {
  pack = relay = relayBuffered = GatherList();
  relayOffset = relayBufferedOffset = {};
  unpackAll = unpackBuffered = UnpackLists();
}

std::size_t Schedule::memoryBytes() const {
  return (sends.size() + receives.size()) * sizeof(Message) + onNodeReceive.size() / 8 +
         (dependentOffset.size() + dependents.size() + scatterTargets.size() + scatterSources.size()) * sizeof(int);
}

}  // namespace Komvos::Impl
