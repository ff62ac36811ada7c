/// \file Komvos_Reduction.hpp
/// Maxima, minima and sums over all ranks, in one collective operation.
#pragma once

#include <cstdint>
#include <vector>

namespace Komvos::Impl {

class PrivateComm;

/// Numbers of different kinds that are reduced together. Name each, on all ranks in the same order, then run(), which
/// replaces them by their results; until then they must stay where they are.
class Reduction {
 public:
  void maximum(std::uint64_t& number) { add(maxima_, number); }
  void maximum(long& number) { add(maxima_, number); }    ///< \param number not negative
  void maximum(double& number) { add(maxima_, number); }  ///< \param number not negative
  void minimum(std::uint64_t& number) { add(minima_, number); }
  void minimum(double& number) { add(minima_, number); }   ///< \param number not negative
  void sum(std::uint64_t& number) { add(sums_, number); }  ///< modulo 2^64
  void sum(long& number) { add(sums_, number); }

  /// \note Collective: one MPI_Allreduce.
  void run(PrivateComm& comm);

 private:
  template <class Number>
  static void add(std::vector<void*>& list, Number& number) {
    static_assert(sizeof(Number) == sizeof(std::uint64_t));
    list.push_back(&number);
  }

  std::vector<void*> maxima_, minima_, sums_;
};

}  // namespace Komvos::Impl
