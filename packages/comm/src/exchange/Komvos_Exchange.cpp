#include "Komvos_Exchange.hpp"

#include <Tpetra_Details_DefaultTypes.hpp>
#include <algorithm>
#include <complex>

#include "Komvos_Error.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_GatherKernels.hpp"
#include "Komvos_MessageEngine.hpp"
#include "Komvos_NodeMemory.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_Settings.hpp"

namespace Komvos {

namespace {

// Kokkos wants labels as strings; made once, since making them allocates.
const std::string packLabel = "Komvos::Exchange::pack";
const std::string relayLabel = "Komvos::Exchange::forward";
const std::string unpackLabel = "Komvos::Exchange::unpack";

enum class Phase { idle, forward, reverse };

std::string shape(std::size_t rows, std::size_t columns) {
  return std::to_string(rows) + " x " + std::to_string(columns);
}

/// \throws BadInput if measuring has not decided yet
IntraNode requireDecided(IntraNode onNode, int rank) {
  if (onNode == IntraNode::automatic) {
    throw BadInput("Exchange: IntraNode::automatic stands for a choice, give messages or sharedMemory (rank " +
                   std::to_string(rank) + ")");
  }
  return onNode;
}

/// One direction of a plan: its schedule, index lists where they are needed, and its messages.
template <class MemorySpace>
struct Direction {
  Impl::Schedule schedule;
  Impl::DeviceGatherList<MemorySpace> initial, forward, finalOnNode, finalRest, copiedOnNode, copiedRest;
  Impl::DeviceGatherList<Kokkos::HostSpace> relayOnHost;  // where messages are staged through the host
  Impl::MessageEngine engine;

  Direction(Impl::Schedule made, std::shared_ptr<Impl::PrivateComm> comm, int firstTag, bool staged,
            Impl::MessageEngine::Mail mail)
      : schedule(std::move(made)),
        initial(schedule.initial),
        forward(staged ? Impl::GatherList{} : schedule.forward),
        finalOnNode(schedule.finalOnNode),
        finalRest(schedule.finalRest),
        copiedOnNode(schedule.copiedOnNode),
        copiedRest(schedule.copiedRest),
        relayOnHost(staged ? schedule.forward : Impl::GatherList{}),
        engine(std::move(comm), firstTag, schedule, mail) {
    schedule.dropLists();
  }

  std::size_t memoryBytes() const {
    std::size_t bytes = schedule.memoryBytes() + engine.memoryBytes() + relayOnHost.memoryBytes();
    for (const auto* list : {&initial, &forward, &finalOnNode, &finalRest, &copiedOnNode, &copiedRest}) {
      bytes += list->memoryBytes();
    }
    return bytes;
  }
};

/// A message buffer on the device, and its copy on the host where messages are staged.
template <class Scalar, class ExecutionSpace>
struct Buffer {
  using Spaces = Impl::BufferSpace<ExecutionSpace>;
  Kokkos::View<Scalar*, typename Spaces::type> device;
  Kokkos::View<Scalar*, typename Spaces::pinned> host;

  void allocate(std::size_t size, bool staged) {
    using Kokkos::view_alloc;
    using Kokkos::WithoutInitializing;
    device = decltype(device)(view_alloc("Komvos::Exchange::buffer", WithoutInitializing), size);
    host = decltype(host)(view_alloc("Komvos::Exchange::stagedBuffer", WithoutInitializing), staged ? size : 0);
  }
  /// Messages leave from, or arrive in, memory that is given. It is not pinned.
  void place(char* memory, std::size_t size, bool staged) {
    allocate(staged ? size : 0, false);
    auto* const values = reinterpret_cast<Scalar*>(memory);
    if (staged) {
      host = decltype(host)(values, size);
    } else {
      device = decltype(device)(values, size);
    }
  }
  Scalar* forMpi(bool staged) const { return staged ? host.data() : device.data(); }
  std::size_t memoryBytes() const { return (device.size() + host.size()) * sizeof(Scalar); }
};

}  // namespace

template <class Scalar, class Device>
struct Exchange<Scalar, Device>::State {
  using MemorySpace = typename Impl::BufferSpace<execution_space>::type;
  using Run = Direction<MemorySpace>;
  using InBuffer = Impl::BufferAccess<Scalar>;

