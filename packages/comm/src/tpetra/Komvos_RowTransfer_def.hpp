/// \file Komvos_RowTransfer_def.hpp
/// Definitions of RowTransfer.
#pragma once

#include <Tpetra_CrsMatrix.hpp>
#include <Tpetra_Details_Transfer.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <Tpetra_Export.hpp>
#include <Tpetra_Import.hpp>
#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "Komvos_DeviceList.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_HaloPlanner.hpp"
#include "Komvos_LargeArray.hpp"
#include "Komvos_LocalColumns.hpp"
#include "Komvos_MergedColumns.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_RowKernels.hpp"
#include "Komvos_RowTransfer.hpp"
#include "Komvos_TransferLists.hpp"
#include "Komvos_VariableExchange.hpp"

// How this works. A row is a value of a plan, from the rank that has it to those that want it; VariableExchange moves
// it as a run of words (RowFormat). Several rows may go to one row of the target, so a plan's targets are slots, one
// for each row that arrives; a list says which rows that stay, and which slots, make up each row of the target.
//
// transfer(): the numbers of entries travel; rows are packed; meanwhile those that stay are copied into arrays that
// have room for the others, which are unpacked, with global columns, between them; localColumns() makes columns those
// of the target, and mergeColumns() finds which entries add up. The lists of that are kept: for each entry of the
// target, the places its value comes from. transferValues() packs values alone and sums along these lists.
//
// Where all rows stay, and the domain map is the one of the source, the target keeps all columns of the source. Where
// these also keep their numbers, on all ranks, as of rows that are only permuted, it has the column map of the source,
// and its import.
//
// Errors are agreed on before collective calls: a rank that finds a broken row finishes the exchange first.
namespace Komvos {

template <class S, class LO, class GO, class Node>
struct RowTransfer<S, LO, GO, Node>::State {
  using execution_space = typename device_type::execution_space;
  using format_type = Impl::RowFormat<value_type>;
  using exchange_type = Impl::VariableExchange<device_type>;
  using memory_space = typename exchange_type::memory_space;
  using word = typename exchange_type::word;
  using local_matrix_type = typename crs_matrix_type::local_matrix_device_type;
  using offset_view = typename local_matrix_type::row_map_type;
  using column_view = typename local_matrix_type::index_type;
  using local_map_type = typename map_type::local_map_type;
  using rows_type = Impl::MatrixRows<value_type, local_map_type, offset_view, column_view>;
  using array_rows_type = Impl::ArrayRows<value_type, decltype(Arrays::offset), decltype(Arrays::columns)>;
  using items_type = Impl::RowItems<memory_space>;
  using unpack_type = Impl::UnpackRows<value_type, GO, memory_space>;
  using merged_type = Impl::MergedColumns<LO, device_type>;
  using value_view = Kokkos::View<value_type*, device_type>;
  using graph_type = typename crs_matrix_type::crs_graph_type;

  /// Rows of the target are made of parts: rows of the source that stay, and slots.
  struct Parts {
    std::vector<std::int64_t> rowOffset;           ///< entries of each row of the target, before they are merged
    std::vector<int> stays;                        ///< runs of rows of the source: the first one of each
    std::vector<std::int64_t> stayLength, stayTo;  ///< their entries, and the first of these in the target
    bool allStay = false;                          ///< each row of the source is among them
    std::vector<int> slots;
    std::vector<std::int64_t> slotTo;  ///< by slot
  };

  State(const transfer_type& transfer, const ExchangeOptions& given);
  Parts partsOf(Tpetra::CombineMode mode, const std::vector<std::int64_t>& stayLengths,
                const std::vector<std::int64_t>& arriving) const;
  Impl::Segments<memory_space> segmentsOf(bool withStays) const;
  static std::string modeError(Tpetra::CombineMode mode);
  std::string sourceError(const crs_matrix_type& source) const;
  std::string sourceError(const Arrays& source) const;
  array_rows_type rowsOf(const Arrays& source) const { return {source.offset, source.columns, source.values.data()}; }
  rows_type rowsOf(const crs_matrix_type& source) const;
  template <class Rows>
  Teuchos::RCP<crs_matrix_type> transfer(const Rows& rows, const graph_type* graph, const std::string& error,
                                         Tpetra::CombineMode mode, const Teuchos::RCP<const map_type>& domain,
                                         const Teuchos::RCP<const map_type>& range);
  template <class Rows>
  void transferValues(const Rows& rows, const std::string& error, crs_matrix_type& target);
  template <class Rows>
  void pack(const Rows& rows, const exchange_type& exchange, const format_type& format, const items_type& items,
            typename exchange_type::buffer_view buffer) const;
  items_type itemsOf(const exchange_type& exchange, const std::vector<std::int64_t>& lengths) const;
  unpack_type unpackKernel(const exchange_type& exchange, const format_type& format,
                           const std::vector<std::int64_t>& to, GO* columns, value_type* values) const;
  template <class Columns, class Values>
  std::string unpack(const exchange_type& exchange, const format_type& format, const Columns& columns,
                     const Values& values) const;
  value_view combined(const value_view& values) const;
  std::string checkLabels(const exchange_type& exchange) const;
  std::string brokenRow(const Kokkos::View<int, memory_space>& wrong, const std::vector<int>& slotOfArrival) const;
  void prepareValues();
  void makeValueSources(const format_type& format);
  void requireTransferred() const {
    if (targetGraph.is_null()) {
      throw Error("RowTransfer::transferValues: there was no transfer() before");  // on all ranks
    }
  }
  template <class Rows>
  int movedOffsets(const Rows& rows) const;
  template <class Rows>
  std::string valuesError(const Rows& rows, const crs_matrix_type& target) const;

