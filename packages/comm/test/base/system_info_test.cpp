// What measurements say of the machine.
#include <gtest/gtest.h>

#include <regex>
#include <sstream>
#include <string>

#include "Komvos_SystemInfo.hpp"

namespace {

TEST(SystemInfo, NamesTheMpiLibraryInAFewWordsWithItsVersion) {
  const std::string name = Komvos::Impl::mpiLibraryName();
  EXPECT_TRUE(std::regex_match(name, std::regex("[A-Za-z() ]+ v?[0-9]+[.][0-9a-z.]+"))) << '"' << name << '"';
}

TEST(SystemInfo, NamesTheProcessorOnAnyArchitecture) {
  const auto nameIn = [](const char* text) {
    std::istringstream cpuinfo(text);
    return Komvos::Impl::processorNameIn(cpuinfo);
  };
  EXPECT_EQ("AMD EPYC",
            nameIn("processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel name\t: AMD EPYC\n"));
  EXPECT_EQ(
      "POWER9, altivec supported",
      nameIn("processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 2300.000000MHz\n\nplatform\t: PowerNV\n"));
  EXPECT_EQ("ARM implementer 0x41, part 0xd0c",
            nameIn("processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\nCPU architecture: 8\n"
                   "CPU part\t: 0xd0c\n\nprocessor\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"));
  EXPECT_EQ("unknown processor", nameIn(""));
}

}  // namespace