  State(MPI_Comm parent, std::shared_ptr<const ExchangePlan> madePlan, int columnsToAllocate, IntraNode onNode)
      : plan(std::move(madePlan)),
        comm(Impl::PrivateComm::of(parent)),
        firstTag(comm->takeTags(2 * plan->numStages)),
        staged(!Impl::hostCanAccessBuffers<execution_space>() && !gpuAwareMpi()) {
    columnsToAllocate = std::max(1, columnsToAllocate);
    if (onNode == IntraNode::sharedMemory && canShareMemory()) {
      mail = std::make_unique<Impl::NodeMailbox>(comm, *plan, firstTag, static_cast<int>(sizeof(Scalar)),
                                                 columnsToAllocate);
      if (!mail->available()) {
        mail.reset();
      }
    }
    if (mail) {
      shared.outbound.place(mail->outbound(), static_cast<std::size_t>(plan->sendLength()) * columnsToAllocate, staged);
      shared.inbound.place(mail->inbound(), static_cast<std::size_t>(plan->receiveLength()) * columnsToAllocate,
                           staged);
      sharedColumns = columnsToAllocate;
    } else {
      allocate(columnsToAllocate);
    }
  }

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

  /// The directions are made when they are first used; that communicates nothing.
  Run& run(Phase which) {
    std::unique_ptr<Run>& made = which == Phase::forward ? forwardRun : reverseRun;
    if (!made) {
      const bool forward = which == Phase::forward;
      made = std::make_unique<Run>(
          forward ? Impl::forwardSchedule(*plan, mailedReceives()) : Impl::reverseSchedule(*plan), comm,
          firstTag + (forward ? 0 : plan->numStages), staged,
          Impl::MessageEngine::Mail{mail.get(), forward ? Impl::NodeMailbox::forward : Impl::NodeMailbox::reverse});
    }
    return *made;
  }

  /// Receives that this process copies from the memory of another.
  std::vector<bool> mailedReceives() const {
    std::vector<bool> mailed;
    for (std::size_t m = 0; mail && m < plan->receives.size(); ++m) {
      mailed.push_back(mail->receives(Impl::NodeMailbox::forward)[m].signal != nullptr);
    }
    return mailed;
  }

  std::size_t memoryBytes() const {
    std::size_t bytes = plan->memoryBytes() + (mail ? mail->memoryBytes() : 0);
    for (const Buffers* made : {&shared, &own}) {
      bytes += made->outbound.memoryBytes() + made->inbound.memoryBytes();
    }
    for (const Run* made : {forwardRun.get(), reverseRun.get()}) {
      bytes += made != nullptr ? made->memoryBytes() : 0;
    }
    return bytes;
  }

  void allocate(int numColumns) {
    for (Run* made : {forwardRun.get(), reverseRun.get()}) {
      if (made != nullptr) {
        made->engine.unbind();
      }
    }
    allocatedColumns = numColumns;
    own.outbound.allocate(static_cast<std::size_t>(plan->sendLength()) * numColumns, staged);
    own.inbound.allocate(static_cast<std::size_t>(plan->receiveLength()) * numColumns, staged);
  }

  // What a forward exchange sends from, a reverse one receives into.
  struct Buffers {
    Buffer<Scalar, execution_space> outbound;
    Buffer<Scalar, execution_space> inbound;
  };
  Buffers& buffers() { return columns <= sharedColumns ? shared : own; }
  Buffer<Scalar, execution_space>& sendBuffer() {
    return phase == Phase::forward ? buffers().outbound : buffers().inbound;
  }
  Buffer<Scalar, execution_space>& receiveBuffer() {
    return phase == Phase::forward ? buffers().inbound : buffers().outbound;
  }