  Teuchos::RCP<const map_type> sourceMap, targetMap;
  std::shared_ptr<Impl::PrivateComm> ours;
  int numSame = 0;
  std::vector<int> permuteTo, permuteFrom;
  std::vector<int> slotTarget, slotOwner;  ///< row of the target, and the rank that sends it
  PlannedHalo halo;
  std::unique_ptr<exchange_type> whole, valuesOnly;

  // Of the last transfer():
  typename exchange_type::Counts counts;
  std::vector<std::int64_t> arriving;  ///< entries, by slot
  std::vector<std::int64_t> sourceOffset;                        ///< of rows, and the end of the last one
  Kokkos::View<std::int64_t*, memory_space> sourceOffsetDevice;  ///< the same for kernels
  Teuchos::RCP<const graph_type> targetGraph;
  Parts parts;
  merged_type merged;
  bool valuesPrepared = false;
  Impl::ValueSources<memory_space> valueSources;
  unpack_type labels;  ///< for values alone
  items_type valueItems;
};

template <class S, class LO, class GO, class Node>
RowTransfer<S, LO, GO, Node>::State::State(const transfer_type& transfer, const ExchangeOptions& given)
    : sourceMap(transfer.getSourceMap()),
      targetMap(transfer.getTargetMap()),
      ours(Impl::PrivateComm::of(Tpetra::Details::extractMpiCommFromTeuchos(*sourceMap->getComm()))),
      numSame(static_cast<int>(transfer.getNumSameIDs())) {
  const auto to = transfer.getPermuteToLIDs(), from = transfer.getPermuteFromLIDs();
  permuteTo.assign(to.begin(), to.end());
  permuteFrom.assign(from.begin(), from.end());
  const Teuchos::ArrayView<const int> none;
  // Without peers Tpetra may still name remote rows: those that nobody owns, where the source map is not distributed.
  const auto remote = transfer.getDistributor().getProcsFrom().size() > 0 ? transfer.getRemoteLIDs() : none;
  slotTarget.assign(remote.begin(), remote.end());
  std::vector<int> slots(slotTarget.size());
  std::iota(slots.begin(), slots.end(), 0);
  Impl::TransferLists lists;
  Impl::groupByRank(transfer.getExportPIDs(), transfer.getExportLIDs(), lists.ownedPeers, lists.ownedLengths,
                    lists.ownedLids);
  Impl::receivingSide(transfer.getDistributor(),
                      Teuchos::ArrayView<const int>(slots.data(), static_cast<Teuchos::Ordinal>(slots.size())),
                      lists.ghostPeers, lists.ghostLengths, lists.ghostLids);
  for (std::size_t i = 0; i < lists.ghostPeers.size(); ++i) {
    slotOwner.insert(slotOwner.end(), lists.ghostLengths[i], lists.ghostPeers[i]);
  }
  lists.numOwned = static_cast<int>(Impl::localLength(*sourceMap));
  lists.numOverlapping = static_cast<int>(slots.size());
  ExchangeOptions options = given;
  // What is moved once needs no trials, and nothing that was decided for other halos.
  options.tuning = Tuning::off;
  options.intraNode = IntraNode::messages;
  options.reuseDecisions = false;
  options.record.reset();
  halo = std::move(Impl::planHalos(
                       ours->get(), 1, Impl::errorOf(lists, ours->rank()),
                       [&] { return Impl::makePatterns(*ours, {lists}); }, options)
                       .front());
}

/// \param stayLengths entries of the rows of the source \param arriving entries of the rows in the slots
template <class S, class LO, class GO, class Node>
auto RowTransfer<S, LO, GO, Node>::State::partsOf(Tpetra::CombineMode mode,
                                                  const std::vector<std::int64_t>& stayLengths,
                                                  const std::vector<std::int64_t>& arrivingLengths) const -> Parts {
  const bool adds = mode == Tpetra::ADD;
  struct Part {
    int order, source, slot;  // of source and slot one, the other is -1
  };
  const int own = adds ? -1 : ours->rank();
  const std::size_t rows = Impl::localLength(*targetMap);
  std::vector<int> firstPart(rows + 1, 0);  // by row; at first the number of parts of the row before
  const auto forEachPart = [&](const auto& work) {
    for (int i = 0; i < numSame; ++i) {
      work(i, Part{own, i, -1});
    }
    for (std::size_t i = 0; i < permuteTo.size(); ++i) {
      work(permuteTo[i], Part{own, permuteFrom[i], -1});
    }
    for (std::size_t i = 0; i < slotTarget.size(); ++i) {
      work(slotTarget[i], Part{slotOwner[i], -1, static_cast<int>(i)});
    }
  };
  forEachPart([&](int row, const Part&) { ++firstPart[static_cast<std::size_t>(row) + 1]; });
  std::partial_sum(firstPart.begin(), firstPart.end(), firstPart.begin());
  std::vector<Part> all(static_cast<std::size_t>(firstPart.back()));
  std::vector<int> next(firstPart.begin(), firstPart.end() - 1);
  forEachPart([&](int row, const Part& part) { all[static_cast<std::size_t>(next[row]++)] = part; });

  Parts made;
  made.slotTo.assign(slotTarget.size(), -1);
  made.rowOffset.reserve(rows + 1);
  made.rowOffset.push_back(0);
  std::int64_t entries = 0;
  int rowAfterRun = -1;  // of the source, while a run of rows that stay may go on
  std::vector<bool> rowStays(stayLengths.size(), false);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto first = all.begin() + firstPart[row], last = all.begin() + firstPart[row + 1];
    if (last - first > 1) {
      std::stable_sort(first, last, [](const Part& a, const Part& b) { return a.order < b.order; });
    }
    for (auto part = !adds && first < last ? last - 1 : first; part < last; ++part) {  // or the last one alone
      if (part->slot >= 0) {
        made.slots.push_back(part->slot);
        made.slotTo[part->slot] = entries;
        entries += arrivingLengths[part->slot];
        rowAfterRun = -1;
        continue;
      }
      const std::int64_t length = stayLengths[part->source];
      if (part->source == rowAfterRun) {
        made.stayLength.back() += length;
      } else {
        made.stays.push_back(part->source);
        made.stayLength.push_back(length);
        made.stayTo.push_back(entries);
      }
      entries += length;
      rowAfterRun = part->source + 1;
      rowStays[part->source] = true;
    }
    made.rowOffset.push_back(entries);
  }
  made.allStay = std::find(rowStays.begin(), rowStays.end(), false) == rowStays.end();
  return made;
}

