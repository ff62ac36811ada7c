/// \file Komvos_TagPool.hpp
/// Message tags of one communicator: taken, given back, and used again.
#pragma once

#include <mpi.h>

#include <map>
#include <memory>
#include <vector>

namespace Komvos::Impl {

/// Consecutive tags that belong to its owner. They are given back when the last copy is destroyed; by then this rank
/// must have completed every message that uses them.
class TagRange {
 public:
  int first() const { return *first_; }

 private:
  friend class TagPool;
  explicit TagRange(int first) : first_(std::make_shared<const int>(first)) {}
  std::shared_ptr<const int> first_;  // the pool observes when it goes
};

/// Hands out the tags of a communicator, the same ones on all ranks.
///
/// All ranks take tags in the same order, but each gives them back when it likes. So no rank knows by itself when a
/// range may be used again. The pool hands out tags that are known to be free on all ranks, without communication;
/// when they run out, one reduction finds the ranges that every rank has given back. Then every rank has completed its
/// messages with these tags, so none is left that a new owner could receive.
class TagPool {
 public:
  /// Hands out tags `first` to `last`.
  TagPool(int first, int last);

  /// \note Collective on `comm`, always the same one. Communicates only when no free range is long enough.
  /// \throws Error on all ranks if there is none after that either
  TagRange take(MPI_Comm comm, int count);

 private:
  using Intervals = std::map<int, int>;  // first tag -> number of tags
  struct Issued {
    int first;
    int count;
    std::weak_ptr<const int> owner;
  };

  Intervals::iterator findFree(int count);
  void reclaim(MPI_Comm comm);

  // Both are the same on all ranks, except for the owners that are still alive.
  Intervals free_;
  std::vector<Issued> issued_;
  int first_;
  int last_;
};

}  // namespace Komvos::Impl
