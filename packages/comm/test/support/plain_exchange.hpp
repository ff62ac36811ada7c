/// \file plain_exchange.hpp
/// The plain twin of Komvos::Exchange: drives the message engine over host memory, with loops in place of kernels.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "Komvos_ExchangePlan.hpp"
#include "Komvos_MessageEngine.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_Schedule.hpp"
#include "Komvos_SharedMemoryBuffers.hpp"

namespace KomvosTest {

using Komvos::Impl::Direction;

/// Vectors have `columns` values an entry, one entry after the other, as the buffers have.
template <class Value>
class PlainExchange {
 public:
  /// \param roomFor columns that find room in shared memory; 0: all messages go by MPI
  /// \note Collective on `comm`.
  PlainExchange(MPI_Comm comm, std::shared_ptr<const Komvos::ExchangePlan> plan, int roomFor)
      : plan_(std::move(plan)),
        comm_(Komvos::Impl::PrivateComm::of(comm)),
        tags_(comm_->takeTags(2 * plan_->numStages)) {
    if (roomFor > 0) {
      shared_ = std::make_unique<Komvos::Impl::SharedMemoryBuffers>(comm_, *plan_, tags_.first(),
                                                                    static_cast<int>(sizeof(Value)), roomFor);
    }
    for (const Direction direction : Komvos::Impl::bothDirections) {
      const bool forward = direction == Direction::forward;
      directions_[index(direction)] = std::make_unique<Way>(
          forward ? Komvos::Impl::forwardSchedule(
                        *plan_, sharedOrNull() ? shared_->copiedMessages() : Komvos::Impl::CopiedMessages())
                  : Komvos::Impl::reverseSchedule(*plan_),
          direction, comm_, tags_.first() + (forward ? 0 : plan_->numStages), sharedOrNull());
    }
  }

  /// Starts a direction. \param toFill where values may arrive in place, or null
  void begin(Direction direction, int columns, const std::vector<Value>& source, std::vector<Value>* toFill = nullptr) {
    post(direction, columns, toFill);
    Way& way = now();
    gather(way.schedule.pack, 0, way.schedule.pack.size(), sendBuffer_, source.data(), false);
    way.engine.startReadySends();
  }

  /// The same on a rank that fails to pack, once its receives are posted.
  void beginWithoutValues(Direction direction, int columns) {
    post(direction, columns, nullptr);
    now().engine.giveUp("on purpose");
    now().engine.startReadySends();
  }

  /// \return whether all values have arrived here
  bool progress() {
    now().engine.poll(false);
    startRelays();
    now().engine.pollSends();
    return now().engine.receivesDone();
  }

  /// Waits for a message, if there is one to wait for.
  void waitForMore() {
    now().engine.poll(true);
    startRelays();
  }

  /// Waits for the rest. \throws Komvos::PlanMismatch if values did not arrive; the exchange is over then
  void end(std::vector<Value>& target, bool add) {
    Way& way = now();
    while (way.engine.relaysPending()) {
      way.engine.poll(true);
      startRelays();
    }
    way.engine.waitForAll();
    way.engine.finish();
    const Komvos::Impl::UnpackLists& lists = inPlace_ ? way.schedule.unpackBuffered : way.schedule.unpackAll;
    for (const Komvos::Impl::GatherList* list : {&lists.onNode, &lists.rest}) {
      gather(*list, 0, list->size(), target.data(), receiveBuffer_, add);
    }
  }

  void forward(int columns, const std::vector<Value>& owned, std::vector<Value>& targets) {
    begin(Direction::forward, columns, owned);
    end(targets, false);
  }
  /// Values arrive in `targets` where they can: not where they are too wide for shared memory.
  void forwardInPlace(int columns, const std::vector<Value>& owned, std::vector<Value>& targets) {
    begin(Direction::forward, columns, owned, &targets);
    end(targets, false);
  }
  void reverse(int columns, const std::vector<Value>& targets, std::vector<Value>& owned) {
    begin(Direction::reverse, columns, targets);
    end(owned, true);
  }
  bool sharesMemory() const { return sharedOrNull() != nullptr; }
  /// Forward messages from here that go through shared memory.
  int numSharedMessages() const {
    if (!sharesMemory()) {
      return 0;
    }
    const auto& slots = shared_->sends(Direction::forward);
    return static_cast<int>(
        std::count_if(slots.begin(), slots.end(), [](const auto& slot) { return slot.flag != nullptr; }));
  }
  void abandon(Direction direction) { directions_[index(direction)]->engine.abandon(); }

