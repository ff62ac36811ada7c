/// \file Komvos_NodeAwareImport_def.hpp
/// Definitions of NodeAwareImport, for types that this library is not compiled for.
#pragma once

#include <Tpetra_Details_Profiling.hpp>
#include <Tpetra_Details_Transfer.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <Tpetra_Details_gathervPrint.hpp>
#include <Tpetra_Export.hpp>
#include <Tpetra_Import.hpp>
#include <algorithm>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

#include "Komvos_DeviceList.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_Exchange.hpp"
#include "Komvos_GatherKernels.hpp"
#include "Komvos_HaloDescription.hpp"
#include "Komvos_HaloPlanner.hpp"
#include "Komvos_HaloTuner.hpp"
#include "Komvos_NodeAwareImport.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_ShapeError.hpp"
#include "Komvos_TransferLists.hpp"
#include "Komvos_UseOfHalo.hpp"

// How this works. The constructor reads who sends which entries to whom out of the Tpetra transfer (TransferLists),
// with the unique side as "owned" whether it is an Import or an Export. Tpetra numbers entries locally on each side; so
// owners tell each peer their own indices (makePatterns), which with the rank identify a value. That is the Pattern;
// planHalos() decides route and transport. Several transfers are read and planned together.
//
// doImport and doExport are one body, transfer(), read in two directions. It checks the vectors, begins the exchange,
// copies what stays on this rank while messages travel (same entries, then permuted ones), and ends the exchange, which
// combines the rest with the target. The last fence makes the target readable on the host. A map may name an entry
// twice on one rank, so that in an export several permuted entries go to one owned entry: LocalPermutation makes them
// one row.
//
// A rank that throws, for whatever reason, abandons the exchange first, so that no other rank waits.
//
// The tuner (HaloTuner) says which variant a forward exchange takes. Exchanges are made for each variant and scalar
// type when they are first used, and dropped when their variant has lost.

namespace Komvos {

namespace Impl {

// Kokkos wants labels as strings; made once, since making them allocates.
inline const std::string importSameLabel = "Komvos::NodeAwareImport::same";
inline const std::string importPermuteLabel = "Komvos::NodeAwareImport::permute";

/// What a mode does to the entries that stay, and to those that arrive.
struct ModeRules {
  bool addsLocally;
  std::optional<Combine> arriving;  ///< nothing: nothing is communicated
};

/// \throws BadInput for a mode that Tpetra does not have
inline ModeRules rulesOf(Tpetra::CombineMode mode, const char* caller) {
  switch (mode) {
    case Tpetra::INSERT:
    case Tpetra::REPLACE:
      return {false, Combine::insert};
    case Tpetra::ADD:
      return {false, Combine::add};
    case Tpetra::ADD_ASSIGN:
      return {true, Combine::add};
    case Tpetra::ABSMAX:
      return {false, Combine::absMax};
    case Tpetra::ZERO:
      return {false, std::nullopt};
  }
  throw BadInput(std::string(caller) + ": CombineMode " + std::to_string(static_cast<int>(mode)) +
                 " is none of INSERT, REPLACE, ADD, ADD_ASSIGN, ABSMAX, ZERO");
}

/// Entries that stay on this rank, but in another place. Indices count from the start of the owned vector, and of the
/// ghosts.
template <class MemorySpace>
struct LocalPermutation {
  using List = DeviceGatherList<MemorySpace>;
  List forward;
  List reverseSum, reverseCopy;  ///< of several that go to one entry: all of them, the last of them

