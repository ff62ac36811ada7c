#include "support/text_format.hpp"

#include <cstdarg>
#include <cstdio>

namespace Komvos::Program {

std::string format(const char* pattern, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof(text), pattern, arguments);
  va_end(arguments);
  return text;
}

}  // namespace Komvos::Program
