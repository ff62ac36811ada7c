#include "Komvos_NodeAwareImport.hpp"

#include <Tpetra_Details_Transfer.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <Tpetra_Distributor.hpp>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_GatherKernels.hpp"
#include "Komvos_HaloPlanner.hpp"
#include "Komvos_PrivateComm.hpp"

namespace Komvos {

namespace {

// Kokkos wants labels as strings; made once, since making them allocates.
const std::string sameLabel = "Komvos::NodeAwareImport::same";
const std::string permuteLabel = "Komvos::NodeAwareImport::permute";

/// A Tpetra transfer read from its owned side: `owned*` lists belong to the map where entries are unique.
struct TransferLists {
  std::vector<int> ownedPeers, ownedLengths, ownedLids;  // what goes to each peer in an import, in Tpetra's order
  std::vector<int> ghostPeers, ghostLengths, ghostLids;  // what comes from each peer
};

/// (rank of each entry) to (rank, length) runs, after sorting by rank; entries of a rank keep their order.
void groupByRank(Teuchos::ArrayView<const int> rankOfEntry, Teuchos::ArrayView<const DefaultLocalOrdinal> lids,
                 std::vector<int>& peers, std::vector<int>& lengths, std::vector<int>& sorted) {
  std::vector<int> order(rankOfEntry.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<int>(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return rankOfEntry[a] < rankOfEntry[b]; });
  for (const int i : order) {
    if (peers.empty() || peers.back() != rankOfEntry[i]) {
      peers.push_back(rankOfEntry[i]);
      lengths.push_back(0);
    }
    ++lengths.back();
    sorted.push_back(lids[i]);
  }
}

/// The side of a transfer that Tpetra receives on.
void receivingSide(const Tpetra::Distributor& distributor, Teuchos::ArrayView<const DefaultLocalOrdinal> lids,
                   std::vector<int>& peers, std::vector<int>& lengths, std::vector<int>& inOrder) {
  const auto from = distributor.getProcsFrom();
  const auto count = distributor.getLengthsFrom();
  peers.assign(from.begin(), from.end());
  lengths.assign(count.begin(), count.end());
  inOrder.assign(lids.begin(), lids.end());
}

/// Owners tell each peer the local indices of the values it gets, in the order both sides know. Messages only between
/// ranks that will exchange values.
std::vector<int> learnOwnerIndices(Impl::PrivateComm& comm, const TransferLists& lists) {
  const int tag = comm.takeTags(1);
  std::vector<int> learned(lists.ghostLids.size());
  std::vector<MPI_Request> requests(lists.ghostPeers.size() + lists.ownedPeers.size());
  std::size_t request = 0;
  for (std::size_t i = 0, first = 0; i < lists.ghostPeers.size(); first += lists.ghostLengths[i++]) {
    mpiCheck(MPI_Irecv(learned.data() + first, lists.ghostLengths[i], MPI_INT, lists.ghostPeers[i], tag, comm.get(),
                       &requests[request++]),
             "MPI_Irecv");
  }
  for (std::size_t i = 0, first = 0; i < lists.ownedPeers.size(); first += lists.ownedLengths[i++]) {
    mpiCheck(MPI_Isend(lists.ownedLids.data() + first, lists.ownedLengths[i], MPI_INT, lists.ownedPeers[i], tag,
                       comm.get(), &requests[request++]),
             "MPI_Isend");
  }
  mpiCheck(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
  return learned;
}

Pattern makePattern(Impl::PrivateComm& comm, const TransferLists& lists, std::size_t numOwned,
                    std::size_t numOverlapping, std::size_t numSame) {
  Pattern pattern;
  pattern.rank = comm.rank();
  pattern.numOwned = static_cast<int>(numOwned);
  pattern.numTarget = static_cast<int>(numOverlapping - numSame);
  for (std::size_t i = 0, k = 0; i < lists.ownedPeers.size(); ++i) {
    for (int j = 0; j < lists.ownedLengths[i]; ++j, ++k) {
      pattern.sends.push_back({lists.ownedPeers[i], lists.ownedLids[k]});
    }
  }
  const std::vector<int> ownerIndex = learnOwnerIndices(comm, lists);
  for (std::size_t i = 0, k = 0; i < lists.ghostPeers.size(); ++i) {
    for (int j = 0; j < lists.ghostLengths[i]; ++j, ++k) {
      pattern.receives.push_back(
          {{lists.ghostPeers[i], ownerIndex[k]}, lists.ghostLids[k] - static_cast<int>(numSame)});
    }
  }
  return pattern;
}

template <class View>
View toDevice(const std::vector<int>& values) {
  Kokkos::View<int*, typename View::memory_space> device(
      Kokkos::view_alloc("Komvos::NodeAwareImport::permute", Kokkos::WithoutInitializing), values.size());
  Kokkos::deep_copy(device, Kokkos::View<const int*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
                                values.data(), values.size()));
  return device;
}

}  // namespace

template <class LO, class GO, class Node>
struct NodeAwareImport<LO, GO, Node>::State {
  Teuchos::RCP<const map_type> ownedMap;
  Teuchos::RCP<const map_type> overlappingMap;
  std::shared_ptr<Impl::PrivateComm> comm;
  MPI_Comm userComm = MPI_COMM_NULL;
  int numSame = 0;
  int numPermuted = 0;
  index_view permuteTo, permuteFrom;
  PlannedHalo halo;
  std::unordered_map<std::type_index, std::shared_ptr<void>> exchanges;

