/// \file Komvos_LocalColumns.hpp
/// From columns of rows, global ones or those of another matrix, to a column map and local ones.
#pragma once

#include <Teuchos_RCP.hpp>
#include <Tpetra_Map.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_DeviceList.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_GlobalIdTable.hpp"
#include "Komvos_KokkosShim.hpp"
#include "Komvos_RowKernels.hpp"
#include "Komvos_TpetraShim.hpp"

// How this works. Entries that arrive have global columns, which are looked up one by one: in the domain map, or, if
// another rank has them, in a hash table that all threads fill. Entries that stay have columns of the source's column
// map, and each of these is looked up once. At first an entry has a preliminary index: its column in the source; or,
// after all of those, its index in the domain map; or -1 - slot of the hash table. If this has become too small, all is
// done again with a larger one. Then all columns are known, and numbered as Tpetra does: what is used of the domain
// map, in its order, then the others by owner and global id, whatever their slots; and preliminary indices are replaced
// by numbers, unless they are these already.
namespace Komvos::Impl {

template <class LO, class GO, class Node>
struct LocalColumns {
  using map_type = Tpetra::Map<LO, GO, Node>;
  using device_type = typename Node::device_type;
  Teuchos::RCP<const map_type> map;
  Kokkos::View<LO*, device_type> local;  ///< of each entry
  bool mapIsOfSource = false;            ///< on all ranks, and the domain map is the one of the source, too
};

/// The columns that entries which stay refer to.
template <class LO, class GO, class Node>
struct SourceColumns {
  Teuchos::RCP<const Tpetra::Map<LO, GO, Node>> map;  ///< null on all ranks: the source has global columns
  Teuchos::RCP<const Tpetra::Map<LO, GO, Node>> domain;
  Kokkos::View<int*, typename Node::device_type> used;  ///< of each: not 0 where an entry has it
};

/// Consecutive entries.
template <class MemorySpace>
struct Segments {
  Kokkos::View<const std::int64_t*, MemorySpace> first, lengths;
  RowItems<MemorySpace> items;

  Segments() = default;
  Segments(const std::vector<std::int64_t>& firstOf, const std::vector<std::int64_t>& lengthOf,
           std::int64_t entriesPerItem)
      : first(deviceList<MemorySpace>("Komvos::RowTransfer::segments", firstOf)),
        lengths(deviceList<MemorySpace>("Komvos::RowTransfer::segments", lengthOf)),
        items(lengthOf, entriesPerItem) {}
};

/// Preliminary indices of entries with global columns: `firstIndex` + the index in the domain map; -1 - slot in the
/// table for others. Marks which of the domain map are used. What it has done is of no use if the table has overflowed.
template <class GlobalView, class LocalView, class UsedView, class LocalMap, class Table, class MemorySpace>
struct LocalizeColumns {
  Kokkos::View<const std::int64_t*, MemorySpace> first, lengths;
  GlobalView global;
  LocalView local;
  UsedView used;
  LocalMap domain;
  typename LocalView::non_const_value_type firstIndex;
  Table table;

  KOKKOS_INLINE_FUNCTION std::int64_t length(int i) const { return lengths(i); }
  template <class Member>
  KOKKOS_INLINE_FUNCTION void operator()(const Member& member, int i, std::int64_t begin, std::int64_t end,
                                         bool) const {
    const std::int64_t from = first(i);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, begin, end), [&](const std::int64_t k) {
      const auto column = global(from + k);
      const auto lid = domain.getLocalElement(column);
      const bool here = lid >= 0 && lid < static_cast<decltype(lid)>(used.extent(0));
      local(from + k) = here ? firstIndex + lid : -1 - table.insert(column);
      if (here && atomicLoad(&used(lid)) == 0) {
        atomicStore(&used(lid), 1);
      }
    });
  }
};

/// Where columns of a source are: their index in the domain map; -1 if no entry has them; -2 - slot in the table if
/// they are not on this rank. Marks which of the domain map are used.
template <class UsedView, class LocalMap, class Table, class IndexView>
struct FindColumns {
  UsedView usedOfSource, used;
  LocalMap source, domain;
  Table table;
  IndexView found;
  KOKKOS_INLINE_FUNCTION void operator()(int c) const {
    if (usedOfSource(c) == 0) {
      found(c) = -1;
      return;
    }
    const auto column = source.getGlobalElement(c);
    const auto lid = domain.getLocalElement(column);
    const bool here = lid >= 0 && lid < static_cast<decltype(lid)>(used.extent(0));
    found(c) = here ? lid : -2 - table.insert(column);
    if (here && atomicLoad(&used(lid)) == 0) {
      atomicStore(&used(lid), 1);
    }
  }
};

