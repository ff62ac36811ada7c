/// \file Komvos_UseOfHalo.hpp
/// Counts a use of a halo for its tuner, with its time, whatever is thrown.
#pragma once

#include <chrono>

namespace Komvos::Impl {

/// A forward exchange from selectForward() on, and what it is part of. To be made before. succeeded() ends the use; so
/// does the destructor, but for one that throws while other ranks still wait for it: whoever abandons the exchange ends
/// it then.
/// \tparam Halo NodeAwareImport
template <class Halo>
class UseOfHalo {
 public:
  /// \param counts whether there will be a selectForward() at all
  /// \param othersWait whether other ranks wait for this one
  UseOfHalo(const Halo& halo, bool counts, const bool& othersWait)
      : halo_(halo), othersWait_(othersWait), counts_(counts), timed_(counts && halo.wantsTimes()), start_(now()) {}
  UseOfHalo(const UseOfHalo&) = delete;
  UseOfHalo& operator=(const UseOfHalo&) = delete;
  ~UseOfHalo() {
    if (counts_ && !othersWait_ && !ended_) {
      halo_.discardUse();
    }
  }

  bool isTimed() const { return timed_; }
  /// Calls `work`, whose time another variant might save. If it is never called, all the time counts.
  template <class Work>
  auto exposed(const Work& work) {
    const Clock clock(*this);
    return work();
  }
  /// All is done, by vectors of so many columns.
  void succeeded(int columns) {
    seconds_ = timed_ ? std::chrono::duration<double>(now() - start_).count() : 0;
    ended_ = true;
    if (counts_) {
      halo_.recordUse(seconds_, exposed_ < 0 ? seconds_ : exposed_, columns);
    }
  }
  double seconds() const { return seconds_; }

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Clock {
    UseOfHalo& use;
    Time begin;
    explicit Clock(UseOfHalo& theUse) : use(theUse), begin(theUse.now()) {}
    ~Clock() {
      if (use.timed_) {
        use.exposed_ = (use.exposed_ < 0 ? 0 : use.exposed_) + std::chrono::duration<double>(use.now() - begin).count();
      }
    }
  };
  Time now() const { return timed_ ? std::chrono::steady_clock::now() : Time(); }

  const Halo& halo_;
  const bool& othersWait_;
  bool counts_;
  bool timed_;
  Time start_;
  bool ended_ = false;
  double seconds_ = 0, exposed_ = -1;
};

}  // namespace Komvos::Impl