  State(const Tpetra::Details::Transfer<LO, GO, Node>& transfer, bool isImport, const ExchangeOptions& options)
      : ownedMap(isImport ? transfer.getSourceMap() : transfer.getTargetMap()),
        overlappingMap(isImport ? transfer.getTargetMap() : transfer.getSourceMap()),
        userComm(Tpetra::Details::extractMpiCommFromTeuchos(*ownedMap->getComm())),
        numSame(static_cast<int>(transfer.getNumSameIDs())),
        numPermuted(static_cast<int>(transfer.getNumPermuteIDs())) {
    comm = Impl::PrivateComm::of(userComm);
    TransferLists lists;
    if (isImport) {
      groupByRank(transfer.getExportPIDs(), transfer.getExportLIDs(), lists.ownedPeers, lists.ownedLengths,
                  lists.ownedLids);
      receivingSide(transfer.getDistributor(), transfer.getRemoteLIDs(), lists.ghostPeers, lists.ghostLengths,
                    lists.ghostLids);
    } else {
      groupByRank(transfer.getExportPIDs(), transfer.getExportLIDs(), lists.ghostPeers, lists.ghostLengths,
                  lists.ghostLids);
      receivingSide(transfer.getDistributor(), transfer.getRemoteLIDs(), lists.ownedPeers, lists.ownedLengths,
                    lists.ownedLids);
    }
    setPermutation(isImport ? transfer.getPermuteToLIDs() : transfer.getPermuteFromLIDs(),
                   isImport ? transfer.getPermuteFromLIDs() : transfer.getPermuteToLIDs());
    halo = planHalo(
        userComm, makePattern(*comm, lists, Impl::localLength(*ownedMap), Impl::localLength(*overlappingMap), numSame),
        options);
  }

  void setPermutation(Teuchos::ArrayView<const LO> to, Teuchos::ArrayView<const LO> from) {
    std::vector<int> ghost(to.begin(), to.end());
    for (int& index : ghost) {
      index -= numSame;
    }
    permuteTo = toDevice<index_view>(ghost);
    permuteFrom = toDevice<index_view>(std::vector<int>(from.begin(), from.end()));
  }
};

template <class LO, class GO, class Node>
NodeAwareImport<LO, GO, Node>::NodeAwareImport(const import_type& import, const ExchangeOptions& options)
    : state_(std::make_unique<State>(import, true, options)) {}
template <class LO, class GO, class Node>
NodeAwareImport<LO, GO, Node>::NodeAwareImport(const export_type& exporter, const ExchangeOptions& options)
    : state_(std::make_unique<State>(exporter, false, options)) {}
template <class LO, class GO, class Node>
NodeAwareImport<LO, GO, Node>::~NodeAwareImport() = default;
template <class LO, class GO, class Node>
NodeAwareImport<LO, GO, Node>::NodeAwareImport(NodeAwareImport&&) noexcept = default;
template <class LO, class GO, class Node>
NodeAwareImport<LO, GO, Node>& NodeAwareImport<LO, GO, Node>::operator=(NodeAwareImport&&) noexcept = default;

template <class LO, class GO, class Node>
template <class Scalar>
auto NodeAwareImport<LO, GO, Node>::exchange() const -> Exchange<Scalar, device_type>& {
  std::shared_ptr<void>& made = state_->exchanges[typeid(Scalar)];
  if (!made) {
    made = std::make_shared<Exchange<Scalar, device_type>>(state_->userComm, state_->halo.plan, state_->halo.columns,
                                                           state_->halo.intraNode);
  }
  return *static_cast<Exchange<Scalar, device_type>*>(made.get());
}

namespace {

/// A multivector's entries as one view. A multivector that shows scattered columns of another is copied first; its
/// copy goes back in finish().
template <class MultiVector>
class Columns {
 public:
  explicit Columns(const MultiVector& vector) : vector_(vector) {
    if (!vector.isConstantStride()) {
      copy_ = Teuchos::rcp(new MultiVector(vector, Teuchos::Copy));
    }
  }
  auto read() const { return used().getLocalViewDevice(Tpetra::Access::ReadOnly); }
  auto readWrite() { return const_cast<MultiVector&>(used()).getLocalViewDevice(Tpetra::Access::ReadWrite); }
  void finish(MultiVector& vector) {
    if (!copy_.is_null()) {
      Tpetra::deep_copy(vector, *copy_);
    }
  }

