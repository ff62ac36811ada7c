/// \file Komvos_PrivateComm.hpp
/// A duplicate of the user's communicator, so that messages of the library and of the user cannot match.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <typeindex>
#include <unordered_map>

#include "Komvos_TagPool.hpp"

namespace Komvos::Impl {

/// A duplicate of a communicator, and the tags handed out on it. MPI errors are returned, not fatal.
///
/// One duplicate is made per user communicator and found again through an MPI attribute: thousands of exchanges
/// cost one MPI_Comm_dup. It is freed after the user's communicator and the last exchange on any rank, at the next
/// point that all its ranks reach together (freeAbandoned()), at the latest in MPI_Finalize. So a rank that frees its
/// communicator or destroys an exchange waits for nobody.
class PrivateComm : public std::enable_shared_from_this<PrivateComm> {
 public:
  /// The duplicate that belongs to `parent`. A duplicate belongs to itself: what is made later can be made on get(),
  /// when the user may have freed `parent`.
  /// \note Collective on `parent` the first time, and calls freeAbandoned() then.
  static std::shared_ptr<PrivateComm> of(MPI_Comm parent);

  /// \note Collective. The registry of all instances is the last owner.
  ~PrivateComm();
  PrivateComm(const PrivateComm&) = delete;
  PrivateComm& operator=(const PrivateComm&) = delete;

  /// Whether the user has freed the communicator of some duplicate on this rank. Then it is worth asking the others.
  static bool someAreAbandoned();

  /// Frees the duplicates that are needed no more: on each of their ranks the user's communicator is freed and no
  /// exchange left, and all their ranks are ranks of this one.
  /// \note Collective on this one. Every rank receives a number from each other, and 8 bytes for each duplicate that
  /// one has to free.
  void freeAbandoned();

  MPI_Comm get() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  /// `count` tags of the caller's own, for as long as it keeps the range.
  /// \note Collective; communicates rarely, see TagPool. \throws Error on all ranks if too few tags are free
  TagRange takeTags(int count) { return tags_.take(comm_, count); }

  /// The tag of the next round of non-blocking consensus (MpiSetupTransport): two tags in turn. A rank that has left
  /// round n may send for round n + 1 to one that still receives for round n, so these must differ. None starts round
  /// n + 2 before all have left round n, for the barrier of round n + 1 lies in between.
  /// \note All ranks must ask in the same order; it does not communicate.
  int nextSetupTag() { return setupTag_ = setupTag_ == 1 ? 2 : 1; }

  /// The tag of set-up messages whose receivers know the senders. Nobody receives these from any source.
  static constexpr int knownSetupTag = 3;

  /// The one T that belongs to this communicator: what layers above this one keep with it. Made by `make()`, which
  /// returns a std::shared_ptr<T>, when it is first asked for; destroyed on all ranks together, before the communicator
  /// is freed.
  /// \note Collective the first time, if `make` is.
  template <class T, class Make>
  T& attached(const Make& make) {
    std::shared_ptr<void>& found = attached_[typeid(T)];
    if (!found) {
      const std::shared_ptr<T> made = make();
      found = made;
    }
    return *static_cast<T*>(found.get());
  }

 private:
  explicit PrivateComm(MPI_Comm parent);
  static int onParentFreed(MPI_Comm parent, int key, void* value, void* extra);

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 0;
  std::uint64_t name_ = 0;  // the same on all its ranks, and another than that of every other duplicate
  bool abandoned_ = false;  // on this rank the user's communicator is freed
  int setupTag_ = 1;
  TagPool tags_;
  std::unordered_map<std::type_index, std::shared_ptr<void>> attached_;
};

}  // namespace Komvos::Impl
