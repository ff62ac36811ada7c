/// \file Komvos_Pairing.hpp
/// Which processes of a node carry its traffic with other nodes, as a value and as text.
#pragma once

#include <string>

namespace Komvos {

/// How the nodes a node talks to are spread over its processes.
enum class Pairing {
  /// Section 4.1 of Bienz, Gropp and Olson: nodes by falling volume |E(n,m)| go to local processes 0, 1, 2, ...
  /// cyclically for sending, and to ppn-1, ppn-2, ... for receiving. Ties: lower node first. The default.
  byVolume,
  /// Nodes by falling volume go to the local process with the least volume so far (ties: as in byVolume, the lowest
  /// for sending, the highest for receiving). Balances values where byVolume balances messages.
  leastLoaded,
  /// The process that owns most of E(n,m) sends it, the one that needs most of it receives it (ties: lowest, highest
  /// local process): the least on-node traffic, named at the end of section 4.1.
  majority,
};

/// \throws BadInput unless `text` is one of "by-volume", "least-loaded", "majority".
Pairing parsePairing(const std::string& text);
std::string toString(Pairing pairing);

}  // namespace Komvos