  LocalPermutation() = default;
  LocalPermutation(const std::vector<int>& ghosts, const std::vector<int>& owned)
      : forward(GatherList{ghosts, {}, owned}) {
    std::vector<int> order(owned.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return owned[a] < owned[b]; });
    GatherList sum, copy;
    for (const int i : order) {
      if (copy.to.empty() || copy.to.back() != owned[i]) {
        copy.to.push_back(owned[i]);
        copy.from.emplace_back();
        sum.offset.push_back(static_cast<int>(sum.from.size()));
      }
      copy.from.back() = ghosts[i];
      sum.from.push_back(ghosts[i]);
    }
    reverseCopy = List(copy);
    if (copy.to.size() == order.size()) {
      reverseSum = reverseCopy;
      return;
    }
    sum.to = copy.to;
    sum.offset.push_back(static_cast<int>(sum.from.size()));
    reverseSum = List(sum);
  }
  std::size_t memoryBytes() const {
    const bool sameLists = reverseSum.to.data() == reverseCopy.to.data();
    return forward.memoryBytes() + reverseCopy.memoryBytes() + (sameLists ? 0 : reverseSum.memoryBytes());
  }
};

}  // namespace Impl

template <class LO, class GO, class Node>
struct NodeAwareImport<LO, GO, Node>::State {
  Teuchos::RCP<const map_type> ownedMap;
  Teuchos::RCP<const map_type> overlappingMap;
  std::shared_ptr<Impl::PrivateComm> comm;  ///< exchanges are made on it, when the user may have freed his own
  int numSame = 0;
  Impl::LocalPermutation<typename index_view::memory_space> permutation;
  PlannedHalo halo;
  mutable const void* lastTarget = nullptr;  ///< of doImport, from its first ghost on
  /// An exchange of some type.
  struct AnyExchange {
    std::shared_ptr<void> exchange;
    std::function<std::size_t()> memoryBytes;
  };
  std::map<std::pair<std::type_index, std::size_t>, AnyExchange> exchanges;  // by scalar type and variant
  long generation = 0;  // of the tuner, when exchanges were looked through last

  State(MPI_Comm mpiComm, const transfer_type& transfer)
      : comm(Impl::PrivateComm::of(mpiComm)), numSame(static_cast<int>(transfer.getNumSameIDs())) {
    const bool isImport = dynamic_cast<const import_type*>(&transfer) != nullptr;
    ownedMap = isImport ? transfer.getSourceMap() : transfer.getTargetMap();
    overlappingMap = isImport ? transfer.getTargetMap() : transfer.getSourceMap();
    setPermutation(isImport ? transfer.getPermuteToLIDs() : transfer.getPermuteFromLIDs(),
                   isImport ? transfer.getPermuteFromLIDs() : transfer.getPermuteToLIDs());
  }

  /// Without the permutation: it must be known to be right.
  State(MPI_Comm mpiComm, const PatternTransfer& transfer)
      : ownedMap(transfer.owned), overlappingMap(transfer.overlapping), comm(Impl::PrivateComm::of(mpiComm)) {}

  Impl::TransferLists listsOf(const transfer_type& transfer) const {
    Impl::TransferLists lists;
    lists.numOwned = static_cast<int>(Impl::localLength(*ownedMap));
    lists.numOverlapping = static_cast<int>(Impl::localLength(*overlappingMap));
    lists.numSame = numSame;
    if (dynamic_cast<const import_type*>(&transfer) != nullptr) {
      Impl::groupByRank(transfer.getExportPIDs(), transfer.getExportLIDs(), lists.ownedPeers, lists.ownedLengths,
                        lists.ownedLids);
      Impl::receivingSide(transfer.getDistributor(), transfer.getRemoteLIDs(), lists.ghostPeers, lists.ghostLengths,
                          lists.ghostLids);
    } else {
      Impl::groupByRank(transfer.getExportPIDs(), transfer.getExportLIDs(), lists.ghostPeers, lists.ghostLengths,
                        lists.ghostLids);
      Impl::receivingSide(transfer.getDistributor(), transfer.getRemoteLIDs(), lists.ownedPeers, lists.ownedLengths,
                          lists.ownedLids);
    }
    return lists;
  }

