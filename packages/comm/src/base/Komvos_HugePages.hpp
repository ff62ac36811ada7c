/// \file Komvos_HugePages.hpp
/// Large pages for arrays that are read in no order.
#pragma once

#include <cstddef>

namespace Komvos::Impl {

/// Asks the system for large pages, where it gives them to those who ask (Linux, transparent huge pages "madvise").
/// Reads in no order of more than some megabytes then find the addresses of their pages in the processor's cache of
/// them (TLB). To be called before the memory is first written to.
void adviseHugePages(void* data, std::size_t bytes);

}  // namespace Komvos::Impl
