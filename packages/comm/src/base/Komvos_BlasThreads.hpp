/// \file Komvos_BlasThreads.hpp
/// Whether several threads may call the BLAS at the same time.
#pragma once

#include <optional>
#include <string_view>

namespace Komvos::Impl {

/// False for an OpenBLAS built without threads and without locks (Debian's libopenblas0-serial): its work space is then
/// shared by all callers, and results of simultaneous calls are wrong. True for every other BLAS.
bool threadsMayCallBlas();

/// The rule. parallel: openblas_get_parallel() (0: built without threads), nothing for another BLAS; config:
/// openblas_get_config().
bool threadsMayCallBlas(std::optional<int> parallel, std::string_view config);

}  // namespace Komvos::Impl
