/// \file Komvos_BlasThreads.cpp
#include "Komvos_BlasThreads.hpp"

#include <dlfcn.h>

namespace Komvos::Impl {

bool threadsMayCallBlas(std::optional<int> parallel, std::string_view config) {
  return !parallel.has_value() || *parallel != 0 || config.find("USE_LOCKING") != std::string_view::npos;
}

bool threadsMayCallBlas() {
  // Which BLAS is in use is known when the program runs, not when it is linked.
  static const bool answer = [] {
    std::optional<int> parallel;
    std::string_view config;
    if (void* const function = dlsym(RTLD_DEFAULT, "openblas_get_parallel"); function != nullptr) {
      parallel = reinterpret_cast<int (*)()>(function)();
    }
    if (void* const function = dlsym(RTLD_DEFAULT, "openblas_get_config"); function != nullptr) {
      config = reinterpret_cast<const char* (*)()>(function)();
    }
    return threadsMayCallBlas(parallel, config);
  }();
  return answer;
}

}  // namespace Komvos::Impl