  void requireIdle() const {
    if (phase != Phase::idle) {
      throw Error("Exchange::begin: another exchange is in flight (rank " + std::to_string(plan->rank) + ")");
    }
  }

  /// \param targets where messages may arrive in place, or null
  void begin(const execution_space& space, Phase which, const const_view& vector, Scalar* targets) {
    requireIdle();
    const int length = which == Phase::forward ? plan->numOwned : plan->numTarget;
    if (static_cast<int>(vector.extent(0)) != length || vector.extent(1) == 0) {
      abandon(which);
      throw PlanMismatch("Exchange::begin: the vector is " + shape(vector.extent(0), vector.extent(1)) +
                         ", the plan expects " + std::to_string(length) + " rows and at least one column (rank " +
                         std::to_string(plan->rank) + ")");
    }
    const bool inPlace = !staged && vector.extent(1) == 1;
    start(which, static_cast<int>(vector.extent(1)), inPlace ? targets : nullptr);
    Run& current = run(which);
    Impl::fence(space, "Komvos::Exchange::begin: the last unpack is done before its buffer is received into");
    current.engine.startReceives();
    const Impl::VectorAccess<const Scalar> source{vector.data(), vector.stride_1()};
    Impl::gather<Scalar>(space, packLabel, current.initial, 0, current.initial.rows,
                         InBuffer{sendBuffer().device.data(), columns}, source, columns, false);
    if (staged) {
      Kokkos::deep_copy(space, sendBuffer().host, sendBuffer().device);
    }
    Impl::fence(space, "Komvos::Exchange::begin: packed before send");
    current.engine.startReadySends();
  }

  void start(Phase which, int numColumns, Scalar* targets) {
    if (numColumns > std::max(allocatedColumns, sharedColumns)) {
      allocate(numColumns);
    }
    phase = which;
    columns = numColumns;
    arrivesInPlace = targets;
    run(which).engine.bind(sendBuffer().forMpi(staged), receiveBuffer().forMpi(staged),
                           static_cast<int>(sizeof(Scalar)) * columns, targets);
  }

  void abandon(Phase which) {
    const bool begun = phase == which;
    finishInFlight();
    if (!begun) {
      run(which).engine.abandon();
    }
  }

  /// Nobody wants the values that still arrive, but messages need their buffers, and values of others travel on here.
  void finishInFlight() {
    if (phase != Phase::idle) {
      const Idle afterwards{*this};
      try {
        complete(execution_space());
      } catch (const PlanMismatch&) {  // another rank has abandoned it too
      }
    }
  }

  /// Packs and starts the sends whose last input has arrived.
  void startRelays(const execution_space& space) {
    Run& current = run(phase);
    const bool add = current.schedule.relayAdds;
    for (int send = current.engine.popReady(); send >= 0; send = current.engine.popReady()) {
      const int first = current.schedule.relayOffset[send];
      const int last = current.schedule.relayOffset[send + 1];
      if (current.engine.isRelayed(send)) {
        // the receiver reads our receive buffer
      } else if (staged) {
        Impl::gather<Scalar>(Kokkos::DefaultHostExecutionSpace(), relayLabel, current.relayOnHost, first, last,
                             InBuffer{sendBuffer().host.data(), columns},
                             InBuffer{receiveBuffer().host.data(), columns}, columns, add);
      } else {
        Impl::gather<Scalar>(space, relayLabel, current.forward, first, last,
                             InBuffer{sendBuffer().device.data(), columns},
                             InBuffer{receiveBuffer().device.data(), columns}, columns, add);
        Impl::fence(space, "Komvos::Exchange::forward: packed before send");
      }
      current.engine.startSend(send);
    }
  }

