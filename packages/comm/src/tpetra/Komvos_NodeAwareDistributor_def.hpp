/// \file Komvos_NodeAwareDistributor_def.hpp
/// Definitions of NodeAwareDistributor.
#pragma once

#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_DeviceList.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_HaloPlanner.hpp"
#include "Komvos_NodeAwareDistributor.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_RowKernels.hpp"
#include "Komvos_SetupTransport.hpp"
#include "Komvos_VariableExchange.hpp"

// How this works. Senders tell receivers which of their exports come, in one round in which receivers need not know
// senders; that makes a pattern, whose values are exports. VariableExchange moves them as runs of bytes, padded to
// words. What stays on a rank is copied. Posting packs and sends, waiting unpacks. The way back is a distributor of its
// own, made when it is first used: its exports are the imports, and it sorts by rank what it brings, which is put back
// in the order of the exports.
namespace Komvos {

namespace Impl {

/// Runs of bytes between two arrays, `Unit` by `Unit`.
template <class Unit, class MemorySpace>
struct CopyPackets {
  Kokkos::View<const std::int64_t*, MemorySpace> from, to, lengths;  ///< in units
  const Unit* source;
  Unit* target;

  KOKKOS_INLINE_FUNCTION std::int64_t length(int i) const { return lengths(i); }
  template <class Member>
  KOKKOS_INLINE_FUNCTION void operator()(const Member& member, int i, std::int64_t begin, std::int64_t end,
                                         bool) const {
    const Unit* const first = source + from(i);
    Unit* const last = target + to(i);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(member, begin, end),
                         [&](const std::int64_t k) { last[k] = first[k]; });
  }
};

/// Some bytes of one array to another, on the device. Offsets and lengths in bytes.
struct PacketLists {
  std::vector<std::int64_t> from, to, length;
  void add(std::int64_t first, std::int64_t target, std::int64_t bytes) {
    from.push_back(first);
    to.push_back(target);
    length.push_back(bytes);
  }
};

template <class Unit, class ExecutionSpace, class MemorySpace>
void copyPacketsBy(const ExecutionSpace& space, PacketLists lists, const void* source, void* target) {
  for (std::vector<std::int64_t>* const list : {&lists.from, &lists.to, &lists.length}) {
    for (std::int64_t& bytes : *list) {
      bytes /= static_cast<std::int64_t>(sizeof(Unit));
    }
  }
  const RowItems<MemorySpace> items(lists.length, entriesPerItem<ExecutionSpace>());
  forRows(space, "Komvos::NodeAwareDistributor::copy", items,
          CopyPackets<Unit, MemorySpace>{deviceList<MemorySpace>("from", lists.from),
                                         deviceList<MemorySpace>("to", lists.to),
                                         deviceList<MemorySpace>("lengths", lists.length),
                                         static_cast<const Unit*>(source), static_cast<Unit*>(target)});
  fence(space, "Komvos::NodeAwareDistributor: lists are on the device while they are read");
}

template <class MemorySpace, class ExecutionSpace>
void copyPackets(const ExecutionSpace& space, std::size_t unit, const PacketLists& lists, const void* source,
                 void* target) {
  if (unit == 8) {
    copyPacketsBy<std::uint64_t, ExecutionSpace, MemorySpace>(space, lists, source, target);
  } else if (unit == 4) {
    copyPacketsBy<std::uint32_t, ExecutionSpace, MemorySpace>(space, lists, source, target);
  } else {
    copyPacketsBy<unsigned char, ExecutionSpace, MemorySpace>(space, lists, source, target);
  }
}

inline std::vector<std::int64_t> offsetsOf(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> offsets{0};
  for (const std::int64_t length : lengths) {
    offsets.push_back(offsets.back() + length);
  }
  return offsets;
}

}  // namespace Impl

template <class Device>
struct NodeAwareDistributor<Device>::State {
  using exchange_type = Impl::VariableExchange<Device>;
  using execution_space = typename Device::execution_space;
  using memory_space = typename Device::memory_space;

