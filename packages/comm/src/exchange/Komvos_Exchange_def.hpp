/// \file Komvos_Exchange_def.hpp
/// Definitions of Exchange, for types that this library is not compiled for.
#pragma once

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "Komvos_DirectionState.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_Exchange.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_GatherKernels.hpp"
#include "Komvos_MessageBuffers.hpp"
#include "Komvos_Poison.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_ProgressHook.hpp"
#include "Komvos_Settings.hpp"
#include "Komvos_SharedMemoryBuffers.hpp"

// How this works. State is the phase machine of an exchange; what it drives are the buffers (MessageBuffers) and, for
// each direction, the schedule, the index lists and the engine that runs the messages (DirectionState).
//
//   begin   fence; start all receives; kernel: vector to send buffer; (staged: copy to the host); fence; first sends
//   relay   for each send whose inputs are here: kernel: receive buffer to send buffer; fence; send
//   end     poll and relay until nothing waits; wait; (staged: copy to the device); kernel: receive buffer to vector
//
// end() waits for what this rank receives; what it sends is waited for before the buffers are used again.
//
// The first fence lets the last unpack finish before its buffer is received into; those before a send let MPI, or the
// ranks of this node, read what the kernel wrote. Values received in place are written by MPI, or copied out of shared
// memory by the engine, without a kernel. finishOnNode() is the part of end() for values of this node; with staging it
// does nothing.
//
// KOMVOS_STAGED=1 stages messages where the host can access the vectors, so that tests need no GPU. Then buffers and
// ghosts that must not be read yet are poisoned (NaN).
//
// Errors: arguments are checked before anything is sent, and a rank that finds an error abandons the exchange. Once
// messages are under way, an exchange is always completed, because others wait for what travels on here; then the
// error is thrown.

namespace Komvos {

namespace Impl {

// Kokkos wants labels as strings; made once, since making them allocates.
inline const std::string packLabel = "Komvos::Exchange::pack";
inline const std::string relayLabel = "Komvos::Exchange::relay";
inline const std::string unpackLabel = "Komvos::Exchange::unpack";
inline const std::string beginRegion = "Komvos::Exchange::begin";
inline const std::string finishOnNodeRegion = "Komvos::Exchange::finishOnNode";
inline const std::string endRegion = "Komvos::Exchange::end";

inline std::string rowsByColumns(std::size_t rows, std::size_t columns) {
  return std::to_string(rows) + " x " + std::to_string(columns);
}

/// \throws BadInput if measuring has not decided yet
inline IntraNode requireDecided(IntraNode onNode, int rank) {
  if (onNode == IntraNode::automatic) {
    throw BadInput("Exchange: IntraNode::automatic stands for a choice, give messages or sharedMemory (rank " +
                   std::to_string(rank) + ")");
  }
  return onNode;
}

}  // namespace Impl

template <class Scalar, class Device>
struct Exchange<Scalar, Device>::State {
  using Direction = Impl::Direction;
  using MemorySpace = typename Impl::BufferSpace<execution_space>::type;
  using DirectionState = Impl::DirectionState<MemorySpace>;
  using BufferAccess = Impl::BufferAccess<Scalar>;

  State(MPI_Comm parent, std::shared_ptr<const ExchangePlan> thePlan, int columnsToAllocate, IntraNode onNode,
        bool mpiIsGpuAware, bool forceStaging)
      : plan(std::move(thePlan)),
        comm(Impl::PrivateComm::of(parent)),
        tags(comm->takeTags(2 * plan->numStages)),
        poisons(forceStaging),
        staged(forceStaging || (!Impl::hostCanAccessBuffers<execution_space>() && !mpiIsGpuAware)),
        shared(onNode == IntraNode::sharedMemory && canShareMemory(mpiIsGpuAware, forceStaging)
                   ? makeShared(columnsToAllocate)
                   : nullptr),
        buffers(*plan, staged, shared.get(), std::max(1, columnsToAllocate)) {}

