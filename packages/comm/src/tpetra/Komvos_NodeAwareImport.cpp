#include "Komvos_NodeAwareImport.hpp"

#include <Tpetra_Details_Transfer.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <Tpetra_Distributor.hpp>
#include <Tpetra_Export.hpp>
#include <Tpetra_Import.hpp>
#include <algorithm>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "Komvos_DeviceList.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_Exchange.hpp"
#include "Komvos_GatherKernels.hpp"
#include "Komvos_HaloPlanner.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_ShapeError.hpp"

// How this works. The constructor reads who sends which entries to whom out of the Tpetra transfer (TransferLists),
// with the unique side as "owned" whether it is an Import or an Export. Tpetra numbers entries locally on each side; so
// owners tell each peer their own indices (learnOwnerIndices), which with the rank identify a value. That is the
// Pattern; planHalo() decides route and transport.
//
// doImport and doExport are one body, transfer(), read in two directions. It checks the vectors, begins the exchange,
// copies what stays on this rank while messages travel (same entries, then permuted ones), and ends the exchange, which
// writes or adds the rest. In an export, several permuted entries may add to one owned entry, hence the atomic add in
// CopyRows. The last fence makes the target readable on the host.
//
// A rank that throws, for whatever reason, abandons the exchange first, so that no other rank waits.
// Exchanges are made for each scalar type when it is first used.

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

/// (rank of each entry) to peers and how many entries each has, after sorting by rank; entries of a rank keep their
/// order.
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
  const Impl::TagRange tags = comm.takeTags(1);
  const int tag = tags.first();
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
  std::unordered_map<std::type_index, std::shared_ptr<void>> exchanges;  // by scalar type

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
    using Space = typename index_view::memory_space;
    permuteTo = Impl::deviceList<Space>("Komvos::NodeAwareImport::permuteTo", ghost);
    permuteFrom =
        Impl::deviceList<Space>("Komvos::NodeAwareImport::permuteFrom", std::vector<int>(from.begin(), from.end()));
  }

  int numOverlapping() const { return numSame + halo.plan->numTarget; }
  /// The rows of an overlapping vector that the exchange moves.
  template <class View>
  auto ghostsOf(const View& overlapping) const {
    return Kokkos::subview(overlapping, std::make_pair(numSame, numOverlapping()), Kokkos::ALL());
  }

  template <class Scalar>
  void transfer(Impl::Direction direction, Exchange<Scalar, device_type>& exchange,
                const multivector_type<Scalar>& source, multivector_type<Scalar>& target,
                Tpetra::CombineMode mode) const;
  template <class Scalar, class Source, class Target>
  void run(Impl::Direction direction, Exchange<Scalar, device_type>& exchange, const Source& x, const Target& y,
           Tpetra::CombineMode mode, bool& othersWait) const;
  template <class Scalar>
  void copyLocal(Impl::Direction direction, const execution_space& space,
                 const Impl::VectorAccess<const Scalar>& source, const Impl::VectorAccess<Scalar>& target, int columns,
                 bool add) const;
};

template <class LO, class GO, class Node>
NodeAwareImport<LO, GO, Node>::NodeAwareImport(const import_type& importer, const ExchangeOptions& options)
    : state_(std::make_unique<State>(importer, true, options)) {}
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
  using exchange_type = Exchange<Scalar, device_type>;
  std::shared_ptr<void>& found = state_->exchanges[typeid(Scalar)];
  if (!found) {
    const PlannedHalo& halo = state_->halo;
    found =
        std::make_shared<exchange_type>(state_->userComm, halo.plan, halo.columns, halo.intraNode, halo.mpiIsGpuAware);
  }
  return *static_cast<exchange_type*>(found.get());
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

bool addsLocally(Tpetra::CombineMode mode) { return mode == Tpetra::ADD_ASSIGN; }
bool addsRemotely(Tpetra::CombineMode mode) { return mode == Tpetra::ADD || mode == Tpetra::ADD_ASSIGN; }
bool replaces(Tpetra::CombineMode mode) { return mode == Tpetra::INSERT || mode == Tpetra::REPLACE; }

/// doImport and doExport, in words.
const char* callerOf(Impl::Direction direction) {
  return direction == Impl::Direction::forward ? "NodeAwareImport::doImport" : "NodeAwareImport::doExport";
}

template <class ExchangeType>
void abandon(ExchangeType& exchange, Impl::Direction direction) {
  direction == Impl::Direction::forward ? exchange.abandonForward() : exchange.abandonReverse();
}

/// \throws BadInput for a mode that this direction does not have
void requireMode(Impl::Direction direction, Tpetra::CombineMode mode) {
  const bool forward = direction == Impl::Direction::forward;
  if (!addsRemotely(mode) && !(forward && replaces(mode))) {
    throw BadInput(std::string(callerOf(direction)) + ": CombineMode must be " +
                   (forward ? "INSERT, REPLACE, ADD" : "ADD") + " or ADD_ASSIGN");
  }
}