/// Entries whose columns are global: those of slots; of rows that stay, too, where they are in arrays.
template <class S, class LO, class GO, class Node>
auto RowTransfer<S, LO, GO, Node>::State::segmentsOf(bool withStays) const -> Impl::Segments<memory_space> {
  std::vector<std::int64_t> first, length;
  const auto add = [&](std::int64_t at, std::int64_t count) {
    if (!first.empty() && first.back() + length.back() == at) {
      length.back() += count;
    } else {
      first.push_back(at);
      length.push_back(count);
    }
  };
  if (withStays) {
    add(0, parts.rowOffset.back());
  } else {
    for (const int slot : parts.slots) {
      add(parts.slotTo[slot], arriving[slot]);
    }
  }
  return {first, length, Impl::entriesPerItem<execution_space>()};
}

template <class S, class LO, class GO, class Node>
std::string RowTransfer<S, LO, GO, Node>::State::modeError(Tpetra::CombineMode mode) {
  const bool known = mode == Tpetra::ADD || mode == Tpetra::REPLACE || mode == Tpetra::INSERT;
  return known ? ""
               : "RowTransfer::transfer: CombineMode " + std::to_string(static_cast<int>(mode)) +
                     " is none of ADD, REPLACE, INSERT";
}

template <class S, class LO, class GO, class Node>
std::string RowTransfer<S, LO, GO, Node>::State::sourceError(const crs_matrix_type& source) const {
  if (!source.isFillComplete()) {
    return "RowTransfer::transfer: the source is not fill-complete (rank " + std::to_string(ours->rank()) + ")";
  }
  if (!source.getRowMap()->locallySameAs(*sourceMap)) {
    return "RowTransfer::transfer: the source has " + std::to_string(Impl::localRows(source)) +
           " rows of another map than the source map of the transfer, which has " +
           std::to_string(Impl::localLength(*sourceMap)) + " (rank " + std::to_string(ours->rank()) + ")";
  }
  return {};
}

