/// \file Komvos_Pattern.hpp
/// What must move in a halo exchange, as one rank sees it.
#pragma once

#include <vector>

namespace Komvos {

/// A value, named by the rank that owns it and that rank's local index. Global ids never enter: they may be 64 bits
/// wide, and two processes may number the same entry differently.
struct ValueId {
  int owner;
  int local;

  friend bool operator==(const ValueId& a, const ValueId& b) { return a.owner == b.owner && a.local == b.local; }
  friend bool operator!=(const ValueId& a, const ValueId& b) { return !(a == b); }
  friend bool operator<(const ValueId& a, const ValueId& b) {
    return a.owner != b.owner ? a.owner < b.owner : a.local < b.local;
  }
};

/// The pattern of one halo exchange on one rank: D(r,t) of Bienz, Gropp and Olson, eq. (8) and (9), for this r, and
/// what arrives here.
struct Pattern {
  /// An owned value that `destination` needs.
  struct Send {
    int destination;
    int local;  ///< index into this rank's owned values
  };
  /// A value that this rank needs.
  struct Receive {
    ValueId value;
    int target;  ///< index into this rank's target vector where it ends up
  };

  int rank = 0;
  int numOwned = 0;   ///< length of the owned (source) vector here
  int numTarget = 0;  ///< length of the target vector here
  std::vector<Send> sends;
  std::vector<Receive> receives;

  /// Sorts by destination then local, and by value then target; a value is sent to a destination once.
  void normalize();

  /// \throws BadInput with rank and numbers, if an index is out of range, a rank sends to itself, two receives
  /// share a target, or the lists are not as normalize() leaves them.
  void check(int numRanks) const;
};

}  // namespace Komvos