  Teuchos::RCP<const Teuchos::Comm<int>> teuchosComm;
  std::shared_ptr<Impl::PrivateComm> ours;
  ExchangeOptions options;
  std::vector<int> procsTo, procsFrom;
  std::vector<std::size_t> lengthsTo, lengthsFrom;
  std::size_t numExports = 0, numImports = 0, firstSelfImport = 0;
  std::vector<int> selfExports;  ///< their imports are consecutive
  std::vector<int> importRank;
  std::vector<int> byDestination;  ///< exports that go anywhere, sorted
  PlannedHalo halo;
  std::unique_ptr<exchange_type> exchange;
  std::optional<std::size_t> wordsOfAll;  ///< that messages have room for, if all values have as many
  std::unique_ptr<NodeAwareDistributor> reverse;
  struct Posted {
    void* imports;
    std::size_t unit;
    Impl::PacketLists unpack;
    std::string failed;  ///< here; waits until the exchange has ended, for others need what this rank sends
  };
  std::optional<Posted> posted;  ///< and not waited for

  /// \throws Error, on all ranks as calls are collective
  void requireNothingPosted() const {
    if (posted || (reverse && reverse->state_->posted)) {
      throw Error("NodeAwareDistributor: packets that were posted have not been waited for");
    }
  }
  std::string misfit(const Bytes& bytes, const std::vector<std::int64_t>& exportBytes,
                     const std::vector<std::int64_t>& importBytes) const;
  std::string misfitOfBack(const Bytes& bytes, const std::vector<std::int64_t>& given) const;
};

template <class Device>
NodeAwareDistributor<Device>::NodeAwareDistributor(const Teuchos::RCP<const Teuchos::Comm<int>>& comm,
                                                   const ExchangeOptions& options)
    : state_(std::make_unique<State>()) {
  state_->teuchosComm = comm;
  state_->ours = Impl::PrivateComm::of(Tpetra::Details::extractMpiCommFromTeuchos(*comm));
  state_->options = options;
  // What is decided for halos does not count, and nothing is decided for them here.
  state_->options.tuning = Tuning::off;
  state_->options.intraNode = IntraNode::messages;
  state_->options.reuseDecisions = false;
  state_->options.record.reset();
}

template <class Device>
NodeAwareDistributor<Device>::~NodeAwareDistributor() = default;
template <class Device>
NodeAwareDistributor<Device>::NodeAwareDistributor(NodeAwareDistributor&&) noexcept = default;
template <class Device>
NodeAwareDistributor<Device>& NodeAwareDistributor<Device>::operator=(NodeAwareDistributor&&) noexcept = default;

template <class Device>
std::size_t NodeAwareDistributor<Device>::createFromSends(const Teuchos::ArrayView<const int>& exportProcIDs) {
  State& state = *state_;
  state.requireNothingPosted();
  const int rank = state.ours->rank(), size = state.ours->size();
  std::string error;
  std::map<int, std::vector<int>> exports;  // by destination
  for (int i = 0; i < static_cast<int>(exportProcIDs.size()); ++i) {
    const int to = exportProcIDs[i];
    if (to >= size) {
      error = "NodeAwareDistributor::createFromSends: export " + std::to_string(i) + " goes to rank " +
              std::to_string(to) + " of " + std::to_string(size) + " (rank " + std::to_string(rank) + ")";
    } else if (to >= 0) {
      exports[to].push_back(i);
    }
  }
  throwOnAllIfAny(state.ours->get(), error);

  std::vector<std::vector<SetupMessage>> outbox(1);
  state.procsTo.clear();
  state.lengthsTo.clear();
  state.byDestination.clear();
  state.selfExports = exports[rank];
  Pattern pattern;
  pattern.rank = rank;
  pattern.numOwned = static_cast<int>(exportProcIDs.size());
  for (const auto& [to, list] : exports) {
    if (list.empty()) {
      continue;
    }
    state.procsTo.push_back(to);
    state.lengthsTo.push_back(list.size());
    state.byDestination.insert(state.byDestination.end(), list.begin(), list.end());
    if (to != rank) {
      outbox[0].push_back({to, list});
      for (const int i : list) {
        pattern.sends.push_back({to, i});
      }
    }
  }
  MpiSetupTransport transport(state.ours->get());
  const std::vector<SetupMessage> inbox = std::move(transport.exchange(std::move(outbox)).front());
  state.procsFrom.clear();
  state.lengthsFrom.clear();
  state.importRank.clear();
  const auto importFrom = [&](int from, std::size_t count) {
    if (count > 0) {
      state.procsFrom.push_back(from);
      state.lengthsFrom.push_back(count);
      state.importRank.insert(state.importRank.end(), count, from);
    }
  };
  bool selfIsThere = false;
  const auto importFromSelf = [&] {
    state.firstSelfImport = state.importRank.size();
    importFrom(rank, state.selfExports.size());
    selfIsThere = true;
  };
  for (const SetupMessage& message : inbox) {  // by source
    if (message.peer > rank && !selfIsThere) {
      importFromSelf();
    }
    for (const int i : message.data) {
      pattern.receives.push_back({{message.peer, i}, static_cast<int>(state.importRank.size())});
      state.importRank.push_back(message.peer);
    }
    state.procsFrom.push_back(message.peer);
    state.lengthsFrom.push_back(message.data.size());
  }
  if (!selfIsThere) {
    importFromSelf();
  }
  state.numExports = static_cast<std::size_t>(exportProcIDs.size());
  state.numImports = state.importRank.size();
  pattern.numTarget = static_cast<int>(state.numImports);
  state.halo = planHalo(state.ours->get(), std::move(pattern), state.options);
  state.exchange = std::make_unique<typename State::exchange_type>(state.ours->get(), state.halo.plan,
                                                                   state.halo.mpiIsGpuAware, state.halo.forceStaging);
  state.wordsOfAll.reset();
  state.reverse.reset();
  return state.numImports;
}

