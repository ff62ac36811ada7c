/// \file Komvos_DependencyTracker.hpp
/// What has arrived in an exchange, and which sends that makes ready.
#pragma once

#include <algorithm>
#include <vector>

#include "Komvos_Schedule.hpp"

namespace Komvos::Impl {

/// Counts down the dependencies of a schedule. Knows nothing of how messages travel.
class DependencyTracker {
 public:
  explicit DependencyTracker(const Schedule& schedule)
      : schedule_(schedule),
        numOnNode_(static_cast<int>(std::count(schedule.onNodeReceive.begin(), schedule.onNodeReceive.end(), true))),
        waitingFor_(schedule.sends.size()),
        completed_(schedule.receives.size()) {
    ready_.reserve(schedule.sends.size());
  }

  /// A new exchange: nothing has arrived or been sent.
  void reset() {
    outstandingReceives_ = static_cast<int>(schedule_.receives.size());
    outstandingOnNode_ = numOnNode_;
    startedSends_ = 0;
    ready_.clear();
    std::fill(completed_.begin(), completed_.end(), false);
    for (std::size_t i = 0; i < schedule_.sends.size(); ++i) {
      waitingFor_[i] = schedule_.sends[i].waitsFor;
    }
  }

  /// The values of `receive` are here.
  void complete(int receive) {
    completed_[receive] = true;
    --outstandingReceives_;
    outstandingOnNode_ -= schedule_.onNodeReceive[receive] ? 1 : 0;
    for (int d = schedule_.dependentOffset[receive]; d < schedule_.dependentOffset[receive + 1]; ++d) {
      if (--waitingFor_[schedule_.dependents[d]] == 0) {
        ready_.push_back(schedule_.dependents[d]);
      }
    }
  }

  /// A send that waited, and whose inputs are all there now; or -1.
  int popReady() {
    if (ready_.empty()) {
      return -1;
    }
    const int send = ready_.back();
    ready_.pop_back();
    return send;
  }
  void sendStarted() { ++startedSends_; }

  bool isComplete(int receive) const { return completed_[receive]; }
  int outstandingReceives() const { return outstandingReceives_; }
  int outstandingOnNode() const { return outstandingOnNode_; }
  bool allSendsStarted() const { return startedSends_ == static_cast<int>(schedule_.sends.size()); }

  std::size_t memoryBytes() const { return schedule_.sends.size() * 2 * sizeof(int); }

 private:
  const Schedule& schedule_;
  int numOnNode_;
  std::vector<int> waitingFor_;  // per send
  std::vector<int> ready_;       // stack of sends
  std::vector<bool> completed_;  // per receive
  int outstandingReceives_ = 0;
  int outstandingOnNode_ = 0;
  int startedSends_ = 0;
};

}  // namespace Komvos::Impl
