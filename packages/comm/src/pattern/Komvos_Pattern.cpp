#include "Komvos_Pattern.hpp"

#include <algorithm>
#include <string>
#include <tuple>

#include "Komvos_Error.hpp"

namespace Komvos {

void Pattern::normalize() {
  const auto key = [](const Send& send) { return std::tie(send.destination, send.local); };
  std::sort(sends.begin(), sends.end(), [&](const Send& a, const Send& b) { return key(a) < key(b); });
  sends.erase(std::unique(sends.begin(), sends.end(), [&](const Send& a, const Send& b) { return key(a) == key(b); }),
              sends.end());
  std::sort(receives.begin(), receives.end(), [](const Receive& a, const Receive& b) {
    return a.value != b.value ? a.value < b.value : a.target < b.target;
  });
}

namespace {

[[noreturn]] void refuse(int rank, const std::string& what) {
  throw BadInput("pattern of rank " + std::to_string(rank) + ": " + what);
}

std::string of(int index, int count) { return std::to_string(index) + " of " + std::to_string(count); }

}  // namespace

void Pattern::check(int numRanks) const {
  for (const Send& send : sends) {
    if (send.destination < 0 || send.destination >= numRanks) {
      refuse(rank, "sends to rank " + of(send.destination, numRanks));
    }
    if (send.destination == rank) {
      refuse(rank, "sends to itself");
    }
    if (send.local < 0 || send.local >= numOwned) {
      refuse(rank, "sends owned value " + of(send.local, numOwned));
    }
  }
  std::vector<bool> taken(numTarget, false);
  for (const Receive& receive : receives) {
    if (receive.value.owner < 0 || receive.value.owner >= numRanks) {
      refuse(rank, "receives from rank " + of(receive.value.owner, numRanks));
    }
    if (receive.value.owner == rank) {
      refuse(rank, "receives from itself");
    }
    if (receive.target < 0 || receive.target >= numTarget) {
      refuse(rank, "fills target " + of(receive.target, numTarget));
    }
    if (taken[receive.target]) {
      refuse(rank, "fills target " + std::to_string(receive.target) + " twice");
    }
    taken[receive.target] = true;
  }
}

}  // namespace Komvos