  ~State() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    try {
      if (!finalized && Kokkos::is_initialized()) {
        finishInFlight();
      }
    } catch (const std::exception&) {  // MPI is broken: nothing is left to do
    }
  }

  /// Null where the node has no shared memory to give.
  std::unique_ptr<Impl::SharedMemoryBuffers> makeShared(int columnsToAllocate) const {
    auto memory = std::make_unique<Impl::SharedMemoryBuffers>(comm, *plan, tags.first(),
                                                              static_cast<int>(sizeof(Scalar)), columnsToAllocate);
    return memory->available() ? std::move(memory) : nullptr;
  }

  /// The directions are made when they are first used; that communicates nothing.
  DirectionState& stateOf(Direction direction) {
    std::unique_ptr<DirectionState>& state = directions[index(direction)];
    if (!state) {
      const bool forward = direction == Direction::forward;
      state = std::make_unique<DirectionState>(
          forward ? Impl::forwardSchedule(*plan, shared ? shared->copiedMessages() : Impl::CopiedMessages())
                  : Impl::reverseSchedule(*plan),
          direction, comm, tags.first() + (forward ? 0 : plan->numStages), staged, shared.get());
    }
    return *state;
  }

  std::size_t memoryBytes() const {
    std::size_t bytes = plan->memoryBytes() + (shared ? shared->memoryBytes() : 0) + buffers.memoryBytes();
    for (const auto& state : directions) {
      bytes += state ? state->memoryBytes() : 0;
    }
    return bytes;
  }

  /// A vector to be filled.
  struct Target {
    Scalar* data = nullptr;
    std::size_t rows = 0, columns = 0;
    std::size_t stride = 0;  // between columns, if they are not interleaved
    bool interleaved = false;
    Target() = default;
    Target(const view& vector)
        : data(vector.data()), rows(vector.extent(0)), columns(vector.extent(1)), stride(vector.stride(1)) {}
    Target(const Interleaved& vector)
        : data(vector.data), rows(vector.rows), columns(vector.columns), interleaved(true) {}
  };

  // The exchange in flight:
  DirectionState& current() { return *directions[index(*inFlight)]; }
  auto& sendBuffer() { return buffers.toSend(*inFlight, columns); }
  /// Of a buffer for `length` values of a column.
  std::pair<std::size_t, std::size_t> usedPart(int length) const {
    return {0, static_cast<std::size_t>(length) * static_cast<std::size_t>(columns)};
  }
  auto& receiveBuffer() { return buffers.toReceive(*inFlight, columns); }
  bool isReverse() const { return inFlight == Direction::reverse; }
  bool selects() const { return isReverse() && reverseCombine == Combine::insert; }
  const typename DirectionState::Lists& lists() { return selects() ? *current().selection : current().lists; }

  void requireIdle() const;
  void requireInFlight(const char* caller, Direction expected) const;
  void requireShape(const char* caller, const Target& vector, int length) const;
  void requireSameVector(const char* caller, const Target& vector, Combine combine) const;

  void begin(const execution_space& space, Direction direction, const const_view& vector, const Target& toFill,
             Combine combine);
  void beginForward(const execution_space& space, const const_view& owned, const Target& ghosts);
  void bindBuffers(Direction direction, int numColumns, Scalar* toFill);
  void poisonWhatArrives(const execution_space& space, const Target& toFill);
  void packAndSend(const execution_space& space, const const_view& vector);
  template <class Work>
  void packOrGiveUp(const Work& pack);
  template <class Work>
  void completedIfItThrows(const execution_space& space, const Work& work);
  void copyToHost(const execution_space& space);
  void startRelays(const execution_space& space);
  bool progress();
  bool finishOnNode(const execution_space& space, const Target& ghosts, Combine combine);
  void end(const execution_space& space, Direction direction, const Target& vector, Combine combine);
  void complete(const execution_space& space);
  void unpack(const execution_space& space, const Impl::DeviceGatherList<MemorySpace>& list, const Target& vector,
              Combine combine);
  void finishInFlight();
  void completeSends();
  void abandon(Direction direction);