/// Also where values alone are wanted.
template <class S, class LO, class GO, class Node>
std::string RowTransfer<S, LO, GO, Node>::State::sourceError(const Arrays& source) const {
  const std::size_t rows = Impl::localLength(*sourceMap);
  const std::string where = " (rank " + std::to_string(ours->rank()) + ")";
  if (source.offset.extent(0) != rows + 1) {
    return "RowTransfer: " + std::to_string(source.offset.extent(0)) + " offsets for " + std::to_string(rows) +
           " rows; there must be one more than rows" + where;
  }
  std::size_t entries = 0;
  Kokkos::deep_copy(entries, Kokkos::subview(source.offset, rows));
  if (source.columns.extent(0) < entries || source.values.extent(0) < entries) {
    return "RowTransfer: " + std::to_string(source.columns.extent(0)) + " columns and " +
           std::to_string(source.values.extent(0)) + " values; the offsets end at " + std::to_string(entries) + where;
  }
  return {};
}

template <class S, class LO, class GO, class Node>
auto RowTransfer<S, LO, GO, Node>::State::rowsOf(const crs_matrix_type& source) const -> rows_type {
  const local_matrix_type matrix = source.getLocalMatrixDevice();
  return {matrix.graph.row_map, matrix.graph.entries, source.getColMap()->getLocalMap(), matrix.values.data()};
}

/// What is packed. \param lengths entries of the rows of the source
template <class S, class LO, class GO, class Node>
auto RowTransfer<S, LO, GO, Node>::State::itemsOf(const exchange_type& exchange,
                                                  const std::vector<std::int64_t>& lengths) const -> items_type {
  std::vector<std::int64_t> ofRuns;
  for (const int row : exchange.departures().hostIndex) {
    ofRuns.push_back(lengths[row]);
  }
  return {ofRuns, Impl::entriesPerItem<execution_space>()};
}

template <class S, class LO, class GO, class Node>
template <class Rows>
void RowTransfer<S, LO, GO, Node>::State::pack(const Rows& rows, const exchange_type& exchange,
                                               const format_type& format, const items_type& items,
                                               typename exchange_type::buffer_view buffer) const {
  const execution_space& space = Impl::defaultSpace<execution_space>();
  const auto& runs = exchange.departures();
  using Pack = Impl::PackRows<value_type, Rows, local_map_type, memory_space>;
  Impl::packRows(space, Pack{format, rows, sourceMap->getLocalMap(), runs.index, runs.first, buffer.data()}, items);
}

/// Where runs go, and what they must be, for the unpack kernels. \param to by arrival
template <class S, class LO, class GO, class Node>
auto RowTransfer<S, LO, GO, Node>::State::unpackKernel(const exchange_type& exchange, const format_type& format,
                                                       const std::vector<std::int64_t>& to, GO* columns,
                                                       value_type* values) const -> unpack_type {
  const auto& runs = exchange.arrivals();
  std::vector<std::int64_t> lengths;
  std::vector<GO> ids;
  for (const int slot : runs.hostIndex) {
    lengths.push_back(arriving[slot]);
    ids.push_back(targetMap->getGlobalElement(slotTarget[slot]));
  }
  const Kokkos::View<int, memory_space> wrong("Komvos::RowTransfer::wrong");
  Kokkos::deep_copy(wrong, std::numeric_limits<int>::max());
  return {format,
          exchange.received().data(),
          runs.first,
          Impl::deviceList<memory_space>("Komvos::RowTransfer::lengths", lengths),
          Impl::deviceList<memory_space>("Komvos::RowTransfer::to", to),
          Impl::deviceList<memory_space>("Komvos::RowTransfer::ids", ids),
          Kokkos::View<word*, memory_space>("Komvos::RowTransfer::sums", format.withColumns ? runs.size() : 0),
          columns,
          values,
          wrong};
}

/// \return which row is broken, or nothing
template <class S, class LO, class GO, class Node>
template <class Columns, class Values>
std::string RowTransfer<S, LO, GO, Node>::State::unpack(const exchange_type& exchange, const format_type& format,
                                                        const Columns& columns, const Values& values) const {
  const execution_space& space = Impl::defaultSpace<execution_space>();
  const auto& runs = exchange.arrivals();
  std::vector<std::int64_t> wanted, to;  // a row that is replaced is not unpacked
  for (const int slot : runs.hostIndex) {
    wanted.push_back(parts.slotTo[slot] >= 0 ? arriving[slot] : 0);
    to.push_back(parts.slotTo[slot]);
  }
  const unpack_type kernel = unpackKernel(exchange, format, to, columns.data(), values.data());
  Impl::unpackRows(space, kernel, wanted);
  Impl::fence(space, "Komvos::RowTransfer: rows are unpacked");
  return brokenRow(kernel.wrong, runs.hostIndex);
}

/// \return which row is broken, or nothing
template <class S, class LO, class GO, class Node>
std::string RowTransfer<S, LO, GO, Node>::State::checkLabels(const exchange_type& exchange) const {
  const execution_space& space = Impl::defaultSpace<execution_space>();
  Kokkos::deep_copy(labels.wrong, std::numeric_limits<int>::max());
  Kokkos::parallel_for("Komvos::RowTransfer::labels", Impl::range(space, 0, exchange.arrivals().size()),
                       Impl::CompareLabels<unpack_type>{labels});
  Impl::fence(space, "Komvos::RowTransfer: labels are compared");
  return brokenRow(labels.wrong, exchange.arrivals().hostIndex);
}

