/// \file mistakes.hpp
/// What one rank may get wrong when a halo is planned.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "Komvos_NodeTopology.hpp"
#include "Komvos_Pattern.hpp"

namespace KomvosTest {

using Komvos::NodeTopology;
using Komvos::Pattern;

/// A mistake, with some words of the error it must cause everywhere.
struct Mistake {
  std::string name;
  std::string words;
  std::function<void(Pattern&, NodeTopology&)> make;
};

inline std::vector<Mistake> mistakes() {
  return {
      {"a value that is needed is not sent", "is needed", [](Pattern& p, NodeTopology&) { p.sends.pop_back(); }},
      {"nothing is sent", "", [](Pattern& p, NodeTopology&) { p.sends.clear(); }},
      {"nothing is expected", "", [](Pattern& p, NodeTopology&) { p.receives.clear(); }},
      {"a value is not expected", "are needed",
       [](Pattern& p, NodeTopology&) { p.receives.erase(p.receives.begin()); }},
      {"a value that does not exist is expected", "value 77 of rank",
       [](Pattern& p, NodeTopology&) { p.receives.back().value.local = 77; }},
      {"an owned value out of range", "sends owned value 99 of",
       [](Pattern& p, NodeTopology&) { p.sends.back().local = 99; }},
      {"a destination out of range", "sends to rank 99 of",
       [](Pattern& p, NodeTopology&) { p.sends.back().destination = 99; }},
      {"a target out of range", "fills target 999 of",
       [](Pattern& p, NodeTopology&) { p.receives.back().target = 999; }},
      {"the pattern of another rank", "not those of the ranks at hand", [](Pattern& p, NodeTopology&) { p.rank = 77; }},
      {"a topology of another size", "the topology has 77 ranks",
       [](Pattern&, NodeTopology& t) { t = NodeTopology::uniform(77, 2); }},
  };
}

}  // namespace KomvosTest