  /// Marks the exchange as over, also when an exception passes.
  struct EndsExchange {
    State& state;
    ~EndsExchange() {
      state.inFlight.reset();
      state.onNodeFinished = false;
    }
  };

  std::shared_ptr<const ExchangePlan> plan;
  std::shared_ptr<Impl::PrivateComm> comm;
  Impl::TagRange tags;
  bool poisons;  // staging is forced for a test
  bool staged;
  std::unique_ptr<Impl::SharedMemoryBuffers> shared;  // null: all messages go by MPI
  Impl::MessageBuffers<Scalar, execution_space> buffers;
  std::unique_ptr<DirectionState> directions[2];  // by index(Direction)
  std::optional<Direction> inFlight;
  int columns = 0;                        // of the exchange in flight
  Combine reverseCombine = Combine::add;  // of the exchange in flight, if that is reverse
  Scalar* inPlace = nullptr;              // the vector that messages arrive in, if it was given to begin()
  bool onNodeFinished = false;            // finishOnNode() has unpacked its part
  std::exception_ptr packError;           // to be thrown once the exchange is complete
};

template <class Scalar, class Device>
void Exchange<Scalar, Device>::State::requireIdle() const {
  if (inFlight) {
    throw Error("Exchange::begin: another exchange is in flight (rank " + std::to_string(plan->rank) + ")");
  }
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::State::requireInFlight(const char* caller, Direction expected) const {
  if (inFlight != expected) {
    throw Error(std::string("Exchange::") + caller + ": no exchange was begun in this direction (rank " +
                std::to_string(plan->rank) + ")");
  }
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::State::requireShape(const char* caller, const Target& vector, int length) const {
  if (static_cast<int>(vector.rows) != length || static_cast<int>(vector.columns) != columns) {
    throw PlanMismatch(std::string("Exchange::") + caller + ": the vector is " +
                       Impl::rowsByColumns(vector.rows, vector.columns) + ", this exchange needs " +
                       Impl::rowsByColumns(length, columns) + " (rank " + std::to_string(plan->rank) + ")");
  }
}

/// Values that have arrived in place must have arrived in this vector.
template <class Scalar, class Device>
void Exchange<Scalar, Device>::State::requireSameVector(const char* caller, const Target& vector,
                                                        Combine combine) const {
  if (inPlace && (vector.data != inPlace || combine != Combine::insert || (columns > 1 && !vector.interleaved))) {
    throw PlanMismatch(std::string("Exchange::") + caller +
                       ": begin() was given another vector to fill, or Combine is not insert (rank " +
                       std::to_string(plan->rank) + ")");
  }
}

/// \param toFill where messages may arrive in place; without data: not known yet
template <class Scalar, class Device>
void Exchange<Scalar, Device>::State::begin(const execution_space& space, Direction direction, const const_view& vector,
                                            const Target& toFill, Combine combine) {
  const Impl::ProfilingRegion region(Impl::beginRegion);
  requireIdle();
  const int length = direction == Direction::forward ? plan->numOwned : plan->numTarget;
  if (static_cast<int>(vector.extent(0)) != length || vector.extent(1) == 0) {
    abandon(direction);
    throw PlanMismatch("Exchange::begin: the vector is " + Impl::rowsByColumns(vector.extent(0), vector.extent(1)) +
                       ", the plan expects " + std::to_string(length) + " rows and at least one column (rank " +
                       std::to_string(plan->rank) + ")");
  }
  // Values that are too wide for shared memory go by MPI, which cannot scatter them.
  const bool scattersAll = !shared || static_cast<int>(vector.extent(1)) <= shared->columns();
  const bool canArriveInPlace = !staged && scattersAll && (vector.extent(1) == 1 || toFill.interleaved);
  try {
    completeSends();
    bindBuffers(direction, static_cast<int>(vector.extent(1)), canArriveInPlace ? toFill.data : nullptr);
    reverseCombine = combine;
    if (selects() && !current().selection) {
      current().selection = std::make_unique<typename DirectionState::Lists>(Impl::reverseSelection(*plan), staged);
    }
    Impl::fence(space, "Komvos::Exchange::begin: the last unpack is done before its buffer is received into");
    if (poisons) {
      poisonWhatArrives(space, toFill);
    }
  } catch (...) {  // no memory, for example; nothing has been posted
    inFlight.reset();
    abandon(direction);
    throw;
  }
  current().engine.startReceives();
  packAndSend(space, vector);
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::State::bindBuffers(Direction direction, int numColumns, Scalar* toFill) {
  if (!buffers.hasRoomFor(numColumns)) {
    for (const auto& state : directions) {
      if (state) {
        state->engine.unbind();
      }
    }
    buffers.allocate(numColumns);
  }
  Impl::MessageEngine& engine = stateOf(direction).engine;
  inFlight = direction;
  columns = numColumns;
  inPlace = toFill;
  engine.bind({sendBuffer().forMessages(staged), receiveBuffer().forMessages(staged), toFill,
               static_cast<int>(sizeof(Scalar)) * columns});
}

/// What a staged exchange fills: the receive buffer on the device, then `toFill`, both in end(). The one on the host is
/// spared where it is shared memory, which other ranks may still read.
template <class Scalar, class Device>
void Exchange<Scalar, Device>::State::poisonWhatArrives(const execution_space& space, const Target& toFill) {
  DirectionState& state = current();
  const int length = state.schedule.receiveLength;
  Impl::poisonBuffer(space, BufferAccess{receiveBuffer().device.data(), columns}, length);
  if (!shared) {
    Impl::poisonBuffer(Impl::defaultSpace<Kokkos::DefaultHostExecutionSpace>(),
                       BufferAccess{receiveBuffer().host.data(), columns}, length);
  }
  const auto poison = [&](const auto& target) {
    Impl::poisonTargets<Scalar>(space, lists().unpackAll.onNode, target, columns);
    Impl::poisonTargets<Scalar>(space, lists().unpackAll.rest, target, columns);
  };
  if (toFill.data != nullptr && toFill.interleaved) {
    poison(BufferAccess{toFill.data, columns});
  } else if (toFill.data != nullptr) {
    poison(Impl::VectorAccess<Scalar>{toFill.data, toFill.stride});
  }
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::State::packAndSend(const execution_space& space, const const_view& vector) {
  packOrGiveUp([&] {
    const auto& list = lists().pack;
    const bool largest = isReverse() && reverseCombine == Combine::absMax;
    const Impl::VectorAccess<const Scalar> source{vector.data(), vector.stride(1)};
    Impl::gather<Scalar>(space, Impl::packLabel, list, 0, list.rows, BufferAccess{sendBuffer().device.data(), columns},
                         source, columns, largest ? Impl::GatherOp::largest : Impl::GatherOp::sum);
    if (staged) {
      copyToHost(space);
    }
    Impl::fence(space, "Komvos::Exchange::begin: packed before send");
  });
  current().engine.startReadySends();
}

/// The receives are posted by now, and others wait for what is packed: after an exception they get empty messages, and
/// end() throws it.
template <class Scalar, class Device>
template <class Work>
void Exchange<Scalar, Device>::State::packOrGiveUp(const Work& pack) {
  try {
    pack();
  } catch (...) {
    packError = std::current_exception();
    current().engine.giveUp(Impl::textOf(packError));
  }
}

/// Poisons the host's buffer before it is written, and the device's once it has been read.
template <class Scalar, class Device>
void Exchange<Scalar, Device>::State::copyToHost(const execution_space& space) {
  auto& buffer = sendBuffer();
  const int length = current().schedule.sendLength;
  if (poisons) {
    Impl::poisonBuffer(Impl::defaultSpace<Kokkos::DefaultHostExecutionSpace>(),
                       BufferAccess{buffer.host.data(), columns}, length);
  }
  const auto used = usedPart(length);  // there may be room for more columns
  if (used.second > 0) {
    Kokkos::deep_copy(space, Kokkos::subview(buffer.host, used), Kokkos::subview(buffer.device, used));
  }
  if (poisons) {
    Impl::poisonBuffer(space, BufferAccess{buffer.device.data(), columns}, length);
  }
}

/// Packs and starts the sends whose last input has arrived.
template <class Scalar, class Device>
void Exchange<Scalar, Device>::State::startRelays(const execution_space& space) {
  DirectionState& state = current();
  // What this rank has of it is packed; selected copies have one source only.
  const Impl::GatherOp op = !isReverse() || selects()           ? Impl::GatherOp::copy
                            : reverseCombine == Combine::absMax ? Impl::GatherOp::joinLargest
                                                                : Impl::GatherOp::addSum;
  for (int send = state.engine.popReady(); send >= 0; send = state.engine.popReady()) {
    const auto& relay = lists().relays(inPlace != nullptr);
    const int first = relay.offset[send];
    const int last = relay.offset[send + 1];
    packOrGiveUp([&] {
      if (!state.engine.needsPacking(send)) {
        // the receiver reads our receive buffer
      } else if (staged) {
        Impl::gather<Scalar>(Impl::defaultSpace<Kokkos::DefaultHostExecutionSpace>(), Impl::relayLabel, relay.onHost,
                             first, last, BufferAccess{sendBuffer().host.data(), columns},
                             BufferAccess{receiveBuffer().host.data(), columns}, columns, op);
      } else {
        Impl::gather<Scalar>(space, Impl::relayLabel, relay.list, first, last,
                             BufferAccess{sendBuffer().device.data(), columns},
                             BufferAccess{receiveBuffer().device.data(), columns}, columns, op);
        Impl::fence(space, "Komvos::Exchange::relay: packed before send");
      }
    });
    state.engine.startSend(send);
  }
}

template <class Scalar, class Device>
bool Exchange<Scalar, Device>::State::progress() {
  if (!inFlight) {
    Impl::ProgressHook::runAll();
    for (const auto& state : directions) {
      if (state) {
        state->engine.pollSends();
      }
    }
    return true;
  }
  Impl::MessageEngine& engine = current().engine;
  engine.poll(false);
  startRelays(Impl::defaultSpace<execution_space>());
  engine.pollSends();
  return engine.receivesDone();
}

/// Completes the exchange before it lets through what work() throws: values of others still go through this rank.
template <class Scalar, class Device>
template <class Work>
void Exchange<Scalar, Device>::State::completedIfItThrows(const execution_space& space, const Work& work) {
  try {
    work();
  } catch (...) {
    const EndsExchange afterwards{*this};
    complete(space);
    throw;
  }
}

template <class Scalar, class Device>
bool Exchange<Scalar, Device>::State::finishOnNode(const execution_space& space, const Target& ghosts,
                                                   Combine combine) {
  const Impl::ProfilingRegion region(Impl::finishOnNodeRegion);
  requireInFlight("finishOnNode", Direction::forward);
  completedIfItThrows(space, [&] {
    requireShape("finishOnNode", ghosts, plan->numTarget);
    requireSameVector("finishOnNode", ghosts, combine);
  });
  if (staged || onNodeFinished) {
    return onNodeFinished;
  }
  DirectionState& state = current();
  while (!state.engine.onNodeReceivesDone()) {
    state.engine.poll(true);
    startRelays(space);
  }
  completedIfItThrows(space, [&] {
    unpack(space, inPlace ? lists().unpackBuffered.onNode : lists().unpackAll.onNode, ghosts, combine);
  });
  onNodeFinished = true;
  return true;
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::State::end(const execution_space& space, Direction direction, const Target& vector,
                                          Combine combine) {
  const Impl::ProfilingRegion region(Impl::endRegion);
  requireInFlight("end", direction);
  const EndsExchange afterwards{*this};
  complete(space);
  if (const auto used = usedPart(current().schedule.receiveLength); staged && used.second > 0) {
    Kokkos::deep_copy(Kokkos::subview(receiveBuffer().device, used), Kokkos::subview(receiveBuffer().host, used));
  }
  requireShape("end", vector, direction == Direction::forward ? plan->numTarget : plan->numOwned);
  requireSameVector("end", vector, combine);
  const auto& unpackLists = inPlace ? lists().unpackBuffered : lists().unpackAll;
  if (!onNodeFinished) {
    unpack(space, unpackLists.onNode, vector, combine);
  }
  unpack(space, unpackLists.rest, vector, combine);
}

/// Waits for all messages.
template <class Scalar, class Device>
void Exchange<Scalar, Device>::State::complete(const execution_space& space) {
  Impl::MessageEngine& engine = current().engine;
  while (engine.relaysPending()) {
    engine.poll(true);
    startRelays(space);
  }
  engine.waitForAll();
  try {
    engine.finish();
  } catch (const PlanMismatch&) {
    if (packError) {
      std::rethrow_exception(std::exchange(packError, nullptr));
    }
    throw;
  }
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::State::unpack(const execution_space& space,
                                             const Impl::DeviceGatherList<MemorySpace>& list, const Target& vector,
                                             Combine combine) {
  const Impl::GatherOp op = combine == Combine::insert ? Impl::GatherOp::copy
                            : combine == Combine::add  ? Impl::GatherOp::addSum
                                                       : Impl::GatherOp::joinLargest;
  const BufferAccess source{receiveBuffer().device.data(), columns};
  if (vector.interleaved) {
    Impl::gather<Scalar>(space, Impl::unpackLabel, list, 0, list.rows, BufferAccess{vector.data, columns}, source,
                         columns, op);
  } else {
    Impl::gather<Scalar>(space, Impl::unpackLabel, list, 0, list.rows,
                         Impl::VectorAccess<Scalar>{vector.data, vector.stride}, source, columns, op);
  }
}

/// Both directions send from what the other one receives into.
template <class Scalar, class Device>
void Exchange<Scalar, Device>::State::completeSends() {
  for (const auto& state : directions) {
    if (state) {
      state->engine.completeSends();
    }
  }
}

/// Nobody wants the values that still arrive, but messages need their buffers, and values of others travel on here.
template <class Scalar, class Device>
void Exchange<Scalar, Device>::State::finishInFlight() {
  if (inFlight) {
    const EndsExchange afterwards{*this};
    packError = nullptr;  // who abandons an exchange has an error of its own
    try {
      complete(Impl::defaultSpace<execution_space>());
    } catch (const PlanMismatch&) {  // another rank has abandoned it too
    }
  }
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::State::abandon(Direction direction) {
  const bool begun = inFlight == direction;
  finishInFlight();
  if (!begun) {
    stateOf(direction).engine.abandon();
  }
}

template <class Scalar, class Device>
Exchange<Scalar, Device>::Exchange(MPI_Comm comm, std::shared_ptr<const ExchangePlan> plan, int maxColumns,
                                   IntraNode onNode, bool mpiIsGpuAware, bool forceStaging)
    : state_(std::make_unique<State>(comm, plan, maxColumns, Impl::requireDecided(onNode, plan->rank), mpiIsGpuAware,
                                     forceStaging)) {}

template <class Scalar, class Device>
Exchange<Scalar, Device>::~Exchange() = default;
template <class Scalar, class Device>
Exchange<Scalar, Device>::Exchange(Exchange&&) noexcept = default;
template <class Scalar, class Device>
Exchange<Scalar, Device>& Exchange<Scalar, Device>::operator=(Exchange&&) noexcept = default;

/// \param ghosts where messages may arrive in place
template <class Scalar, class Device>
void Exchange<Scalar, Device>::State::beginForward(const execution_space& space, const const_view& owned,
                                                   const Target& ghosts) {
  if (static_cast<int>(ghosts.rows) != plan->numTarget || ghosts.columns != owned.extent(1)) {
    requireIdle();
    abandon(Direction::forward);
    throw PlanMismatch("Exchange::begin: the vector to fill is " + Impl::rowsByColumns(ghosts.rows, ghosts.columns) +
                       ", it must be " + Impl::rowsByColumns(plan->numTarget, owned.extent(1)) + " (rank " +
                       std::to_string(plan->rank) + ")");
  }
  begin(space, Direction::forward, owned, ghosts, Combine::insert);
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::begin(const execution_space& space, const const_view& owned) {
  state_->begin(space, Impl::Direction::forward, owned, {}, Combine::insert);
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::begin(const execution_space& space, const const_view& owned, const view& ghosts) {
  state_->beginForward(space, owned, ghosts);
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::begin(const execution_space& space, const const_view& owned, const Interleaved& ghosts) {
  state_->beginForward(space, owned, ghosts);
}

template <class Scalar, class Device>
bool Exchange<Scalar, Device>::progress() {
  return state_->progress();
}

template <class Scalar, class Device>
bool Exchange<Scalar, Device>::finishOnNode(const execution_space& space, const view& ghosts, Combine combine) {
  return state_->finishOnNode(space, ghosts, combine);
}

template <class Scalar, class Device>
bool Exchange<Scalar, Device>::finishOnNode(const execution_space& space, const Interleaved& ghosts, Combine combine) {
  return state_->finishOnNode(space, ghosts, combine);
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::end(const execution_space& space, const Interleaved& ghosts, Combine combine) {
  state_->end(space, Impl::Direction::forward, ghosts, combine);
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::end(const execution_space& space, const view& ghosts, Combine combine) {
  state_->end(space, Impl::Direction::forward, ghosts, combine);
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::forward(const execution_space& space, const const_view& owned, const view& ghosts,
                                       Combine combine) {
  begin(space, owned);
  end(space, ghosts, combine);
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::beginReverse(const execution_space& space, const const_view& ghosts, Combine combine) {
  state_->begin(space, Impl::Direction::reverse, ghosts, {}, combine);
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::endReverse(const execution_space& space, const view& owned) {
  state_->end(space, Impl::Direction::reverse, owned, state_->reverseCombine);
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::reverse(const execution_space& space, const const_view& ghosts, const view& owned,
                                       Combine combine) {
  beginReverse(space, ghosts, combine);
  endReverse(space, owned);
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::abandonForward() {
  state_->abandon(Impl::Direction::forward);
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::abandonReverse() {
  state_->abandon(Impl::Direction::reverse);
}

template <class Scalar, class Device>
const ExchangePlan& Exchange<Scalar, Device>::plan() const {
  return *state_->plan;
}

template <class Scalar, class Device>
std::size_t Exchange<Scalar, Device>::memoryBytes() const {
  return state_->memoryBytes();
}

template <class Scalar, class Device>
bool Exchange<Scalar, Device>::canShareMemory(bool mpiIsGpuAware, bool forceStaging) {
  // Shared memory is the host's: kernels of a GPU write their own memory, even where the host may read that.
  const bool stages = forceStaging || (!Impl::hostCanAccessBuffers<execution_space>() && !mpiIsGpuAware);
  return Impl::runsOnHost<execution_space>() || stages;
}

template <class Scalar, class Device>
IntraNode Exchange<Scalar, Device>::intraNode() const {
  return state_->shared ? IntraNode::sharedMemory : IntraNode::messages;
}

/// Compiles Exchange for vectors of SCALAR on the device of a Tpetra node; in namespace Komvos.
#define KOMVOS_EXCHANGE_INSTANT(SCALAR, NODE) template class Exchange<SCALAR, NODE::device_type>;

}  // namespace Komvos
