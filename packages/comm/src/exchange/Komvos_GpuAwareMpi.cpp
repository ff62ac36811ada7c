#include "Komvos_GpuAwareMpi.hpp"

#include <Tpetra_Details_Behavior.hpp>
#include <optional>

#include "Komvos_Settings.hpp"

namespace Komvos {

namespace {

/// Older releases of Trilinos have another name for it; the int makes the new name win where both exist.
template <class Behavior>
auto tpetraAssumes(int) -> decltype(Behavior::assumeMpiIsGPUAware()) {
  return Behavior::assumeMpiIsGPUAware();
}
template <class Behavior>
auto tpetraAssumes(long) -> decltype(Behavior::assumeMpiIsCudaAware()) {
  return Behavior::assumeMpiIsCudaAware();
}

}  // namespace

bool gpuAwareMpi() {
  const std::optional<bool> given = readSettings().gpuAwareMpi;
  return given.has_value() ? *given : tpetraAssumes<Tpetra::Details::Behavior>(0);
}

}  // namespace Komvos
