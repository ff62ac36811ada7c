/// \file Komvos_GlobalIdTable.hpp
/// A hash table of global ids.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "Komvos_KokkosShim.hpp"

namespace Komvos::Impl {

/// Different ids, each in a slot of its own: for kernels, many threads at once. Open addressing; at most half of the
/// slots are used, but for a few more that threads may fill at the same time. Which slot an id gets, and whether there
/// is room where just half of them are needed, may depend on the order in which threads come. Copies share their
/// memory.
template <class GlobalOrdinal, class Device>
class GlobalIdTable {
 public:
  static constexpr int full = -1;
  static constexpr int mostSlots = 1 << 30;

  GlobalIdTable() = default;
  /// For about so many ids; if there are more, it says that it is full.
  explicit GlobalIdTable(std::size_t ids)
      : slots_(slotsFor(ids)),
        ids_(Kokkos::view_alloc("Komvos::GlobalIdTable::ids", Kokkos::WithoutInitializing), slots_),
        counts_("Komvos::GlobalIdTable::counts") {
    Kokkos::deep_copy(ids_, none());
  }

  /// The slot of this id, or `full`.
  KOKKOS_INLINE_FUNCTION int insert(GlobalOrdinal id) const {
    if (id == none()) {
      atomicStore(&counts_(noneIsThere), 1);
      return slots_;
    }
    int slot = firstSlot(id);
    for (int tries = 0; tries < slots_; ++tries) {
      GlobalOrdinal there = atomicLoad(&ids_(slot));
      if (there == none()) {
        if (atomicLoad(&counts_(used)) >= slots_ / 2) {
          there = atomicLoad(&ids_(slot));  // another thread may have filled it with this id, and so the half
          if (there == id) {
            return slot;
          }
          break;
        }
        there = Kokkos::atomic_compare_exchange(&ids_(slot), none(), id);
        if (there == none()) {
          Kokkos::atomic_add(&counts_(used), 1);
          return slot;
        }
      }
      if (there == id) {
        return slot;
      }
      slot = slot + 1 < slots_ ? slot + 1 : 0;
    }
    atomicStore(&counts_(wasFull), 1);
    return full;
  }
  /// One more than the largest slot that insert() returns.
  int numSlots() const { return slots_ + 1; }
  /// Of the host, after kernels have ended: whether an id had no room.
  bool overflowed() const { return countsOnHost()(wasFull) != 0; }
  /// Ids and their slots, by slot.
  std::vector<std::pair<GlobalOrdinal, int>> contents() const {
    std::vector<std::pair<GlobalOrdinal, int>> found;
    const auto counts = countsOnHost();
    if (counts(used) > 0) {
      const auto ids = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), ids_);
      for (int slot = 0; slot < slots_; ++slot) {
        if (ids(slot) != none()) {
          found.emplace_back(ids(slot), slot);
        }
      }
    }
    if (counts(noneIsThere) != 0) {
      found.emplace_back(none(), slots_);
    }
    return found;
  }

 private:
  enum Count { used, wasFull, noneIsThere, numCounts };
  using Counts = Kokkos::View<int[numCounts], Device>;
  using CountsOnHost = decltype(Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), Counts()));

  /// What an empty slot has; no map has such an index.
  KOKKOS_INLINE_FUNCTION static constexpr GlobalOrdinal none() { return static_cast<GlobalOrdinal>(-1); }
  static int slotsFor(std::size_t ids) {
    int slots = 1024;
    while (slots < mostSlots && static_cast<std::size_t>(slots) < 2 * ids) {
      slots *= 2;
    }
    return slots;
  }
  KOKKOS_INLINE_FUNCTION int firstSlot(GlobalOrdinal id) const {
    std::uint64_t mixed = static_cast<std::uint64_t>(id) * 0x9e3779b97f4a7c15ULL;
    mixed ^= mixed >> 32;
    return static_cast<int>(mixed & static_cast<std::uint64_t>(slots_ - 1));
  }
  CountsOnHost countsOnHost() const { return Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), counts_); }

  int slots_ = 0;  // a power of two
  Kokkos::View<GlobalOrdinal*, Device> ids_;
  Counts counts_;
};

}  // namespace Komvos::Impl