/// \param wrong the arrival, or a number that is none
template <class S, class LO, class GO, class Node>
std::string RowTransfer<S, LO, GO, Node>::State::brokenRow(const Kokkos::View<int, memory_space>& wrong,
                                                           const std::vector<int>& slotOfArrival) const {
  int arrival = 0;
  Kokkos::deep_copy(arrival, wrong);
  if (arrival >= static_cast<int>(slotOfArrival.size())) {
    return {};
  }
  const int slot = slotOfArrival[arrival];
  return "RowTransfer: row " + std::to_string(targetMap->getGlobalElement(slotTarget[slot])) + ", of " +
         std::to_string(arriving[slot]) + " entries, from rank " + std::to_string(slotOwner[slot]) +
         " did not arrive on rank " + std::to_string(ours->rank()) + " as it was packed";
}

/// Lists for values alone, once they are needed. \note Collective where they are made.
template <class S, class LO, class GO, class Node>
void RowTransfer<S, LO, GO, Node>::State::prepareValues() {
  if (valuesPrepared) {
    return;
  }
  const format_type format{false};
  throwOnAllIfAny(ours->get(), Impl::errorIn([&] {
                    if (!valuesOnly) {
                      valuesOnly = std::make_unique<exchange_type>(ours->get(), halo.plan, halo.mpiIsGpuAware,
                                                                   halo.forceStaging);
                    }
                  }));
  valuesOnly->setLengths(counts, [&](std::int64_t n) { return format.words(n); });
  throwOnAllIfAny(ours->get(), Impl::errorIn([&] { makeValueSources(format); }));
  merged.source = {};
  valuesPrepared = true;
}

/// Where each value of the target comes from: of the source, or of what arrives.
template <class S, class LO, class GO, class Node>
void RowTransfer<S, LO, GO, Node>::State::makeValueSources(const format_type& format) {
  const auto& runs = valuesOnly->arrivals();
  const std::size_t scalars = valuesOnly->received().size() * (sizeof(word) / sizeof(value_type));
  if (sizeof(word) >= sizeof(value_type) && scalars > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw BadInput("RowTransfer::transferValues: messages with room for " + std::to_string(scalars) +
                   " values arrive (rank " + std::to_string(ours->rank()) + "); at most 2^31 - 1 are possible");
  }
  // Where each entry comes from, before they are merged.
  std::vector<int> origin(parts.rowOffset.back());
  for (std::size_t i = 0; i < parts.stays.size(); ++i) {
    const std::int64_t first = sourceOffset[parts.stays[i]], end = first + parts.stayLength[i];
    if (end > std::numeric_limits<int>::max()) {
      throw BadInput("RowTransfer::transferValues: a row that stays ends at entry " + std::to_string(end) +
                     " of the source (rank " + std::to_string(ours->rank()) + "); at most 2^31 - 1 are possible");
    }
    for (std::int64_t k = 0; k < parts.stayLength[i]; ++k) {
      origin[parts.stayTo[i] + k] = static_cast<int>(first + k);
    }
  }
  for (int i = 0; i < runs.size(); ++i) {
    const int slot = runs.hostIndex[i];
    const std::int64_t first = (runs.hostFirst[i] + format.valuesAt(arriving[slot])) * 8 / sizeof(value_type);
    for (std::int64_t k = 0; parts.slotTo[slot] >= 0 && k < arriving[slot]; ++k) {
      origin[parts.slotTo[slot] + k] = ~static_cast<int>(first + k);
    }
  }
  if (!merged.inOrder) {
    const auto source = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), merged.source);
    std::vector<int> fromOrigin(source.extent(0));
    for (std::size_t e = 0; e < fromOrigin.size(); ++e) {
      fromOrigin[e] = origin[source(e)];
    }
    origin.swap(fromOrigin);
  }
  valueSources = {merged.sourceOffset, origin, Impl::entriesPerItem<execution_space>()};
  labels = unpackKernel(*valuesOnly, format, {}, nullptr, nullptr);
  valueItems = itemsOf(*valuesOnly, counts.owned);
}

template <class S, class LO, class GO, class Node>
template <class Rows>
int RowTransfer<S, LO, GO, Node>::State::movedOffsets(const Rows& rows) const {
  const execution_space& space = Impl::defaultSpace<execution_space>();
  int moved = 0;
  Kokkos::parallel_reduce(
      "Komvos::RowTransfer: offsets that moved",
      Kokkos::RangePolicy<execution_space>(space, 0, static_cast<int>(sourceOffsetDevice.extent(0))),
      Impl::CountMovedOffsets<Rows, decltype(sourceOffsetDevice)>{rows, sourceOffsetDevice}, moved);
  return moved;
}

