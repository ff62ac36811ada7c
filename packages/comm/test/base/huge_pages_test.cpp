// What the system is asked for, as it says itself (Linux).
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <memory>
#include <sstream>
#include <string>

#include "Komvos_HugePages.hpp"

namespace {

constexpr std::size_t huge = std::size_t{1} << 21;

/// The flags of the mapping that holds an address, from /proc/self/smaps.
std::string flagsOf(const void* address) {
  std::ifstream smaps("/proc/self/smaps");
  bool isThere = false;
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream words(line);
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    if (words >> std::hex >> begin >> dash >> end && dash == '-') {
      const auto wanted = reinterpret_cast<std::uintptr_t>(address);
      isThere = begin <= wanted && wanted < end;
    } else if (isThere && line.rfind("VmFlags:", 0) == 0) {
      return line + " ";
    }
  }
  return {};
}

struct Free {
  void operator()(char* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<char, Free>;
Memory allocated(std::size_t bytes) { return Memory(static_cast<char*>(std::aligned_alloc(huge, bytes))); }

TEST(HugePages, AreAskedForWhereAnArrayHoldsWholeOnes) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled")) {
    GTEST_SKIP() << "this system has none";
  }
  const Memory memory = allocated(8 * huge);
  if (flagsOf(memory.get()).empty()) {
    GTEST_SKIP() << "this system does not say what it was asked for";
  }
  Komvos::Impl::adviseHugePages(memory.get() + 64, 4 * huge);
  EXPECT_EQ(std::string::npos, flagsOf(memory.get()).find(" hg ")) << "begins within this one";
  EXPECT_NE(std::string::npos, flagsOf(memory.get() + huge).find(" hg "));
  EXPECT_NE(std::string::npos, flagsOf(memory.get() + 3 * huge).find(" hg "));
  EXPECT_EQ(std::string::npos, flagsOf(memory.get() + 4 * huge).find(" hg ")) << "ends within this one";
}

TEST(HugePages, AreNoMatterForSmallArrays) {
  const Memory memory = allocated(2 * huge);
  Komvos::Impl::adviseHugePages(memory.get() + 64, huge);
  EXPECT_EQ(std::string::npos, flagsOf(memory.get()).find(" hg "));
  EXPECT_EQ(std::string::npos, flagsOf(memory.get() + huge).find(" hg "));
  Komvos::Impl::adviseHugePages(nullptr, 0);
}

}  // namespace