  void setPermutation(Teuchos::ArrayView<const LO> to, Teuchos::ArrayView<const LO> from) {
    std::vector<int> ghost(to.begin(), to.end());
    for (int& index : ghost) {
      index -= numSame;
    }
    permutation = {ghost, std::vector<int>(from.begin(), from.end())};
  }

  /// Plan, lists, and what exchanges hold; not what MPI holds for them.
  std::size_t memoryBytes() const {
    std::size_t bytes = permutation.memoryBytes() + (halo.tuner ? halo.tuner->memoryBytes() : halo.plan->memoryBytes());
    for (const auto& [key, one] : exchanges) {
      bytes += one.memoryBytes();
    }
    return bytes;
  }
  /// The variant that forward exchanges take but for trials.
  Impl::HaloVariant incumbent() const {
    return halo.tuner ? halo.tuner->incumbent() : Impl::HaloVariant{0, halo.plan, halo.intraNode};
  }
  Impl::HaloVariant selectForward() { return halo.tuner ? halo.tuner->forward() : incumbent(); }
  Impl::HaloVariant selectReverse() { return halo.tuner ? halo.tuner->reverse() : incumbent(); }
  template <class Scalar>
  exchange_type<Scalar>& exchangeAlong(const Impl::HaloVariant& variant);
  void dropUnused();

  int numOverlapping() const { return numSame + halo.plan->numTarget; }
  /// The rows of an overlapping vector that the exchange moves.
  template <class View>
  auto ghostsOf(const View& overlapping) const {
    return Kokkos::subview(overlapping, std::make_pair(numSame, numOverlapping()), Kokkos::ALL());
  }

  template <class Scalar>
  void transfer(const NodeAwareImport& halo, Impl::Direction direction, const multivector_type<Scalar>& source,
                multivector_type<Scalar>& target, Tpetra::CombineMode mode,
                const std::function<void()>& meanwhile) const;
  template <class Value, class Source, class Target>
  void run(Impl::Direction direction, Exchange<Value, device_type>* exchange, const Source& x, const Target& y,
           const Impl::ModeRules& rules, bool& othersWait, const std::function<void()>& meanwhile) const;
  template <class Value, class Source, class Target>
  void beginExchange(Impl::Direction direction, const execution_space& space, Exchange<Value, device_type>& exchange,
                     const Source& x, const Target& y, Combine combine) const;
  template <class Value>
  void copyLocal(Impl::Direction direction, const execution_space& space, const Impl::VectorAccess<const Value>& source,
                 const Impl::VectorAccess<Value>& target, int columns, bool add) const;
};

template <class LO, class GO, class Node>
auto NodeAwareImport<LO, GO, Node>::several(MPI_Comm comm, const std::vector<const transfer_type*>& transfers,
                                            const ExchangeOptions& options)
    -> std::vector<std::unique_ptr<NodeAwareImport>> {
  const std::shared_ptr<Impl::PrivateComm> ours = Impl::PrivateComm::of(comm);
  std::vector<std::unique_ptr<NodeAwareImport>> made;
  std::vector<Impl::TransferLists> lists;
  std::string error;
  try {
    for (const transfer_type* const one : transfers) {
      auto state = std::make_unique<State>(comm, *one);
      lists.push_back(state->listsOf(*one));
      error = error.empty() ? Impl::errorOf(lists.back(), ours->rank()) : error;
      made.emplace_back(new NodeAwareImport(std::move(state)));
    }
  } catch (...) {
    error = Impl::textOf(std::current_exception());
  }
  std::vector<PlannedHalo> halos = Impl::planHalos(
      comm, transfers.size(), error, [&] { return Impl::makePatterns(*ours, lists); }, options);
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i]->state_->halo = std::move(halos[i]);
  }
  return made;
}

