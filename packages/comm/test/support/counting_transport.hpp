/// \file counting_transport.hpp
/// Set-up messages between virtual ranks, counted: what making a plan costs.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "Komvos_SetupTransport.hpp"

namespace KomvosTest {

class CountingTransport : public Komvos::InMemorySetupTransport {
 public:
  using InMemorySetupTransport::InMemorySetupTransport;

  std::vector<std::vector<Komvos::SetupMessage>> exchange(
      std::vector<std::vector<Komvos::SetupMessage>> outbox) override {
    for (const auto& messages : outbox) {
      most_ = std::max(most_, static_cast<int>(messages.size()));
      total_ += static_cast<long>(messages.size());
    }
    ++rounds_;
    return InMemorySetupTransport::exchange(std::move(outbox));  // exchangeKnown() comes here, too
  }

  std::vector<std::vector<Komvos::SetupMessage>> exchangeKnown(std::vector<std::vector<Komvos::SetupMessage>> outbox,
                                                               const std::vector<std::vector<int>>& sources) override {
    ++roundsOfKnown_;
    return InMemorySetupTransport::exchangeKnown(std::move(outbox), sources);
  }

  /// The most that one rank sent in one exchange().
  int mostOfARankAtOnce() const { return most_; }
  long total() const { return total_; }
  /// Rounds in which receivers did not know their senders, and those in which they did.
  int roundsOfConsensus() const { return rounds_ - roundsOfKnown_; }
  int roundsOfKnown() const { return roundsOfKnown_; }

 private:
  int most_ = 0;
  long total_ = 0;
  int rounds_ = 0;
  int roundsOfKnown_ = 0;
};

}  // namespace KomvosTest