/// \throws PlanMismatch if a vector does not fit
template <class Source, class Target>
void requireShapes(const ExchangePlan& plan, Impl::Direction direction, const Source& source, const Target& target,
                   int numOverlapping) {
  const bool forward = direction == Impl::Direction::forward;
  const auto owned = static_cast<std::size_t>(plan.numOwned);
  const auto overlapping = static_cast<std::size_t>(numOverlapping);
  const std::size_t columns = std::max<std::size_t>(1, source.extent(1));
  const std::string error =
      Impl::firstError({Impl::shapeError(callerOf(direction), "source", {source.extent(0), source.extent(1)},
                                         {forward ? owned : overlapping, columns}),
                        Impl::shapeError(callerOf(direction), "target", {target.extent(0), target.extent(1)},
                                         {forward ? overlapping : owned, columns})});
  if (!error.empty()) {
    throw PlanMismatch(error + " (rank " + std::to_string(plan.rank) + ")");
  }
}

}  // namespace

template <class LO, class GO, class Node>
template <class Scalar>
void NodeAwareImport<LO, GO, Node>::State::transfer(Impl::Direction direction, Exchange<Scalar, device_type>& exchange,
                                                    const multivector_type<Scalar>& source,
                                                    multivector_type<Scalar>& target, Tpetra::CombineMode mode) const {
  bool othersWait = true;
  try {
    requireMode(direction, mode);
    Columns<multivector_type<Scalar>> from(source);
    Columns<multivector_type<Scalar>> to(target);
    const auto x = from.read();
    const auto y = to.readWrite();
    requireShapes(exchange.plan(), direction, x, y, numOverlapping());
    run<Scalar>(direction, exchange, x, y, mode, othersWait);
    to.finish(target);
  } catch (...) {
    if (othersWait) {
      abandon(exchange, direction);
    }
    throw;
  }
}

/// The exchange, and meanwhile what stays on this rank. \param othersWait whether it must be abandoned after a throw
template <class LO, class GO, class Node>
template <class Scalar, class Source, class Target>
void NodeAwareImport<LO, GO, Node>::State::run(Impl::Direction direction, Exchange<Scalar, device_type>& exchange,
                                               const Source& x, const Target& y, Tpetra::CombineMode mode,
                                               bool& othersWait) const {
  const bool forward = direction == Impl::Direction::forward;
  const execution_space space;
  othersWait = false;  // begin() and end() let the others finish before they throw
  if (forward) {
    exchange.begin(space, x);
  } else {
    exchange.beginReverse(space, ghostsOf(x));
  }
  othersWait = true;
  copyLocal<Scalar>(direction, space, {x.data(), x.stride_1()}, {y.data(), y.stride_1()}, static_cast<int>(x.extent(1)),
                    addsLocally(mode));
  othersWait = false;
  if (forward) {
    exchange.end(space, ghostsOf(y), addsRemotely(mode) ? Combine::add : Combine::insert);
  } else {
    exchange.endReverse(space, y);
  }
  Impl::fence(space, "Komvos::NodeAwareImport: target may be read on the host");
}

/// Entries that stay on this rank: those at the same place in both maps, and the permuted ones.
template <class LO, class GO, class Node>
template <class Scalar>
void NodeAwareImport<LO, GO, Node>::State::copyLocal(Impl::Direction direction, const execution_space& space,
                                                     const Impl::VectorAccess<const Scalar>& source,
                                                     const Impl::VectorAccess<Scalar>& target, int columns,
                                                     bool add) const {
  using Rows = Impl::CopyRows<Scalar, index_view>;
  const bool forward = direction == Impl::Direction::forward;
  Kokkos::parallel_for(sameLabel, Kokkos::RangePolicy<execution_space>(space, 0, numSame),
                       Rows{target, source, {}, {}, 0, 0, columns, add});
  const Rows permuted = forward ? Rows{target, source, permuteTo, permuteFrom, numSame, 0, columns, add}
                                : Rows{target, source, permuteFrom, permuteTo, 0, numSame, columns, add};
  Kokkos::parallel_for(permuteLabel, Kokkos::RangePolicy<execution_space>(space, 0, numPermuted), permuted);
}

template <class LO, class GO, class Node>
template <class Scalar>
void NodeAwareImport<LO, GO, Node>::doImport(const multivector_type<Scalar>& source, multivector_type<Scalar>& target,
                                             Tpetra::CombineMode mode) const {
  state_->transfer(Impl::Direction::forward, exchange<Scalar>(), source, target, mode);
}

template <class LO, class GO, class Node>
template <class Scalar>
void NodeAwareImport<LO, GO, Node>::doExport(const multivector_type<Scalar>& source, multivector_type<Scalar>& target,
                                             Tpetra::CombineMode mode) const {
  state_->transfer(Impl::Direction::reverse, exchange<Scalar>(), source, target, mode);
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