template <class S, class LO, class GO, class Node>
template <class Rows>
std::string RowTransfer<S, LO, GO, Node>::State::valuesError(const Rows& rows, const crs_matrix_type& target) const {
  const std::string where = " (rank " + std::to_string(ours->rank()) + ")";
  if (const int moved = movedOffsets(rows); moved > 0) {
    return "RowTransfer::transferValues: " + std::to_string(moved) + " of the " + std::to_string(sourceOffset.size()) +
           " offsets of the source's rows are not those of the last transfer()" + where;
  }
  if (target.getCrsGraph().get() != targetGraph.get()) {
    return "RowTransfer::transferValues: the target does not have the graph that the last transfer() made" + where;
  }
  return {};
}

/// Sums of given values, as `merged` says.
template <class S, class LO, class GO, class Node>
auto RowTransfer<S, LO, GO, Node>::State::combined(const value_view& values) const -> value_view {
  const execution_space& space = Impl::defaultSpace<execution_space>();
  const auto sums = Impl::largeArray<value_view>("Komvos::RowTransfer::values", merged.columns.extent(0));
  using Combine = Impl::CombineValues<value_type, memory_space>;
  Kokkos::parallel_for("Komvos::RowTransfer::combine", Impl::range(space, 0, static_cast<int>(sums.extent(0))),
                       Combine{merged.sourceOffset, merged.source, values.data(), nullptr, sums.data()});
  Impl::fence(space, "Komvos::RowTransfer: the values are there");
  return sums;
}