template <class LO, class GO, class Node>
auto NodeAwareImport<LO, GO, Node>::several(MPI_Comm comm, std::vector<PatternTransfer> transfers,
                                            const ExchangeOptions& options)
    -> std::vector<std::unique_ptr<NodeAwareImport>> {
  std::vector<std::unique_ptr<NodeAwareImport>> made;
  std::string error;
  const auto makePatterns = [&transfers] {
    std::vector<Pattern> patterns;
    for (PatternTransfer& one : transfers) {
      patterns.push_back(std::move(one.pattern));
    }
    return patterns;
  };
  try {
    for (const PatternTransfer& one : transfers) {
      auto state = std::make_unique<State>(comm, one);
      const std::string unfit = Impl::errorOfStaying(one.staysFrom, Impl::localLength(*one.owned), one.staysTo,
                                                     Impl::localLength(*one.overlapping));
      if (unfit.empty()) {
        state->permutation = {one.staysTo, one.staysFrom};
      }
      error = error.empty() ? unfit : error;
      made.emplace_back(new NodeAwareImport(std::move(state)));
      if (static_cast<std::size_t>(one.pattern.numOwned) != Impl::localLength(*one.owned) ||
          static_cast<std::size_t>(one.pattern.numTarget) != Impl::localLength(*one.overlapping)) {
        error = "NodeAwareImport: a pattern of " + std::to_string(one.pattern.numOwned) + " owned and " +
                std::to_string(one.pattern.numTarget) + " target entries for maps of " +
                std::to_string(Impl::localLength(*one.owned)) + " and " +
                std::to_string(Impl::localLength(*one.overlapping));
      }
    }
  } catch (...) {
    error = Impl::textOf(std::current_exception());
  }
  std::vector<PlannedHalo> halos = Impl::planHalos(comm, transfers.size(), error, makePatterns, options);
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i]->state_->halo = std::move(halos[i]);
  }
  return made;
}

template <class LO, class GO, class Node>
NodeAwareImport<LO, GO, Node>::NodeAwareImport(std::unique_ptr<State> state) : state_(std::move(state)) {}
template <class LO, class GO, class Node>
NodeAwareImport<LO, GO, Node>::NodeAwareImport(const import_type& importer, const ExchangeOptions& options)
    : NodeAwareImport(
          std::move(*several(Tpetra::Details::extractMpiCommFromTeuchos(*importer.getSourceMap()->getComm()),
                             {&importer}, options)
                         .front())) {}
template <class LO, class GO, class Node>
NodeAwareImport<LO, GO, Node>::NodeAwareImport(const export_type& exporter, const ExchangeOptions& options)
    : NodeAwareImport(
          std::move(*several(Tpetra::Details::extractMpiCommFromTeuchos(*exporter.getSourceMap()->getComm()),
                             {&exporter}, options)
                         .front())) {}
template <class LO, class GO, class Node>
NodeAwareImport<LO, GO, Node>::~NodeAwareImport() = default;
template <class LO, class GO, class Node>
NodeAwareImport<LO, GO, Node>::NodeAwareImport(NodeAwareImport&&) noexcept = default;
template <class LO, class GO, class Node>
NodeAwareImport<LO, GO, Node>& NodeAwareImport<LO, GO, Node>::operator=(NodeAwareImport&&) noexcept = default;

/// Exchanges along variants that lost.
template <class LO, class GO, class Node>
void NodeAwareImport<LO, GO, Node>::State::dropUnused() {
  if (!halo.tuner || halo.tuner->generation() == generation) {
    return;
  }
  generation = halo.tuner->generation();
  for (auto one = exchanges.begin(); one != exchanges.end();) {
    one = halo.tuner->isInUse(one->first.second) ? std::next(one) : exchanges.erase(one);
  }
}

