#include "Komvos_HugePages.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cstdint>

namespace Komvos::Impl {

void adviseHugePages([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#if defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t size = std::uintptr_t{1} << 21;  // bytes of a large page, on x86 and mostly on others
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t begin = (address + size - 1) / size * size;
  const std::uintptr_t end = (address + bytes) / size * size;
  if (begin < end) {
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);  // a wish: refusal does no harm
  }
#endif
}

}  // namespace Komvos::Impl