template <class S, class LO, class GO, class Node>
template <class Rows>
auto RowTransfer<S, LO, GO, Node>::State::transfer(const Rows& rows, const graph_type* graph,
                                                   const std::string& errorOfSource, Tpetra::CombineMode mode,
                                                   const Teuchos::RCP<const map_type>& domain,
                                                   const Teuchos::RCP<const map_type>& range)
    -> Teuchos::RCP<crs_matrix_type> {
  const execution_space& space = Impl::defaultSpace<execution_space>();
  const format_type format{true};
  std::vector<std::int64_t> lengths, newOffset;
  Kokkos::View<std::int64_t*, memory_space> newOffsetDevice;
  const auto readOffsets = [&] {
    const std::string where = " (rank " + std::to_string(ours->rank()) + ")";
    if (domain.is_null() || range.is_null()) {
      throw BadInput("RowTransfer: arrays have no domain and range map of their own, and none is given" + where);
    }
    const auto offsets = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), rows.offset);
    lengths.resize(Impl::localLength(*sourceMap));
    newOffset.assign(lengths.empty() ? 0 : lengths.size() + 1, 0);
    for (std::size_t i = 0; i < newOffset.size(); ++i) {
      newOffset[i] = static_cast<std::int64_t>(offsets(i));
    }
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      lengths[i] = newOffset[i + 1] - newOffset[i];
      if (lengths[i] < 0) {
        throw BadInput("RowTransfer: offset " + std::to_string(i + 1) + " is " + std::to_string(newOffset[i + 1]) +
                       ", after " + std::to_string(newOffset[i]) + "; offsets must not decrease" + where);
      }
    }
    newOffsetDevice = Impl::deviceList<memory_space>("Komvos::RowTransfer::sourceOffset", newOffset);
  };
  throwOnAllIfAny(ours->get(), errorOfSource.empty() ? Impl::errorIn(readOffsets) : errorOfSource);
  // Only now: where a rank refuses its source, the transfer before stays as it was.
  sourceOffset = std::move(newOffset);
  sourceOffsetDevice = newOffsetDevice;
  if (!whole) {
    whole = std::make_unique<exchange_type>(ours->get(), halo.plan, halo.mpiIsGpuAware, halo.forceStaging);
  }
  exchange_type& exchange = *whole;
  valuesPrepared = false;
  targetGraph = Teuchos::null;  // until all is there: transferValues() then refuses
  counts = exchange.exchangeLengths(lengths, [&](std::int64_t n) { return format.words(n); });
  // What may fail, such as an allocation, comes before the exchange begins, or is put off until it has ended.
  Kokkos::View<GO*, device_type> columns;
  Kokkos::View<LO*, device_type> localOfEntries;
  value_view values;
  items_type hereItems;
  Kokkos::View<int*, memory_space> hereRows;
  Kokkos::View<std::int64_t*, memory_space> hereLengths, hereTo;
  Impl::SourceColumns<LO, GO, Node> sourceColumns;
  Impl::Segments<memory_space> segments;
  std::string error = Impl::errorIn([&] {
    arriving.assign(slotTarget.size(), 0);
    const std::vector<std::int64_t> arrived = exchange.arrivalCounts(counts);
    for (std::size_t i = 0; i < arrived.size(); ++i) {
      arriving[exchange.arrivals().hostIndex[i]] = arrived[i];
    }
    parts = partsOf(mode, lengths, arriving);
    const std::int64_t entries = parts.rowOffset.back();
    if (entries >= std::numeric_limits<int>::max()) {
      throw BadInput("RowTransfer: " + std::to_string(entries) + " entries on one rank; at most 2^31 - 1 are possible");
    }
    segments = segmentsOf(!Rows::areOfMatrix);
    columns =
        Impl::largeArray<decltype(columns)>("Komvos::RowTransfer::columns", segments.items.entries > 0 ? entries : 0);
    localOfEntries = Impl::largeArray<decltype(localOfEntries)>("Komvos::RowTransfer::local", entries);
    values = Impl::largeArray<decltype(values)>("Komvos::RowTransfer::values", entries);
    if constexpr (Rows::areOfMatrix) {
      sourceColumns.map = graph->getColMap();
      sourceColumns.domain = graph->getDomainMap();
      sourceColumns.used =
          decltype(sourceColumns.used)("Komvos::RowTransfer::usedOfSource", Impl::localLength(*sourceColumns.map));
    }
    hereItems = items_type(parts.stayLength, Impl::entriesPerItem<execution_space>());
    hereRows = Impl::deviceList<memory_space>("Komvos::RowTransfer::stays", parts.stays);
    hereLengths = Impl::deviceList<memory_space>("Komvos::RowTransfer::stayLengths", parts.stayLength);
    hereTo = Impl::deviceList<memory_space>("Komvos::RowTransfer::to", parts.stayTo);
  });
  throwOnAllIfAny(ours->get(), error);

  error = Impl::errorIn([&] {
    exchange.begin(space,
                   [&](const auto& buffer) { pack(rows, exchange, format, itemsOf(exchange, lengths), buffer); });
  });
  if (error.empty()) {  // else it has told the others
    error = Impl::errorIn([&] {
      const auto copyTo = [&](auto* here) {
        const Impl::CopyRowsHere<value_type, std::remove_pointer_t<decltype(here)>, Rows, memory_space> copy{
            rows, hereRows, hereLengths, hereTo, here, values.data()};
        Impl::forRows(space, "Komvos::RowTransfer::copy", hereItems, copy);
        return copy;
      };
      if constexpr (Rows::areOfMatrix) {
        const auto copy = copyTo(localOfEntries.data());
        // Columns that no entry has may stay, too, where the domain map is known to have them.
        const auto importer = graph->getImporter();
        const bool haveOwners = importer.is_null() || importer->isLocallyComplete();
        if (parts.allStay && haveOwners && domain.get() == sourceColumns.domain.get()) {
          Kokkos::deep_copy(space, sourceColumns.used, 1);
        } else {
          Impl::forRows(space, "Komvos::RowTransfer::mark", hereItems,
                        Impl::MarkColumns<decltype(copy), decltype(sourceColumns.used)>{copy, sourceColumns.used});
        }
      } else {
        copyTo(columns.data());
      }
    });
    const std::string ended = Impl::errorIn([&] { exchange.end(space); });
    error = error.empty() ? ended : error;
  }
  if (error.empty()) {
    const std::string thrown = Impl::errorIn([&] { error = unpack(exchange, format, columns, values); });
    error = thrown.empty() ? error : thrown;
  }
  Impl::throwMismatchOnAllIfAny(ours->get(), error);

  auto local = Impl::localColumns(ours->get(), domain, sourceColumns, segments, columns, localOfEntries);
  columns = {};
  localOfEntries = {};
  throwOnAllIfAny(ours->get(), Impl::errorIn([&] {
                    const auto rowOffset =
                        Impl::deviceList<memory_space>("Komvos::RowTransfer::rowOffset", parts.rowOffset);
                    merged = Impl::mergeColumns<LO, device_type>(rowOffset, local.local);
                    if (!merged.inOrder) {
                      values = combined(values);
                    }
                  }));
  const auto target = Teuchos::rcp(new crs_matrix_type(targetMap, local.map, merged.rowOffset, merged.columns, values));
  // Tpetra refuses access on the host while somebody else has a view on the device.
  local.local = {};
  merged.columns = {};
  merged.rowOffset = {};
  values = {};
  target->expertStaticFillComplete(domain, range, local.mapIsOfSource ? graph->getImporter() : Teuchos::null);
  targetGraph = target->getCrsGraph();
  return target;
}

template <class S, class LO, class GO, class Node>
template <class Rows>
void RowTransfer<S, LO, GO, Node>::State::transferValues(const Rows& rows, const std::string& error,
                                                         crs_matrix_type& target) {
  const execution_space& space = Impl::defaultSpace<execution_space>();
  const format_type format{false};
  prepareValues();
  exchange_type& exchange = *valuesOnly;
  if (!error.empty()) {
    exchange.abandon();
    throw PlanMismatch(error);
  }
  exchange.begin(space, [&](const auto& buffer) { pack(rows, exchange, format, valueItems, buffer); });
  exchange.end(space);
  const std::string broken = checkLabels(exchange);
  if (!broken.empty()) {
    throw PlanMismatch(broken);
  }
  const auto values = target.getLocalMatrixDevice().values;
  valueSources.run(space, rows.values, reinterpret_cast<const value_type*>(exchange.received().data()), values.data(),
                   static_cast<int>(values.extent(0)));
  Impl::fence(space, "Komvos::RowTransfer: values are there");
}

