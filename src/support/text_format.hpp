/// \file text_format.hpp
/// printf into a string.
#pragma once

#include <string>

namespace Komvos::Program {

/// At most 1,023 characters.
std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

}  // namespace Komvos::Program
