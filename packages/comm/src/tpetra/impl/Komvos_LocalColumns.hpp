/// \file Komvos_LocalColumns.hpp
/// From global columns of rows to a column map and local ones.
#pragma once

#include <Teuchos_RCP.hpp>
#include <Tpetra_Map.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_DeviceList.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_GlobalIdTable.hpp"
#include "Komvos_KokkosShim.hpp"
#include "Komvos_LargeArray.hpp"
#include "Komvos_TpetraShim.hpp"

// How this works. Columns become local in one pass over the entries: those of the domain map on this rank by the map,
// all others by a hash table, sorted by owner and global id as Tpetra does.
namespace Komvos::Impl {

template <class LO, class GO, class Node>
struct LocalColumns {
  using map_type = Tpetra::Map<LO, GO, Node>;
  using device_type = typename Node::device_type;
  Teuchos::RCP<const map_type> map;
  Kokkos::View<LO*, device_type> local;  ///< of each entry
};

/// Local columns of what the domain map has here, -1 for others, which are counted; marks which are used.
template <class GlobalView, class LocalView, class UsedView, class LocalMap>
struct LocalizeColumns {
  GlobalView global;
  LocalView local;
  UsedView used;
  LocalMap domain;
  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::int64_t& remote) const {
    const auto lid = domain.getLocalElement(global(i));
    const bool here = lid >= 0 && lid < static_cast<decltype(lid)>(used.extent(0));
    local(i) = here ? lid : -1;
    remote += here ? 0 : 1;
    if (here && atomicLoad(&used(lid)) == 0) {
      atomicStore(&used(lid), 1);
    }
  }
};

/// Domain indices to column indices, where the column map leaves some out.
template <class LocalView, class NewIndexView>
struct RenumberColumns {
  LocalView local;
  NewIndexView newIndex;
  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    if (local(i) >= 0) {
      local(i) = newIndex(local(i));
    }
  }
};

/// Remote columns of `global` (those with local < 0) get indices from `firstIndex` on, sorted by owner and id.
/// \param remote how many entries have such a column, on this rank
/// \return their global ids, in that order
/// \note Collective. \throws BadInput on all ranks if the domain map lacks a column
template <class LO, class GO, class Node, class GlobalView, class LocalView>
std::vector<GO> numberRemoteColumns(MPI_Comm comm, const Tpetra::Map<LO, GO, Node>& domain, const GlobalView& global,
                                    const LocalView& local, std::int64_t remote, LO firstIndex) {
  using Space = Kokkos::HostSpace;
  const std::int64_t entries = remote > 0 ? static_cast<std::int64_t>(global.extent(0)) : 0;
  const auto wanted = std::make_pair(std::int64_t(0), entries);
  const auto globalOnHost = Kokkos::create_mirror_view_and_copy(Space(), Kokkos::subview(global, wanted));
  const auto localHere = Kokkos::subview(local, wanted);
  const auto localOnHost = Kokkos::create_mirror_view_and_copy(Space(), localHere);
  GlobalIdTable<GO> table;
  for (std::int64_t i = 0; i < entries; ++i) {
    if (localOnHost(i) < 0) {
      localOnHost(i) = -1 - table.insert(globalOnHost(i));  // ~place, until all are known
    }
  }
  const std::vector<GO>& ids = table.ids();
  Teuchos::Array<int> owners(ids.size(), -1);
  domain.getRemoteIndexList(Teuchos::ArrayView<const GO>(ids.data(), static_cast<Teuchos::Ordinal>(ids.size())),
                            owners());
  std::string error;
  for (std::size_t i = 0; i < ids.size() && error.empty(); ++i) {
    if (owners[i] < 0) {
      error = "RowTransfer: the domain map has no index " + std::to_string(ids[i]) +
              ", which is a column of a row (rank " + std::to_string(domain.getComm()->getRank()) + ")";
    }
  }
  throwOnAllIfAny(comm, error);
  std::vector<int> order(ids.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<int>(i);
  }
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return owners[a] != owners[b] ? owners[a] < owners[b] : ids[a] < ids[b]; });
  std::vector<GO> sorted;
  std::vector<LO> indexOf(ids.size());
  for (const int place : order) {
    indexOf[place] = firstIndex + static_cast<LO>(sorted.size());
    sorted.push_back(ids[place]);
  }
  for (std::int64_t i = 0; i < entries; ++i) {
    if (localOnHost(i) < 0) {
      localOnHost(i) = indexOf[-1 - localOnHost(i)];
    }
  }
  Kokkos::deep_copy(localHere, localOnHost);
  return sorted;
}

/// \param global of each entry, on the device
/// \note Collective. \throws BadInput on all ranks if the domain map lacks a column; Error if one has no memory
template <class LO, class GO, class Node, class GlobalView>
LocalColumns<LO, GO, Node> localColumns(MPI_Comm comm, const Teuchos::RCP<const Tpetra::Map<LO, GO, Node>>& domain,
                                        const GlobalView& global) {
  using Result = LocalColumns<LO, GO, Node>;
  using Device = typename Result::device_type;
  using Space = typename Device::execution_space;
  using Locals = Kokkos::View<LO*, Device>;
  using Range = Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>;
  const Space& space = defaultSpace<Space>();
  const std::int64_t entries = static_cast<std::int64_t>(global.extent(0));
  Result result;
  std::int64_t remoteEntries = 0;
  std::vector<GO> ids;
  throwOnAllIfAny(comm, errorIn([&] {
                    result.local = largeArray<Locals>("Komvos::RowTransfer::local", entries);
                    Kokkos::View<int*, Device> used("Komvos::RowTransfer::used", localLength(*domain));
                    const auto domainMap = domain->getLocalMap();
                    using Localize = LocalizeColumns<GlobalView, Locals, decltype(used), decltype(domainMap)>;
                    Kokkos::parallel_reduce("Komvos::RowTransfer::localize", Range(space, 0, entries),
                                            Localize{global, result.local, used, domainMap}, remoteEntries);
                    // The column map has what is used of the domain map, in its order, then the others.
                    const auto usedOnHost = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), used);
                    std::vector<LO> newIndex(usedOnHost.extent(0));
                    for (std::size_t i = 0; i < newIndex.size(); ++i) {
                      newIndex[i] = static_cast<LO>(ids.size());
                      if (usedOnHost(i) != 0) {
                        ids.push_back(domain->getGlobalElement(static_cast<LO>(i)));
                      }
                    }
                    if (ids.size() < newIndex.size()) {
                      using Memory = typename Device::memory_space;
                      const auto onDevice = deviceList<Memory>("Komvos::RowTransfer::newIndex", newIndex);
                      Kokkos::parallel_for("Komvos::RowTransfer::renumber", Range(space, 0, entries),
                                           RenumberColumns<Locals, decltype(onDevice)>{result.local, onDevice});
                      fence(space, "Komvos::RowTransfer: columns are numbered");
                    }
                  }));
  const std::vector<GO> remote = numberRemoteColumns<LO, GO, Node>(comm, *domain, global, result.local, remoteEntries,
                                                                   static_cast<LO>(ids.size()));
  ids.insert(ids.end(), remote.begin(), remote.end());
  result.map = Teuchos::rcp(
      new typename Result::map_type(Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid(),
                                    Teuchos::ArrayView<const GO>(ids.data(), static_cast<Teuchos::Ordinal>(ids.size())),
                                    domain->getIndexBase(), domain->getComm()));
  return result;
}

}  // namespace Komvos::Impl
