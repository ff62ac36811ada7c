#include "Komvos_Pattern.hpp"

#include <algorithm>
#include <string>

#include "Komvos_Error.hpp"

namespace Komvos {

namespace {

constexpr auto sendsBefore = [](const Pattern::Send& a, const Pattern::Send& b) {
  return a.destination != b.destination ? a.destination < b.destination : a.local < b.local;
};

constexpr auto receivesBefore = [](const Pattern::Receive& a, const Pattern::Receive& b) {
  return a.value != b.value ? a.value < b.value : a.target < b.target;
};

/// Most lists come sorted.
template <class List, class Less>
void sortIfNeeded(List& list, const Less& less) {
  if (!std::is_sorted(list.begin(), list.end(), less)) {
    std::sort(list.begin(), list.end(), less);
  }
}

/// Whether each entry is less than the next.
template <class List, class Less>
bool ascends(const List& list, const Less& less) {
  return std::adjacent_find(list.begin(), list.end(), [&](const auto& a, const auto& b) { return !less(a, b); }) ==
         list.end();
}

}  // namespace

void Pattern::normalize() {
  sortIfNeeded(sends, sendsBefore);
  const auto same = [](const Send& a, const Send& b) { return a.destination == b.destination && a.local == b.local; };
  sends.erase(std::unique(sends.begin(), sends.end(), same), sends.end());
  sortIfNeeded(receives, receivesBefore);
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
  if (!ascends(sends, sendsBefore) || !std::is_sorted(receives.begin(), receives.end(), receivesBefore)) {
    refuse(rank, "the lists are not sorted, or a value is sent twice: call normalize()");
  }
}

}  // namespace Komvos