 private:
  const MultiVector& used() const { return copy_.is_null() ? vector_ : *copy_; }
  const MultiVector& vector_;
  Teuchos::RCP<MultiVector> copy_;
};

template <class Source, class Target>
std::string mismatch(const char* caller, const Source& source, const Target& target, int sourceLength,
                     int targetLength) {
  if (static_cast<int>(source.extent(0)) == sourceLength && static_cast<int>(target.extent(0)) == targetLength &&
      source.extent(1) == target.extent(1) && source.extent(1) > 0) {
    return {};
  }
  const auto shape = [](std::size_t rows, std::size_t columns) {
    return std::to_string(rows) + " x " + std::to_string(columns);
  };
  return std::string("NodeAwareImport::") + caller + ": source is " + shape(source.extent(0), source.extent(1)) +
         ", target is " + shape(target.extent(0), target.extent(1)) + "; the maps have " +
         std::to_string(sourceLength) + " and " + std::to_string(targetLength) + " entries here";
}

bool addsLocally(Tpetra::CombineMode mode) { return mode == Tpetra::ADD_ASSIGN; }
bool addsRemotely(Tpetra::CombineMode mode) { return mode == Tpetra::ADD || mode == Tpetra::ADD_ASSIGN; }

}  // namespace

template <class LO, class GO, class Node>
template <class Scalar>
void NodeAwareImport<LO, GO, Node>::doImport(const multivector_type<Scalar>& source, multivector_type<Scalar>& target,
                                             Tpetra::CombineMode mode) const {
  const State& state = *state_;
  auto& run = exchange<Scalar>();
  if (mode != Tpetra::INSERT && mode != Tpetra::REPLACE && !addsRemotely(mode)) {
    run.abandonForward();
    throw BadInput("NodeAwareImport::doImport: CombineMode must be INSERT, REPLACE, ADD or ADD_ASSIGN");
  }
  Columns<multivector_type<Scalar>> from(source);
  Columns<multivector_type<Scalar>> to(target);
  const auto x = from.read();
  const auto y = to.readWrite();
  const int numOverlapping = state.numSame + plan().numTarget;
  if (const std::string error = mismatch("doImport", x, y, plan().numOwned, numOverlapping); !error.empty()) {
    run.abandonForward();
    throw PlanMismatch(error + " (rank " + std::to_string(plan().rank) + ")");
  }
  const execution_space space;
  run.begin(space, x);
  const Impl::VectorAccess<const Scalar> xAt{x.data(), x.stride_1()};
  const Impl::VectorAccess<Scalar> yAt{y.data(), y.stride_1()};
  const int columns = static_cast<int>(x.extent(1));
  using Rows = Impl::CopyRows<Scalar, index_view>;
  const Kokkos::RangePolicy<execution_space> sameRows(space, 0, state.numSame);
  Kokkos::parallel_for(sameLabel, sameRows, Rows{yAt, xAt, {}, {}, 0, 0, columns, addsLocally(mode)});
  const Kokkos::RangePolicy<execution_space> permutedRows(space, 0, state.numPermuted);
  Kokkos::parallel_for(
      permuteLabel, permutedRows,
      Rows{yAt, xAt, state.permuteTo, state.permuteFrom, state.numSame, 0, columns, addsLocally(mode)});
  run.end(space, Kokkos::subview(y, std::make_pair(state.numSame, numOverlapping), Kokkos::ALL()),
          addsRemotely(mode) ? Combine::add : Combine::insert);
  Impl::fence(space, "Komvos::NodeAwareImport::doImport: target may be read on the host");
  to.finish(target);
}

template <class LO, class GO, class Node>
template <class Scalar>
void NodeAwareImport<LO, GO, Node>::doExport(const multivector_type<Scalar>& source, multivector_type<Scalar>& target,
                                             Tpetra::CombineMode mode) const {
  const State& state = *state_;
  auto& run = exchange<Scalar>();
  if (!addsRemotely(mode)) {
    run.abandonReverse();
    throw BadInput("NodeAwareImport::doExport: CombineMode must be ADD or ADD_ASSIGN");
  }
  Columns<multivector_type<Scalar>> from(source);
  Columns<multivector_type<Scalar>> to(target);
  const auto x = from.read();
  const auto y = to.readWrite();
  const int numOverlapping = state.numSame + plan().numTarget;
  if (const std::string error = mismatch("doExport", x, y, numOverlapping, plan().numOwned); !error.empty()) {
    run.abandonReverse();
    throw PlanMismatch(error + " (rank " + std::to_string(plan().rank) + ")");
  }
  const execution_space space;
  run.beginReverse(space, Kokkos::subview(x, std::make_pair(state.numSame, numOverlapping), Kokkos::ALL()));
  const Impl::VectorAccess<const Scalar> xAt{x.data(), x.stride_1()};
  const Impl::VectorAccess<Scalar> yAt{y.data(), y.stride_1()};
  const int columns = static_cast<int>(x.extent(1));
  using Rows = Impl::CopyRows<Scalar, index_view>;
  const Kokkos::RangePolicy<execution_space> sameRows(space, 0, state.numSame);
  Kokkos::parallel_for(sameLabel, sameRows, Rows{yAt, xAt, {}, {}, 0, 0, columns, addsLocally(mode)});
  const Kokkos::RangePolicy<execution_space> permutedRows(space, 0, state.numPermuted);
  Kokkos::parallel_for(
      permuteLabel, permutedRows,
      Rows{yAt, xAt, state.permuteFrom, state.permuteTo, 0, state.numSame, columns, addsLocally(mode)});
  run.endReverse(space, y);
  Impl::fence(space, "Komvos::NodeAwareImport::doExport: target may be read on the host");
  to.finish(target);
}

template <class LO, class GO, class Node>
auto NodeAwareImport<LO, GO, Node>::getOwnedMap() const -> Teuchos::RCP<const map_type> {
  return state_->ownedMap;
}
template <class LO, class GO, class Node>
auto NodeAwareImport<LO, GO, Node>::getOverlappingMap() const -> Teuchos::RCP<const map_type> {
  return state_->overlappingMap;
}
template <class LO, class GO, class Node>
const HaloReport& NodeAwareImport<LO, GO, Node>::report() const {
  return state_->halo.report;
}
template <class LO, class GO, class Node>
const ExchangePlan& NodeAwareImport<LO, GO, Node>::plan() const {
  return *state_->halo.plan;
}
template <class LO, class GO, class Node>
int NodeAwareImport<LO, GO, Node>::numSame() const {
  return state_->numSame;
}
template <class LO, class GO, class Node>
auto NodeAwareImport<LO, GO, Node>::permuteTo() const -> index_view {
  return state_->permuteTo;
}
template <class LO, class GO, class Node>
auto NodeAwareImport<LO, GO, Node>::permuteFrom() const -> index_view {
  return state_->permuteFrom;
}

using Import = NodeAwareImport<>;
template class NodeAwareImport<DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;

#define KOMVOS_INSTANTIATE(SCALAR)                                                                           \
  template Exchange<SCALAR, Import::device_type>& Import::exchange<SCALAR>() const;                          \
  template void Import::doImport(const Import::multivector_type<SCALAR>&, Import::multivector_type<SCALAR>&, \
                                 Tpetra::CombineMode) const;                                                 \
  template void Import::doExport(const Import::multivector_type<SCALAR>&, Import::multivector_type<SCALAR>&, \
                                 Tpetra::CombineMode) const;
KOMVOS_INSTANTIATE(double)
KOMVOS_INSTANTIATE(int)
KOMVOS_INSTANTIATE(long long)
#undef KOMVOS_INSTANTIATE

}  // namespace Komvos
