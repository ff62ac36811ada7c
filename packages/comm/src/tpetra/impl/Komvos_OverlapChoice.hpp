/// \file Komvos_OverlapChoice.hpp
/// Finds out which overlap makes products fastest on this rank, from the first products themselves.
#pragma once

#include <algorithm>

#include "Komvos_Overlap.hpp"

namespace Komvos::Impl {

/// The first product is not counted: it allocates. Nor are others, where little is to be found. Then the three kinds
/// are timed in turn, in the same order on all ranks, so that a sample of one kind is one of that kind everywhere. One
/// pass over all rows stays unless another kind is clearly faster. Least times are compared: where ranks share cores,
/// the others say more about other ranks.
class OverlapChoice {
 public:
  static constexpr int samples = 5;
  /// Products before others are tried where all messages stay on their node.
  static constexpr int untriedOnNode = 120;
  /// After so many products it is decided, everywhere.
  static constexpr int mostProducts = untriedOnNode + 3 * samples;

  /// \param fixed   the kind to use, or automatic
  /// \param first   what the first products take if it is automatic
  /// \param untried so many, at least 1
  explicit OverlapChoice(Overlap fixed = Overlap::none, Overlap first = Overlap::byNode, int untried = 1)
      : fixed_(fixed), first_(first), untried_(untried) {
    reset();
  }

  /// Begins anew, unless a kind was fixed.
  void reset() {
    overlap_ = fixed_ == Overlap::automatic ? first_ : fixed_;
    decided_ = fixed_ != Overlap::automatic;
    products_ = 0;
  }

  bool decided() const { return decided_; }
  /// Whether the next product is to be timed.
  bool wantsTime() const { return !decided_ && products_ >= untried_; }
  /// For the next product, or for all.
  Overlap overlap() const { return overlap_; }

  /// For a product that is not to be timed here: what was decided, or the first.
  Overlap usual() const { return decided_ ? overlap_ : first_; }

  /// A product with overlap() took so long, if wantsTime(). For each until it is decided.
  void record(double seconds);

 private:
  static constexpr Overlap kinds[] = {Overlap::none, Overlap::interior, Overlap::byNode};
  static constexpr double clearGain = 0.95;  // of the time of one pass

  Overlap fixed_, first_;
  int untried_;
  Overlap overlap_ = Overlap::none;
  bool decided_ = false;
  int products_ = 0;
  double least_[3] = {};
};

inline void OverlapChoice::record(double seconds) {
  const int sample = products_ - untried_;
  ++products_;
  if (sample >= 0) {
    double& least = least_[static_cast<int>(overlap_)];
    least = sample < 3 ? seconds : std::min(least, seconds);
  }
  const int next = sample + 1;
  if (next < 3 * samples) {
    overlap_ = next < 0 ? first_ : kinds[next % 3];
    return;
  }
  overlap_ = Overlap::none;
  double best = clearGain * least_[static_cast<int>(Overlap::none)];
  for (const Overlap kind : {Overlap::interior, Overlap::byNode}) {
    if (least_[static_cast<int>(kind)] < best) {
      best = least_[static_cast<int>(kind)];
      overlap_ = kind;
    }
  }
  decided_ = true;
}

}  // namespace Komvos::Impl