template <class Device>
std::vector<int> NodeAwareDistributor<Device>::askOwners(const std::vector<int>& ids, int parts,
                                                         const Teuchos::ArrayView<const int>& owners,
                                                         std::vector<int>& askers) {
  State& state = *state_;
  const int rank = state.ours->rank(), size = state.ours->size();
  std::string error;
  std::map<int, std::vector<int>> asked;
  if (ids.size() != static_cast<std::size_t>(parts) * static_cast<std::size_t>(owners.size())) {
    error = "NodeAwareDistributor::createFromRecvs: " + std::to_string(ids.size() / parts) + " ids of " +
            std::to_string(owners.size()) + " owners (rank " + std::to_string(rank) + ")";
  }
  for (int i = 0; error.empty() && i < static_cast<int>(owners.size()); ++i) {
    if (owners[i] < 0 || owners[i] >= size) {
      error = "NodeAwareDistributor::createFromRecvs: import " + std::to_string(i) + " comes from rank " +
              std::to_string(owners[i]) + " of " + std::to_string(size) + " (rank " + std::to_string(rank) + ")";
      break;
    }
    std::vector<int>& list = asked[owners[i]];
    list.insert(list.end(), ids.begin() + i * parts, ids.begin() + (i + 1) * parts);
  }
  throwOnAllIfAny(state.ours->get(), error);
  std::vector<std::vector<SetupMessage>> outbox(1);
  for (auto& [owner, list] : asked) {
    if (owner != rank) {
      outbox[0].push_back({owner, std::move(list)});
    }
  }
  MpiSetupTransport transport(state.ours->get());
  std::vector<SetupMessage> inbox = std::move(transport.exchange(std::move(outbox)).front());
  if (asked.count(rank) > 0) {
    const auto after =
        std::find_if(inbox.begin(), inbox.end(), [&](const SetupMessage& one) { return one.peer > rank; });
    inbox.insert(after, {rank, asked[rank]});
  }
  std::vector<int> flat;
  askers.clear();
  for (const SetupMessage& message : inbox) {
    flat.insert(flat.end(), message.data.begin(), message.data.end());
    askers.insert(askers.end(), message.data.size() / parts, message.peer);
  }
  return flat;
}

/// \return how the arguments of this rank do not fit, or nothing
template <class Device>
std::string NodeAwareDistributor<Device>::State::misfit(const Bytes& bytes,
                                                        const std::vector<std::int64_t>& exportBytes,
                                                        const std::vector<std::int64_t>& importBytes) const {
  const auto total = [&](const std::vector<std::int64_t>& list) {
    return static_cast<std::size_t>(std::accumulate(list.begin(), list.end(), std::int64_t(0))) / bytes.packet;
  };
  const std::string where = " (rank " + std::to_string(ours->rank()) + ")";
  if (exportBytes.size() != numExports || importBytes.size() != numImports) {
    return "NodeAwareDistributor: numbers of packets of " + std::to_string(exportBytes.size()) + " exports and " +
           std::to_string(importBytes.size()) + " imports; there are " + std::to_string(numExports) + " and " +
           std::to_string(numImports) + where;
  }
  if (bytes.numExports < total(exportBytes) || bytes.numImports < total(importBytes)) {
    return "NodeAwareDistributor: views of " + std::to_string(bytes.numExports) + " and " +
           std::to_string(bytes.numImports) + " packets; exports have " + std::to_string(total(exportBytes)) +
           ", imports " + std::to_string(total(importBytes)) + where;
  }
  return {};
}

