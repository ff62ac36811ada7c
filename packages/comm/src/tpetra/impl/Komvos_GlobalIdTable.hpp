/// \file Komvos_GlobalIdTable.hpp
/// A hash table of global ids.
#pragma once

#include <cstdint>
#include <vector>

namespace Komvos::Impl {

/// Numbers different ids by the order of their first appearance. Open addressing, on the host.
template <class GlobalOrdinal>
class GlobalIdTable {
 public:
  GlobalIdTable() : slots_(1024, empty) {}

  /// The number of this id, a new one if it is not there.
  int insert(GlobalOrdinal id) {
    std::size_t slot = slotOf(id);
    while (slots_[slot] != empty) {
      if (ids_[slots_[slot]] == id) {
        return slots_[slot];
      }
      slot = (slot + 1) & (slots_.size() - 1);
    }
    const int number = static_cast<int>(ids_.size());
    ids_.push_back(id);
    slots_[slot] = number;
    if (2 * ids_.size() > slots_.size()) {
      grow();
    }
    return number;
  }
  /// By number.
  const std::vector<GlobalOrdinal>& ids() const { return ids_; }

 private:
  static constexpr int empty = -1;

  std::size_t slotOf(GlobalOrdinal id) const {
    std::uint64_t mixed = static_cast<std::uint64_t>(id) * 0x9e3779b97f4a7c15ULL;
    mixed ^= mixed >> 32;
    return static_cast<std::size_t>(mixed) & (slots_.size() - 1);
  }
  void grow() {
    slots_.assign(4 * slots_.size(), empty);
    for (std::size_t number = 0; number < ids_.size(); ++number) {
      std::size_t slot = slotOf(ids_[number]);
      while (slots_[slot] != empty) {
        slot = (slot + 1) & (slots_.size() - 1);
      }
      slots_[slot] = static_cast<int>(number);
    }
  }

  std::vector<int> slots_;  // numbers; a power of two
  std::vector<GlobalOrdinal> ids_;
};

}  // namespace Komvos::Impl
