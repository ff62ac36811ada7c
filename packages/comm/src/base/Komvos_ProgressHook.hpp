/// \file Komvos_ProgressHook.hpp
/// Work that shall go on while an exchange waits for messages, and while rows are multiplied.
#pragma once

#include <functional>

namespace Komvos::Impl {

/// While it lives, and is switched on, exchanges call it again and again instead of blocking in MPI, and products with
/// an exchange call it between their rows, from beginning to end. For a reduction that travels behind a product: MPI
/// alone does not know that its next part can start. To be used by the thread that calls MPI. What it calls must not
/// start or wait for an exchange.
class ProgressHook {
 public:
  explicit ProgressHook(std::function<void()> work);
  ~ProgressHook();
  ProgressHook(const ProgressHook&) = delete;
  ProgressHook& operator=(const ProgressHook&) = delete;

  void switchOn(bool on);

  /// Whether any is switched on.
  static bool any();
  static void runAll();

 private:
  std::function<void()> work_;
  bool on_ = false;
};

}  // namespace Komvos::Impl