/// Of what comes back for exports that went somewhere or nowhere.
template <class Device>
std::string NodeAwareDistributor<Device>::State::misfitOfBack(const Bytes& bytes,
                                                              const std::vector<std::int64_t>& given) const {
  const std::size_t packets =
      static_cast<std::size_t>(std::accumulate(given.begin(), given.end(), std::int64_t(0))) / bytes.packet;
  if (given.size() == numExports && bytes.numImports >= packets) {
    return {};
  }
  return "NodeAwareDistributor: on the way back " + std::to_string(given.size()) + " numbers of " +
         std::to_string(packets) + " packets in all, and a view of " + std::to_string(bytes.numImports) +
         " packets; there are " + std::to_string(numExports) + " exports (rank " + std::to_string(ours->rank()) + ")";
}

template <class Device>
void NodeAwareDistributor<Device>::throwOnAll(const std::string& error) const {
  Impl::throwMismatchOnAllIfAny(state_->ours->get(), error);
}

template <class Device>
void NodeAwareDistributor<Device>::postBytes(bool reverse, const Bytes& bytes, const Numbers* exportNumbers,
                                             std::size_t number, const Numbers* importNumbers) {
  State& state = *state_;
  using memory_space = typename State::memory_space;
  const auto& space = Impl::defaultSpace<typename State::execution_space>();
  if (!state.exchange) {
    throw Error("NodeAwareDistributor: nobody has said where packets go");  // on all ranks
  }
  if (reverse && !state.reverse) {
    auto back = std::make_unique<NodeAwareDistributor>(state.teuchosComm, state.options);
    back->createFromSends(view(state.importRank));
    state.reverse = std::move(back);
  }
  State& way = reverse ? *state.reverse->state_ : state;
  if (way.posted) {
    throw Error("NodeAwareDistributor: packets that were posted have not been waited for");  // on all ranks
  }
  const std::int64_t packet = static_cast<std::int64_t>(bytes.packet);
  const auto bytesOf = [&](const Numbers* numbers, std::size_t count) {
    std::vector<std::int64_t> list(numbers != nullptr ? static_cast<std::size_t>(numbers->size()) : count);
    for (std::size_t i = 0; i < list.size(); ++i) {
      list[i] = packet *
                static_cast<std::int64_t>(numbers != nullptr ? (*numbers)[static_cast<Teuchos::Ordinal>(i)] : number);
    }
    return list;
  };
  const std::vector<std::int64_t> exportBytes = bytesOf(exportNumbers, way.numExports);
  const std::vector<std::int64_t> given = bytesOf(importNumbers, reverse ? state.numExports : way.numImports);
  // On the way back, import i of the distributor is for export byDestination[i] of this one. Some exports may have gone
  // nowhere, and nothing comes back for them; the caller's numbers and view have a place for them.
  std::vector<std::int64_t> importBytes = given;
  std::vector<std::int64_t> importAt = Impl::offsetsOf(given);
  if (reverse && given.size() == state.numExports) {
    const std::vector<std::int64_t> at = importAt;
    importBytes.clear();
    importAt.clear();
    for (const int i : state.byDestination) {
      importBytes.push_back(given[i]);
      importAt.push_back(at[i]);
    }
  }
  std::string error = way.misfit(bytes, exportBytes, importBytes);
  if (reverse && error.empty()) {
    error = state.misfitOfBack(bytes, given);
  }
  Impl::throwMismatchOnAllIfAny(state.ours->get(), error);

  auto& exchange = *way.exchange;
  const auto words = [](std::int64_t count) { return std::max<std::int64_t>(1, (count + 7) / 8); };
  std::vector<std::int64_t> arriving;
  if (exportNumbers == nullptr) {  // everybody knows
    const auto all = static_cast<std::size_t>(packet) * number;
    if (way.wordsOfAll != all) {
      typename State::exchange_type::Counts counts;
      counts.owned.assign(way.numExports, static_cast<std::int64_t>(all));
      counts.received.assign(way.halo.plan->receiveLength(), static_cast<std::int64_t>(all));
      way.wordsOfAll.reset();  // nothing is known if this throws
      exchange.setLengths(counts, words);
      way.wordsOfAll = all;
    }
    arriving.assign(exchange.arrivals().size(), static_cast<std::int64_t>(all));
  } else {
    way.wordsOfAll.reset();
    const auto counts = exchange.exchangeLengths(exportBytes, words);
    arriving = exchange.arrivalCounts(counts);
  }
  std::string wrong;
  const auto& arrivals = exchange.arrivals();
  Impl::PacketLists unpack;
  for (int i = 0; i < arrivals.size(); ++i) {
    const int import = arrivals.hostIndex[i];
    if (arriving[i] != importBytes[import]) {
      wrong = "NodeAwareDistributor: import " + std::to_string(import) + " has " +
              std::to_string(importBytes[import] / packet) + " packets here, but rank " +
              std::to_string(way.importRank[import]) + " sends " + std::to_string(arriving[i] / packet) + " (rank " +
              std::to_string(state.ours->rank()) + ")";
    }
    unpack.add(8 * arrivals.hostFirst[i], importAt[import], arriving[i]);
  }
  for (std::size_t i = 0; i < way.selfExports.size(); ++i) {
    const std::int64_t to = importBytes[way.firstSelfImport + i], from = exportBytes[way.selfExports[i]];
    if (to != from) {
      wrong = "NodeAwareDistributor: import " + std::to_string(way.firstSelfImport + i) + ", of this rank, has " +
              std::to_string(to / packet) + " packets, and the export " + std::to_string(from / packet) + " (rank " +
              std::to_string(state.ours->rank()) + ")";
    }
  }
  if (exportNumbers != nullptr) {
    Impl::throwMismatchOnAllIfAny(state.ours->get(), wrong);
  }
  const std::vector<std::int64_t> exportAt = Impl::offsetsOf(exportBytes);
  Impl::PacketLists here;
  for (std::size_t i = 0; i < way.selfExports.size(); ++i) {
    here.add(exportAt[way.selfExports[i]], importAt[way.firstSelfImport + i], exportBytes[way.selfExports[i]]);
  }
  exchange.begin(space, [&](const auto& buffer) {
    Impl::PacketLists pack;
    const auto& departures = exchange.departures();
    for (int i = 0; i < departures.size(); ++i) {
      const int one = departures.hostIndex[i];
      pack.add(exportAt[one], 8 * departures.hostFirst[i], exportBytes[one]);
    }
    Impl::copyPackets<memory_space>(space, bytes.unit, pack, bytes.exports, buffer.data());
  });
  way.posted = typename State::Posted{bytes.imports, bytes.unit, std::move(unpack), {}};
  way.posted->failed =
      Impl::errorIn([&] { Impl::copyPackets<memory_space>(space, bytes.unit, here, bytes.exports, bytes.imports); });
}

