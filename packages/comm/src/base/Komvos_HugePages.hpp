/// \file Komvos_HugePages.hpp
/// Large pages for arrays that are read in no order.
#pragma once

#include <cstddef>

namespace Komvos::Impl {

/// Asks the system to back an array by large pages (Linux: madvise, MADV_HUGEPAGE; elsewhere it does nothing). An array
/// of megabytes that is read in no order then misses the TLB less often. To be called before the memory is first
/// written to; only pages that lie within the array as a whole are asked for.
/// \param bytes of the array
void adviseHugePages(void* data, std::size_t bytes);

}  // namespace Komvos::Impl
