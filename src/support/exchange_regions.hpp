/// \file exchange_regions.hpp
/// Time spent in exchanges, Tpetra's and ours.
#pragma once

#include <functional>

namespace Komvos::Program {

/// Hears of every exchange of this process while it lives. Exchanges are regions of Kokkos' profiling interface; one is
/// the time between the first that begins and the one that ends last. Kokkos' callbacks have no argument: one object at
/// a time.
class ExchangeRegions {
 public:
  /// \param ended called with the seconds of each exchange, as it ends
  explicit ExchangeRegions(std::function<void(double)> ended);
  ~ExchangeRegions();
  ExchangeRegions(const ExchangeRegions&) = delete;
  ExchangeRegions& operator=(const ExchangeRegions&) = delete;

 private:
  static void push(const char* name);
  static void pop();

  static ExchangeRegions* active_;
  std::function<void(double)> ended_;
  int depth_ = 0;
  int depthOfExchange_ = 0;
  double begin_ = 0;
};

}  // namespace Komvos::Program