/// \note Collective where the exchange is made.
template <class LO, class GO, class Node>
template <class Scalar>
auto NodeAwareImport<LO, GO, Node>::State::exchangeAlong(const Impl::HaloVariant& variant) -> exchange_type<Scalar>& {
  dropUnused();
  AnyExchange& found = exchanges[{typeid(Scalar), variant.number}];
  if (!found.exchange) {
    const auto made = std::make_shared<exchange_type<Scalar>>(comm->get(), variant.plan, halo.columns,
                                                              variant.intraNode, halo.mpiIsGpuAware, halo.forceStaging);
    const std::size_t ofPlan = variant.plan->memoryBytes();
    found = {made, [exchange = made.get(), ofPlan] { return exchange->memoryBytes() - ofPlan; }};
  }
  return *static_cast<exchange_type<Scalar>*>(found.exchange.get());
}

template <class LO, class GO, class Node>
template <class Scalar>
auto NodeAwareImport<LO, GO, Node>::exchange() const -> exchange_type<Scalar>& {
  return state_->template exchangeAlong<Scalar>(state_->incumbent());
}
template <class LO, class GO, class Node>
template <class Scalar>
auto NodeAwareImport<LO, GO, Node>::selectForward() const -> exchange_type<Scalar>& {
  return state_->template exchangeAlong<Scalar>(state_->selectForward());
}
template <class LO, class GO, class Node>
template <class Scalar>
auto NodeAwareImport<LO, GO, Node>::reverseExchange() const -> exchange_type<Scalar>& {
  return state_->template exchangeAlong<Scalar>(state_->selectReverse());
}
template <class LO, class GO, class Node>
void NodeAwareImport<LO, GO, Node>::recordUse(double seconds, double exposed, int columns) const {
  if (state_->halo.tuner) {
    state_->halo.tuner->record({seconds, exposed, columns});
  }
}
template <class LO, class GO, class Node>
void NodeAwareImport<LO, GO, Node>::discardUse() const {
  if (state_->halo.tuner) {
    state_->halo.tuner->abandon();
  }
}
template <class LO, class GO, class Node>
bool NodeAwareImport<LO, GO, Node>::wantsTimes() const {
  return state_->halo.tuner && state_->halo.tuner->wantsTimes();
}
template <class LO, class GO, class Node>
bool NodeAwareImport<LO, GO, Node>::isSampling() const {
  return state_->halo.tuner && state_->halo.tuner->isSampling();
}
template <class LO, class GO, class Node>
template <class Scalar>
void NodeAwareImport<LO, GO, Node>::abandonForward() const {
  try {
    selectForward<Scalar>().abandonForward();
  } catch (...) {
    discardUse();  // else this rank would be a use ahead of the others
    throw;
  }
  discardUse();
}
template <class LO, class GO, class Node>
template <class Scalar>
void NodeAwareImport<LO, GO, Node>::abandonReverse() const {
  reverseExchange<Scalar>().abandonReverse();
}

