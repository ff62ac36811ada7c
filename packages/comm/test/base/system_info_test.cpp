// What measurements say of the machine.
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "Komvos_SystemInfo.hpp"

namespace {

TEST(SystemInfo, NamesTheMpiLibraryInAFewWordsWithItsVersion) {
  const std::string name = Komvos::Impl::mpiLibraryName();
  EXPECT_TRUE(std::regex_match(name, std::regex("[A-Za-z() ]+ v?[0-9]+[.][0-9a-z.]+"))) << '"' << name << '"';
}

}  // namespace