template <class Device>
void NodeAwareDistributor<Device>::waitForBytes(bool reverse) {
  if (reverse && !state_->reverse) {
    return;
  }
  State& way = reverse ? *state_->reverse->state_ : *state_;
  if (!way.posted) {
    return;
  }
  const auto& space = Impl::defaultSpace<typename State::execution_space>();
  const typename State::Posted posted = std::move(*way.posted);
  way.posted.reset();
  way.exchange->end(space);
  if (!posted.failed.empty()) {
    throw Error(posted.failed);
  }
  Impl::copyPackets<typename State::memory_space>(space, posted.unit, posted.unpack, way.exchange->received().data(),
                                                  posted.imports);
}

template <class Device>
bool NodeAwareDistributor<Device>::hasSelfMessage() const {
  return !state_->selfExports.empty();
}
template <class Device>
std::size_t NodeAwareDistributor<Device>::getTotalReceiveLength() const {
  return state_->numImports;
}
template <class Device>
std::size_t NodeAwareDistributor<Device>::getMaxSendLength() const {
  std::size_t most = 0;
  for (std::size_t i = 0; i < state_->procsTo.size(); ++i) {
    most = state_->procsTo[i] == state_->ours->rank() ? most : std::max(most, state_->lengthsTo[i]);
  }
  return most;
}
template <class Device>
const std::vector<int>& NodeAwareDistributor<Device>::procsTo() const {
  return state_->procsTo;
}
template <class Device>
const std::vector<int>& NodeAwareDistributor<Device>::procsFrom() const {
  return state_->procsFrom;
}
template <class Device>
const std::vector<std::size_t>& NodeAwareDistributor<Device>::lengthsTo() const {
  return state_->lengthsTo;
}
template <class Device>
const std::vector<std::size_t>& NodeAwareDistributor<Device>::lengthsFrom() const {
  return state_->lengthsFrom;
}
template <class Device>
const ExchangePlan& NodeAwareDistributor<Device>::plan() const {
  return *state_->halo.plan;
}

}  // namespace Komvos

#define KOMVOS_NODEAWAREDISTRIBUTOR_INSTANT(NODE) template class NodeAwareDistributor<NODE::device_type>;