template <class S, class LO, class GO, class Node>
auto RowTransfer<S, LO, GO, Node>::transfer(const crs_matrix_type& source, Tpetra::CombineMode mode,
                                            Teuchos::RCP<const map_type> domain, Teuchos::RCP<const map_type> range)
    -> Teuchos::RCP<crs_matrix_type> {
  const std::string ofMode = State::modeError(mode);
  typename State::rows_type rows;
  std::string error = ofMode.empty() ? state_->sourceError(source) : ofMode;
  if (error.empty()) {
    error = Impl::errorIn([&] { rows = state_->rowsOf(source); });  // Tpetra may refuse a view
  }
  return state_->transfer(rows, source.getCrsGraph().get(), error, mode,
                          domain.is_null() ? source.getDomainMap() : domain,
                          range.is_null() ? source.getRangeMap() : range);
}

template <class S, class LO, class GO, class Node>
auto RowTransfer<S, LO, GO, Node>::transfer(const Arrays& source, Tpetra::CombineMode mode,
                                            const Teuchos::RCP<const map_type>& domain,
                                            const Teuchos::RCP<const map_type>& range)
    -> Teuchos::RCP<crs_matrix_type> {
  const std::string ofMode = State::modeError(mode);
  std::string error = ofMode;
  if (error.empty()) {
    const std::string thrown = Impl::errorIn([&] { error = state_->sourceError(source); });
    error = thrown.empty() ? error : thrown;
  }
  return state_->transfer(state_->rowsOf(source), nullptr, error, mode, domain, range);
}

template <class S, class LO, class GO, class Node>
void RowTransfer<S, LO, GO, Node>::transferValues(const crs_matrix_type& source, crs_matrix_type& target) {
  state_->requireTransferred();
  typename State::rows_type rows;
  std::string error = state_->sourceError(source);
  if (error.empty()) {
    const std::string thrown = Impl::errorIn([&] {
      rows = state_->rowsOf(source);  // Tpetra may refuse a view
      error = state_->valuesError(rows, target);
    });
    error = thrown.empty() ? error : thrown;
  }
  state_->transferValues(rows, error, target);
}

template <class S, class LO, class GO, class Node>
void RowTransfer<S, LO, GO, Node>::transferValues(const Arrays& source, crs_matrix_type& target) {
  state_->requireTransferred();
  std::string error;
  const std::string thrown = Impl::errorIn([&] {
    error = state_->sourceError(source);
    error = error.empty() ? state_->valuesError(state_->rowsOf(source), target) : error;
  });
  state_->transferValues(state_->rowsOf(source), thrown.empty() ? error : thrown, target);
}

template <class S, class LO, class GO, class Node>
RowTransfer<S, LO, GO, Node>::RowTransfer(const import_type& importer, const ExchangeOptions& options)
    : state_(std::make_unique<State>(importer, options)) {}
template <class S, class LO, class GO, class Node>
RowTransfer<S, LO, GO, Node>::RowTransfer(const export_type& exporter, const ExchangeOptions& options)
    : state_(std::make_unique<State>(exporter, options)) {}
template <class S, class LO, class GO, class Node>
RowTransfer<S, LO, GO, Node>::~RowTransfer() = default;
template <class S, class LO, class GO, class Node>
RowTransfer<S, LO, GO, Node>::RowTransfer(RowTransfer&&) noexcept = default;
template <class S, class LO, class GO, class Node>
RowTransfer<S, LO, GO, Node>& RowTransfer<S, LO, GO, Node>::operator=(RowTransfer&&) noexcept = default;

template <class S, class LO, class GO, class Node>
const ExchangePlan& RowTransfer<S, LO, GO, Node>::plan() const {
  return *state_->halo.plan;
}

template <class S, class LO, class GO, class Node>
std::size_t RowTransfer<S, LO, GO, Node>::memoryBytes() const {
  const State& state = *state_;
  const auto ofView = [](const auto& view) { return view.size() * sizeof(*view.data()); };
  return (state.whole ? state.whole->memoryBytes() : 0) + (state.valuesOnly ? state.valuesOnly->memoryBytes() : 0) +
         ofView(state.sourceOffsetDevice) + ofView(state.merged.sourceOffset) + ofView(state.merged.source) +
         state.valueSources.memoryBytes();
}

}  // namespace Komvos

#define KOMVOS_ROWTRANSFER_INSTANT(S, LO, GO, NODE) template class RowTransfer<S, LO, GO, NODE>;