namespace Impl {

/// A multivector's entries as one view. A multivector that shows scattered columns of another is copied first; its
/// copy goes back in finish().
template <class MultiVector>
class ContiguousColumns {
 public:
  explicit ContiguousColumns(const MultiVector& vector) : vector_(vector) {
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

/// Whether two vectors share memory, from the first to the last entry of each.
template <class A, class B>
bool shareMemory(const A& a, const B& b) {
  const std::less<const void*> before;
  return before(a.data(), b.data() + b.span()) && before(b.data(), a.data() + a.span());
}

/// doImport and doExport, in words.
inline const char* callerOf(Direction direction) {
  return direction == Direction::forward ? "NodeAwareImport::doImport" : "NodeAwareImport::doExport";
}

/// \throws PlanMismatch if a vector does not fit
template <class Source, class Target>
void requireShapes(const ExchangePlan& plan, Direction direction, const Source& source, const Target& target,
                   int numOverlapping) {
  const bool forward = direction == Direction::forward;
  const auto owned = static_cast<std::size_t>(plan.numOwned);
  const auto overlapping = static_cast<std::size_t>(numOverlapping);
  const std::size_t columns = std::max<std::size_t>(1, source.extent(1));
  const std::string error = firstError({shapeError(callerOf(direction), "source", {source.extent(0), source.extent(1)},
                                                   {forward ? owned : overlapping, columns}),
                                        shapeError(callerOf(direction), "target", {target.extent(0), target.extent(1)},
                                                   {forward ? overlapping : owned, columns})});
  if (!error.empty()) {
    throw PlanMismatch(error + " (rank " + std::to_string(plan.rank) + ")");
  }
}

}  // namespace Impl

template <class LO, class GO, class Node>
template <class Scalar>
void NodeAwareImport<LO, GO, Node>::State::transfer(const NodeAwareImport& import, Impl::Direction direction,
                                                    const multivector_type<Scalar>& source,
                                                    multivector_type<Scalar>& target, Tpetra::CombineMode mode,
                                                    const std::function<void()>& meanwhile) const {
  const bool forward = direction == Impl::Direction::forward;
  const bool communicates = mode != Tpetra::ZERO;
  bool othersWait = communicates;
  Impl::UseOfHalo use(import, forward && communicates, othersWait);
  try {
    const Impl::ModeRules rules = Impl::rulesOf(mode, Impl::callerOf(direction));
    Impl::ContiguousColumns<multivector_type<Scalar>> from(source);
    Impl::ContiguousColumns<multivector_type<Scalar>> to(target);
    const auto x = from.read();
    const auto y = to.readWrite();
    Impl::requireShapes(*halo.plan, direction, x, y, numOverlapping());
    exchange_type<Scalar>* const exchange = !communicates ? nullptr  // to make one is collective, too
                                            : forward     ? &import.template selectForward<Scalar>()
                                                          : &import.template reverseExchange<Scalar>();
    run(direction, exchange, x, y, rules, othersWait, meanwhile);
    use.succeeded(static_cast<int>(x.extent(1)));
    to.finish(target);
  } catch (...) {
    if (othersWait) {
      forward ? import.template abandonForward<Scalar>() : import.template abandonReverse<Scalar>();
    }
    throw;
  }
}

/// The exchange, and meanwhile what stays on this rank. \param exchange null if nothing arrives
/// \param othersWait whether it must be abandoned after a throw
template <class LO, class GO, class Node>
template <class Value, class Source, class Target>
void NodeAwareImport<LO, GO, Node>::State::run(Impl::Direction direction, Exchange<Value, device_type>* exchange,
                                               const Source& x, const Target& y, const Impl::ModeRules& rules,
                                               bool& othersWait, const std::function<void()>& meanwhile) const {
  const execution_space& space = Impl::defaultSpace<execution_space>();
  if (rules.arriving) {
    othersWait = false;  // begin() and end() let the others finish before they throw
    beginExchange(direction, space, *exchange, x, y, *rules.arriving);
    othersWait = true;
  }
  copyLocal<Value>(direction, space, {x.data(), x.stride(1)}, {y.data(), y.stride(1)}, static_cast<int>(x.extent(1)),
                   rules.addsLocally);
  if (meanwhile) {
    meanwhile();
  }
  if (rules.arriving) {
    othersWait = false;
    if (direction == Impl::Direction::forward) {
      exchange->end(space, ghostsOf(y), *rules.arriving);
    } else {
      exchange->endReverse(space, y);
    }
  }
  Impl::fence(space, "Komvos::NodeAwareImport: target may be read on the host");
}

/// Values may arrive in the target itself. Where that is another one each time, this would cost more than it saves: the
/// requests of MPI are bound to addresses. And not in managed memory, where Tpetra's vectors are on GPUs: its pages
/// would move to the host and back.
template <class LO, class GO, class Node>
template <class Value, class Source, class Target>
void NodeAwareImport<LO, GO, Node>::State::beginExchange(Impl::Direction direction, const execution_space& space,
                                                         Exchange<Value, device_type>& exchange, const Source& x,
                                                         const Target& y, Combine combine) const {
  if (direction == Impl::Direction::reverse) {
    exchange.beginReverse(space, ghostsOf(x), combine);
    return;
  }
  const auto ghosts = ghostsOf(y);
  constexpr bool isManaged =
      !std::is_same_v<typename Target::memory_space, typename Impl::BufferSpace<execution_space>::type>;
  const bool again = !isManaged && lastTarget == ghosts.data();
  lastTarget = ghosts.data();
  if (again && combine == Combine::insert && !Impl::shareMemory(x, ghosts)) {
    exchange.begin(space, x, ghosts);
  } else {
    exchange.begin(space, x);
  }
}

/// Entries that stay on this rank: those at the same place in both maps, and the permuted ones.
template <class LO, class GO, class Node>
template <class Value>
void NodeAwareImport<LO, GO, Node>::State::copyLocal(Impl::Direction direction, const execution_space& space,
                                                     const Impl::VectorAccess<const Value>& source,
                                                     const Impl::VectorAccess<Value>& target, int columns,
                                                     bool add) const {
  Impl::copyRows<Value, execution_space, index_view>(space, Impl::importSameLabel, numSame, target, source, columns,
                                                     add);
  const Impl::GatherOp op = add ? Impl::GatherOp::addSum : Impl::GatherOp::copy;
  if (direction == Impl::Direction::forward) {
    const Impl::VectorAccess<Value> ghosts{target.data + numSame, target.stride};
    Impl::gather<Value>(space, Impl::importPermuteLabel, permutation.forward, 0, permutation.forward.rows, ghosts,
                        source, columns, op);
  } else {
    const auto& list = add ? permutation.reverseSum : permutation.reverseCopy;
    const Impl::VectorAccess<const Value> ghosts{source.data + numSame, source.stride};
    Impl::gather<Value>(space, Impl::importPermuteLabel, list, 0, list.rows, target, ghosts, columns, op);
  }
}

template <class LO, class GO, class Node>
template <class Scalar>
void NodeAwareImport<LO, GO, Node>::doImport(const multivector_type<Scalar>& source, multivector_type<Scalar>& target,
                                             Tpetra::CombineMode mode) const {
  const Tpetra::Details::ProfilingRegion region("Komvos::NodeAwareImport::doImport");
  state_->transfer(*this, Impl::Direction::forward, source, target, mode, {});
}

template <class LO, class GO, class Node>
template <class Scalar>
void NodeAwareImport<LO, GO, Node>::doImport(const multivector_type<Scalar>& source, multivector_type<Scalar>& target,
                                             Tpetra::CombineMode mode, const std::function<void()>& meanwhile) const {
  const Tpetra::Details::ProfilingRegion region("Komvos::NodeAwareImport::doImport");
  state_->transfer(*this, Impl::Direction::forward, source, target, mode, meanwhile);
}

template <class LO, class GO, class Node>
template <class Scalar>
void NodeAwareImport<LO, GO, Node>::doExport(const multivector_type<Scalar>& source, multivector_type<Scalar>& target,
                                             Tpetra::CombineMode mode) const {
  const Tpetra::Details::ProfilingRegion region("Komvos::NodeAwareImport::doExport");
  state_->transfer(*this, Impl::Direction::reverse, source, target, mode, {});
}

template <class LO, class GO, class Node>
bool NodeAwareImport<LO, GO, Node>::isBetween(const map_type& owned, const map_type& overlapping) const {
  int ranks = MPI_UNEQUAL;
  mpiCheck(MPI_Comm_compare(Tpetra::Details::extractMpiCommFromTeuchos(*owned.getComm()), state_->comm->get(), &ranks),
           "MPI_Comm_compare");
  return (ranks == MPI_IDENT || ranks == MPI_CONGRUENT) && state_->ownedMap->locallySameAs(owned) &&
         state_->overlappingMap->locallySameAs(overlapping);
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
  if (state_->halo.tuner) {
    state_->halo.tuner->update(state_->halo.report);
  }
  return state_->halo.report;
}
template <class LO, class GO, class Node>
const ExchangePlan& NodeAwareImport<LO, GO, Node>::plan() const {
  return *state_->incumbent().plan;
}
template <class LO, class GO, class Node>
std::string NodeAwareImport<LO, GO, Node>::description() const {
  return "Komvos::NodeAwareImport: {" + Impl::haloInOneLine(report()) + "}";
}
template <class LO, class GO, class Node>
void NodeAwareImport<LO, GO, Node>::describe(Teuchos::FancyOStream& out, Teuchos::EVerbosityLevel level) const {
  level = level == Teuchos::VERB_DEFAULT ? Teuchos::VERB_LOW : level;
  if (level == Teuchos::VERB_NONE) {
    return;
  }
  const auto comm = getOwnedMap()->getComm();
  if (comm->getRank() == 0) {
    out << "Komvos::NodeAwareImport:\n" << Impl::haloOfAllRanks(report(), level);
  }
  if (level >= Teuchos::VERB_HIGH) {
    Tpetra::Details::gathervPrint(out, Impl::haloOfRank(plan(), state_->memoryBytes(), level), *comm);
  }
}
template <class LO, class GO, class Node>
int NodeAwareImport<LO, GO, Node>::numSame() const {
  return state_->numSame;
}
template <class LO, class GO, class Node>
auto NodeAwareImport<LO, GO, Node>::permuteTo() const -> index_view {
  return state_->permutation.forward.to;
}
template <class LO, class GO, class Node>
auto NodeAwareImport<LO, GO, Node>::permuteFrom() const -> index_view {
  return state_->permutation.forward.from;
}

/// Compiles NodeAwareImport for maps of these types; in namespace Komvos.
#define KOMVOS_NODEAWAREIMPORT_INSTANT(LO, GO, NODE) template class NodeAwareImport<LO, GO, NODE>;

/// Compiles its functions for vectors of SCALAR.
#define KOMVOS_NODEAWAREIMPORT_SCALAR_INSTANT(SCALAR, LO, GO, NODE)                                                \
  template NodeAwareImport<LO, GO, NODE>::exchange_type<SCALAR>& NodeAwareImport<LO, GO, NODE>::exchange<SCALAR>() \
      const;                                                                                                       \
  template NodeAwareImport<LO, GO, NODE>::exchange_type<SCALAR>&                                                   \
  NodeAwareImport<LO, GO, NODE>::selectForward<SCALAR>() const;                                                    \
  template NodeAwareImport<LO, GO, NODE>::exchange_type<SCALAR>&                                                   \
  NodeAwareImport<LO, GO, NODE>::reverseExchange<SCALAR>() const;                                                  \
  template void NodeAwareImport<LO, GO, NODE>::abandonForward<SCALAR>() const;                                     \
  template void NodeAwareImport<LO, GO, NODE>::abandonReverse<SCALAR>() const;                                     \
  template void NodeAwareImport<LO, GO, NODE>::doImport(const Tpetra::MultiVector<SCALAR, LO, GO, NODE>&,          \
                                                        Tpetra::MultiVector<SCALAR, LO, GO, NODE>&,                \
                                                        Tpetra::CombineMode) const;                                \
  template void NodeAwareImport<LO, GO, NODE>::doImport(const Tpetra::MultiVector<SCALAR, LO, GO, NODE>&,          \
                                                        Tpetra::MultiVector<SCALAR, LO, GO, NODE>&,                \
                                                        Tpetra::CombineMode, const std::function<void()>&) const;  \
  template void NodeAwareImport<LO, GO, NODE>::doExport(const Tpetra::MultiVector<SCALAR, LO, GO, NODE>&,          \
                                                        Tpetra::MultiVector<SCALAR, LO, GO, NODE>&,                \
                                                        Tpetra::CombineMode) const;

}  // namespace Komvos