  void requirePhase(const char* caller, Phase expected) const {
    if (phase != expected) {
      throw Error(std::string("Exchange::") + caller + ": no exchange was begun in this direction (rank " +
                  std::to_string(plan->rank) + ")");
    }
  }

  /// Waits for all messages.
  void complete(const execution_space& space) {
    Run& current = run(phase);
    while (current.engine.relaysPending()) {
      current.engine.poll(true);
      startRelays(space);
    }
    current.engine.waitForAll();
    current.engine.finish();
  }

  void unpack(const execution_space& space, const Impl::DeviceGatherList<MemorySpace>& list, const view& vector,
              bool add) {
    Impl::gather<Scalar>(space, unpackLabel, list, 0, list.rows,
                         Impl::VectorAccess<Scalar>{vector.data(), vector.stride_1()},
                         InBuffer{receiveBuffer().device.data(), columns}, columns, add);
  }

  void requireShape(const char* caller, const view& vector, int length) const {
    if (static_cast<int>(vector.extent(0)) != length || static_cast<int>(vector.extent(1)) != columns) {
      throw PlanMismatch(std::string("Exchange::") + caller + ": the vector is " +
                         shape(vector.extent(0), vector.extent(1)) + ", this exchange needs " + shape(length, columns) +
                         " (rank " + std::to_string(plan->rank) + ")");
    }
  }

  /// Values that have arrived in place must have arrived in this vector.
  void requireTargets(const char* caller, const view& vector, bool add) const {
    if (arrivesInPlace && (vector.data() != arrivesInPlace || add)) {
      throw PlanMismatch(std::string("Exchange::") + caller +
                         ": begin() was given another vector to fill, or Combine is not insert (rank " +
                         std::to_string(plan->rank) + ")");
    }
  }

  /// Marks the exchange as over, also when an exception passes.
  struct Idle {
    State& state;
    ~Idle() {
      state.phase = Phase::idle;
      state.onNodeFinished = false;
    }
  };

  void end(const execution_space& space, Phase which, const view& vector, bool add) {
    requirePhase("end", which);
    const Idle afterwards{*this};
    complete(space);
    Run& current = run(which);
    if (staged) {
      Kokkos::deep_copy(space, receiveBuffer().device, receiveBuffer().host);
    }
    requireShape("end", vector, which == Phase::forward ? plan->numTarget : plan->numOwned);
    requireTargets("end", vector, add);
    if (!onNodeFinished) {
      unpack(space, arrivesInPlace ? current.copiedOnNode : current.finalOnNode, vector, add);
    }
    unpack(space, arrivesInPlace ? current.copiedRest : current.finalRest, vector, add);
  }