 private:
  struct Way {
    Komvos::Impl::Schedule schedule;
    Komvos::Impl::MessageEngine engine;
    Way(Komvos::Impl::Schedule lists, Direction direction, std::shared_ptr<Komvos::Impl::PrivateComm> comm,
        int firstTag, const Komvos::Impl::SharedMemoryBuffers* shared)
        : schedule(std::move(lists)), engine(std::move(comm), firstTag, schedule, shared, direction) {}
  };

  Way& now() { return *directions_[index(inFlight_)]; }
  const Komvos::Impl::SharedMemoryBuffers* sharedOrNull() const {
    return shared_ && shared_->available() ? shared_.get() : nullptr;
  }

  void post(Direction direction, int columns, std::vector<Value>* toFill) {
    for (const auto& way : directions_) {
      way->engine.completeSends();
    }
    inFlight_ = direction;
    columns_ = columns;
    inPlace_ =
        toFill != nullptr && toFill->data() != nullptr && (sharedOrNull() == nullptr || columns <= shared_->columns());
    chooseBuffers(direction);
    now().engine.bind(
        {sendBuffer_, receiveBuffer_, inPlace_ ? toFill->data() : nullptr, static_cast<int>(sizeof(Value)) * columns});
    now().engine.startReceives();
  }

  /// In shared memory while there is room, else in memory of our own. What a forward exchange sends from, a reverse one
  /// receives into.
  void chooseBuffers(Direction direction) {
    if (sharedOrNull() != nullptr && columns_ <= shared_->columns()) {
      sendBuffer_ = reinterpret_cast<Value*>(shared_->outbound());
      receiveBuffer_ = reinterpret_cast<Value*>(shared_->inbound());
    } else {
      const auto columns = static_cast<std::size_t>(columns_);
      if (columns > ownColumns_) {
        for (const auto& way : directions_) {
          way->engine.unbind();
        }
        outbound_.resize(columns * plan_->sendLength());
        inbound_.resize(columns * plan_->receiveLength());
        ownColumns_ = columns;
      }
      sendBuffer_ = outbound_.data();
      receiveBuffer_ = inbound_.data();
    }
    if (direction == Direction::reverse) {
      std::swap(sendBuffer_, receiveBuffer_);
    }
  }

  void startRelays() {
    Way& way = now();
    for (int send = way.engine.popReady(); send >= 0; send = way.engine.popReady()) {
      if (way.engine.needsPacking(send)) {
        const Komvos::Impl::Schedule& s = way.schedule;
        const bool scatters = inPlace_ && s.scattersToSends;
        const std::vector<int>& offset = scatters ? s.relayBufferedOffset : s.relayOffset;
        gather(scatters ? s.relayBuffered : s.relay, offset[send], offset[send + 1], sendBuffer_, receiveBuffer_,
               s.relayAdds);
      }
      way.engine.startSend(send);
    }
  }

  /// Rows [first, last) of `list`: entry to[i] becomes, or gets added, the sum of its sources.
  void gather(const Komvos::Impl::GatherList& list, int first, int last, Value* to, const Value* from, bool add) const {
    for (int row = first; row < last; ++row) {
      const int begin = list.offset.empty() ? row : list.offset[row];
      const int end = list.offset.empty() ? row + 1 : list.offset[row + 1];
      for (int column = 0; column < columns_; ++column) {
        Value sum{};
        for (int j = begin; j < end; ++j) {
          sum += from[static_cast<std::size_t>(list.from[j]) * columns_ + column];
        }
        Value& target = to[static_cast<std::size_t>(list.to[row]) * columns_ + column];
        target = add ? target + sum : sum;
      }
    }
  }

  std::shared_ptr<const Komvos::ExchangePlan> plan_;
  std::shared_ptr<Komvos::Impl::PrivateComm> comm_;
  Komvos::Impl::TagRange tags_;
  std::unique_ptr<Komvos::Impl::SharedMemoryBuffers> shared_;
  std::vector<Value> outbound_, inbound_;
  std::size_t ownColumns_ = 0;
  std::unique_ptr<Way> directions_[2];  // by index(Direction)
  Direction inFlight_ = Direction::forward;
  int columns_ = 0;
  bool inPlace_ = false;
  Value* sendBuffer_ = nullptr;
  Value* receiveBuffer_ = nullptr;
};

}  // namespace KomvosTest