/// Preliminary indices to final ones: of all entries, or of those in segments.
template <class LocalView, class NewIndexView, class MemorySpace>
struct RenumberColumns {
  LocalView local;
  NewIndexView newIndex, indexOfSlot;
  Kokkos::View<const std::int64_t*, MemorySpace> first, lengths;  ///< of segments

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    const auto index = local(i);
    local(i) = index >= 0 ? newIndex(index) : indexOfSlot(-1 - index);
  }
  KOKKOS_INLINE_FUNCTION std::int64_t length(int i) const { return lengths(i); }
  template <class Member>
  KOKKOS_INLINE_FUNCTION void operator()(const Member& member, int i, std::int64_t begin, std::int64_t end,
                                         bool) const {
    const std::int64_t from = first(i);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, begin, end),
                         [&](const std::int64_t k) { (*this)(from + k); });
  }
};

/// Numbers the columns of rows.
template <class LO, class GO, class Node>
class ColumnNumbering {
  using map_type = Tpetra::Map<LO, GO, Node>;
  using Device = typename Node::device_type;
  using Space = typename Device::execution_space;
  using Memory = typename BufferSpace<Space>::type;
  using Locals = Kokkos::View<LO*, Device>;
  using OnHost = decltype(Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), Locals()));
  using Table = GlobalIdTable<GO, Device>;
  using Globals = Kokkos::View<GO*, Device>;
  using Used = Kokkos::View<int*, Device>;

 public:
  /// \param global of the entries in `segments`, at their places; may be empty if there are none
  /// \param local of all entries: of those that are not in `segments`, the column in the source
  ColumnNumbering(MPI_Comm comm, const Teuchos::RCP<const map_type>& domain, const SourceColumns<LO, GO, Node>& source,
                  const Segments<Memory>& segments, const Globals& global, const Locals& local)
      : comm_(comm), domain_(domain), source_(source), segments_(segments), global_(global), local_(local) {}

  /// \note Collective. \throws BadInput on all ranks if the domain map lacks a column, one rank has no memory for lists
  /// of columns, more columns of the source and of the domain map than local indices, or more than
  /// Table::mostSlots / 2 different columns of other ranks
  LocalColumns<LO, GO, Node> run() {
    throwOnAllIfAny(comm_, errorIn([&] { findColumns(); }));
    domain_->getRemoteIndexList(view(remote_), owners_());
    throwOnAllIfAny(comm_, errorIn([&] { numberColumns(); }));
    return {columnMap(), local_, mapIsOfSource_};
  }

 private:
  static Teuchos::ArrayView<const GO> view(const std::vector<GO>& ids) {
    return {ids.data(), static_cast<Teuchos::Ordinal>(ids.size())};
  }
  std::size_t numSource() const { return source_.used.extent(0); }

  /// Preliminary indices, and which columns there are.
  void findColumns() {
    const Space& space = defaultSpace<Space>();
    const std::size_t numDomain = localLength(*domain_);
    if (numSource() + numDomain > static_cast<std::size_t>(std::numeric_limits<LO>::max())) {
      throw BadInput("RowTransfer: " + std::to_string(numSource()) + " columns of the source and " +
                     std::to_string(numDomain) + " of the domain map are too many for local indices (rank " +
                     std::to_string(domain_->getComm()->getRank()) + ")");
    }
    const Used used("Komvos::RowTransfer::used", numDomain);
    const auto domainMap = domain_->getLocalMap();
    const Locals found(Kokkos::view_alloc("Komvos::RowTransfer::found", Kokkos::WithoutInitializing), numSource());
    const auto entries = static_cast<std::size_t>(segments_.items.entries);
    std::size_t expected = std::min(numDomain, entries + numSource());  // different remote columns; seldom more
    Table table;
    do {
      table = Table(expected);
      using Localize = LocalizeColumns<Globals, Locals, Used, decltype(domainMap), Table, Memory>;
      forRows(space, "Komvos::RowTransfer::localize", segments_.items,
              Localize{segments_.first, segments_.lengths, global_, local_, used, domainMap,
                       static_cast<LO>(numSource()), table});
      if (numSource() > 0) {
        using Find = FindColumns<Used, decltype(domainMap), Table, Locals>;
        Kokkos::parallel_for("Komvos::RowTransfer::find", range(space, 0, static_cast<int>(numSource())),
                             Find{source_.used, used, source_.map->getLocalMap(), domainMap, table, found});
      }
      fence(space, "Komvos::RowTransfer: columns are found");
      expected = static_cast<std::size_t>(table.numSlots() - 1) * 4;
      if (table.overflowed() && table.numSlots() > Table::mostSlots) {
        throw BadInput("RowTransfer: more than " + std::to_string(Table::mostSlots / 2) +
                       " different columns of other ranks (rank " + std::to_string(domain_->getComm()->getRank()) +
                       ")");
      }
    } while (table.overflowed());
    const auto usedOnHost = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), used);
    newIndex_.assign(numSource() + numDomain, 0);
    for (std::size_t i = 0; i < numDomain; ++i) {
      newIndex_[numSource() + i] = static_cast<LO>(ids_.size());
      if (usedOnHost(i) != 0) {
        ids_.push_back(domain_->getGlobalElement(static_cast<LO>(i)));
      }
    }
    found_ = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), found);
    for (std::size_t c = 0; c < numSource(); ++c) {
      if (found_(c) >= 0) {
        newIndex_[c] = newIndex_[numSource() + static_cast<std::size_t>(found_(c))];
      }
    }
    for (const auto& [id, slot] : table.contents()) {
      remote_.push_back(id);
      slots_.push_back(slot);
    }
    numSlots_ = remote_.empty() ? 0 : static_cast<std::size_t>(table.numSlots());
    owners_.resize(static_cast<Teuchos::Ordinal>(remote_.size()), -1);
  }

  /// Numbers remote columns, and replaces preliminary indices.
  void numberColumns() {
    std::vector<int> order(remote_.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      return owners_[a] != owners_[b] ? owners_[a] < owners_[b] : remote_[a] < remote_[b];
    });
    if (!order.empty() && owners_[order.front()] < 0) {
      throw BadInput("RowTransfer: the domain map has no index " + std::to_string(remote_[order.front()]) +
                     ", which is a column of a row (rank " + std::to_string(domain_->getComm()->getRank()) + ")");
    }
    const std::size_t numHere = ids_.size();  // all of them on this rank
    std::vector<LO> indexOfSlot(numSlots_);
    for (const int place : order) {
      indexOfSlot[static_cast<std::size_t>(slots_[place])] = static_cast<LO>(ids_.size());
      ids_.push_back(remote_[place]);
    }
    bool same = true;  // columns of the source keep their indices
    std::size_t used = 0;
    for (std::size_t c = 0; c < numSource(); ++c) {
      newIndex_[c] = found_(c) < -1 ? indexOfSlot[static_cast<std::size_t>(-2 - found_(c))] : newIndex_[c];
      same = same && (found_(c) == -1 || newIndex_[c] == static_cast<LO>(c));
      used += found_(c) == -1 ? 0 : 1;
    }
    const bool indicesOfDomainStay = numSource() == 0 && numHere == newIndex_.size() && remote_.empty();
    if (!same || (segments_.items.entries > 0 && !indicesOfDomainStay)) {
      const Space& space = defaultSpace<Space>();
      const auto newIndex = deviceList<typename Device::memory_space>("Komvos::RowTransfer::newIndex", newIndex_);
      const auto ofSlot = deviceList<typename Device::memory_space>("Komvos::RowTransfer::indexOfSlot", indexOfSlot);
      const RenumberColumns<Locals, decltype(newIndex), Memory> renumber{local_, newIndex, ofSlot, segments_.first,
                                                                         segments_.lengths};
      if (same) {
        forRows(space, "Komvos::RowTransfer::renumber", segments_.items, renumber);
      } else {
        using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
        Kokkos::parallel_for("Komvos::RowTransfer::renumber",
                             Range(space, 0, static_cast<std::int64_t>(local_.extent(0))), renumber);
      }
      fence(space, "Komvos::RowTransfer: columns are numbered");
    }
    mapIsOfSource_ = same && used == numSource() && ids_.size() == numSource() && source_.domain.get() == domain_.get();
  }

  /// The one of the source, if it has just these columns, and the same domain, on all ranks. \note Collective.
  Teuchos::RCP<const map_type> columnMap() {
    if (!source_.map.is_null()) {
      const int mine = mapIsOfSource_ ? 1 : 0;
      int all = 0;
      mpiCheck(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm_), "MPI_Allreduce");
      mapIsOfSource_ = all != 0;
      if (mapIsOfSource_) {
        return source_.map;
      }
    }
    return Teuchos::rcp(new map_type(Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid(), view(ids_),
                                     domain_->getIndexBase(), domain_->getComm()));
  }

  MPI_Comm comm_;
  Teuchos::RCP<const map_type> domain_;
  SourceColumns<LO, GO, Node> source_;
  const Segments<Memory>& segments_;
  Globals global_;
  Locals local_;
  OnHost found_;
  std::vector<GO> remote_;      // columns of other ranks
  std::vector<int> slots_;      // theirs in the table
  Teuchos::Array<int> owners_;  // theirs
  std::size_t numSlots_ = 0;    // of the table, if there are such columns
  std::vector<LO> newIndex_;    // of columns of the source, then of the domain map
  std::vector<GO> ids_;         // of the column map
  bool mapIsOfSource_ = false;
};

/// \param source   of entries that stay, if the source is a matrix
/// \param segments entries with global columns, which are at the same places of `global`
/// \param local    of all entries; of those that are in no segment, the column in the source. Is changed in place
/// \note Collective. \throws BadInput on all ranks, see ColumnNumbering::run()
template <class LO, class GO, class Node, class MemorySpace>
LocalColumns<LO, GO, Node> localColumns(MPI_Comm comm, const Teuchos::RCP<const Tpetra::Map<LO, GO, Node>>& domain,
                                        const SourceColumns<LO, GO, Node>& source,
                                        const Segments<MemorySpace>& segments,
                                        const Kokkos::View<GO*, typename Node::device_type>& global,
                                        const Kokkos::View<LO*, typename Node::device_type>& local) {
  return ColumnNumbering<LO, GO, Node>(comm, domain, source, segments, global, local).run();
}

}  // namespace Komvos::Impl