  std::shared_ptr<const ExchangePlan> plan;
  std::shared_ptr<Impl::PrivateComm> comm;
  int firstTag;
  bool staged;
  std::unique_ptr<Impl::NodeMailbox> mail;  // null: all messages go by MPI
  Buffers shared;                           // in the mailbox, for up to sharedColumns
  Buffers own;                              // for more
  std::unique_ptr<Run> forwardRun;
  std::unique_ptr<Run> reverseRun;
  int sharedColumns = 0;
  int allocatedColumns = 0;  // of `own`
  int columns = 0;
  Scalar* arrivesInPlace = nullptr;
  Phase phase = Phase::idle;
  bool onNodeFinished = false;
};

template <class Scalar, class Device>
Exchange<Scalar, Device>::Exchange(MPI_Comm comm, std::shared_ptr<const ExchangePlan> plan, int maxColumns,
                                   IntraNode onNode)
    : state_(std::make_unique<State>(comm, plan, maxColumns, requireDecided(onNode, plan->rank))) {}

template <class Scalar, class Device>
Exchange<Scalar, Device>::~Exchange() = default;
template <class Scalar, class Device>
Exchange<Scalar, Device>::Exchange(Exchange&&) noexcept = default;
template <class Scalar, class Device>
Exchange<Scalar, Device>& Exchange<Scalar, Device>::operator=(Exchange&&) noexcept = default;

template <class Scalar, class Device>
void Exchange<Scalar, Device>::begin(const execution_space& space, const const_view& owned) {
  state_->begin(space, Phase::forward, owned, nullptr);
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::begin(const execution_space& space, const const_view& owned, const view& ghosts) {
  if (static_cast<int>(ghosts.extent(0)) != state_->plan->numTarget || ghosts.extent(1) != owned.extent(1)) {
    state_->requireIdle();
    state_->abandon(Phase::forward);
    throw PlanMismatch("Exchange::begin: the vector to fill is " + shape(ghosts.extent(0), ghosts.extent(1)) +
                       ", it must be " + shape(state_->plan->numTarget, owned.extent(1)) + " (rank " +
                       std::to_string(state_->plan->rank) + ")");
  }
  state_->begin(space, Phase::forward, owned, ghosts.data());
}

template <class Scalar, class Device>
bool Exchange<Scalar, Device>::progress() {
  if (state_->phase == Phase::idle) {
    return true;
  }
  Impl::MessageEngine& engine = state_->run(state_->phase).engine;
  engine.poll(false);
  state_->startRelays(execution_space());
  engine.pollSends();
  return engine.receivesDone();
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::finishOnNode(const execution_space& space, const view& ghosts, Combine combine) {
  State& state = *state_;
  state.requirePhase("finishOnNode", Phase::forward);
  auto& run = state.run(Phase::forward);
  if (state.staged || state.onNodeFinished) {
    return;
  }
  try {
    state.requireShape("finishOnNode", ghosts, state.plan->numTarget);
    state.requireTargets("finishOnNode", ghosts, combine == Combine::add);
  } catch (const PlanMismatch&) {  // values of others still travel through this rank
    const typename State::Idle afterwards{state};
    state.complete(space);
    throw;
  }
  while (!run.engine.onNodeReceivesDone()) {
    run.engine.poll(true);
    state.startRelays(space);
  }
  state.unpack(space, state.arrivesInPlace ? run.copiedOnNode : run.finalOnNode, ghosts, combine == Combine::add);
  state.onNodeFinished = true;
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::end(const execution_space& space, const view& ghosts, Combine combine) {
  state_->end(space, Phase::forward, ghosts, combine == Combine::add);
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::forward(const execution_space& space, const const_view& owned, const view& ghosts,
                                       Combine combine) {
  begin(space, owned);
  end(space, ghosts, combine);
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::beginReverse(const execution_space& space, const const_view& ghosts) {
  state_->begin(space, Phase::reverse, ghosts, nullptr);
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::endReverse(const execution_space& space, const view& owned) {
  state_->end(space, Phase::reverse, owned, true);
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::reverse(const execution_space& space, const const_view& ghosts, const view& owned) {
  beginReverse(space, ghosts);
  endReverse(space, owned);
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::abandonForward() {
  state_->abandon(Phase::forward);
}

template <class Scalar, class Device>
void Exchange<Scalar, Device>::abandonReverse() {
  state_->abandon(Phase::reverse);
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
bool Exchange<Scalar, Device>::canShareMemory() {
  return Impl::hostCanAccessBuffers<execution_space>() || !gpuAwareMpi();
}

template <class Scalar, class Device>
IntraNode Exchange<Scalar, Device>::intraNode() const {
  return state_->mail ? IntraNode::sharedMemory : IntraNode::messages;
}

using DefaultDevice = Tpetra::Details::DefaultTypes::node_type::device_type;
template class Exchange<double, DefaultDevice>;
template class Exchange<float, DefaultDevice>;
template class Exchange<int, DefaultDevice>;
template class Exchange<long long, DefaultDevice>;

}  // namespace Komvos
