/// \file Komvos_MachineModel.hpp
/// What one message costs on a machine.
///
/// Equations and the numbers of Blue Waters are those of A. Bienz, W. Gropp, L. Olson, "Node aware sparse
/// matrix-vector multiplication", section 3. Latencies are seconds, rates bytes per second, sizes bytes.
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "Komvos_MeasuredSeries.hpp"

namespace Komvos {

/// How MPI sends a message, by its size: inside its envelope, at once into the receiver's buffer, or when the receiver
/// says that it is ready.
enum class Protocol { shortMessage, eager, rendezvous };
constexpr int numProtocols = 3;

/// The sizes at which the protocol changes.
struct ProtocolLimits {
  long shortMax;  ///< the largest short message
  long eagerMax;  ///< the largest eager message; larger ones take rendezvous
  Protocol of(long bytes) const;
};

/// Messages between ranks of one node.
struct OnNodeModel {
  struct Parameters {
    double latency;  ///< alpha_l
    double rate;     ///< B_max,l; infinite where the size does not count
  };
  ProtocolLimits limits;
  std::array<Parameters, numProtocols> parameters;  ///< by Protocol

  const Parameters& of(Protocol protocol) const { return parameters[static_cast<int>(protocol)]; }
  /// alpha_l + s / B_max,l, equation (12).
  double time(long bytes) const;
};

/// Messages between ranks of different nodes.
struct OffNodeModel {
  struct Parameters {
    double latency;    ///< alpha
    double rate;       ///< B_max, of one sender alone; infinite where the size does not count
    double addedRate;  ///< B_inj, what each further sender of the node adds; may be negative, at most `rate`
    double nodeRate = std::numeric_limits<double>::infinity();  ///< B_N, what the node's network card can do
  };
  ProtocolLimits limits;
  std::array<Parameters, numProtocols> parameters;  ///< by Protocol
  /// The most senders of one node that were measured. Beyond this count the joint rate stays constant.
  int measuredSenders;

  const Parameters& of(Protocol protocol) const { return parameters[static_cast<int>(protocol)]; }
  /// min(B_N, B_max + (senders - 1) B_inj): what `senders` ranks of a node send together, the denominator of (10).
  double jointRate(Protocol protocol, int senders) const;
  /// alpha + s / B_max, equation (11).
  double time(long bytes) const;
  /// alpha + ppn s / min(B_N, B_max + (ppn - 1) B_inj), equation (10): `senders` ranks of a node send a message of
  /// `bytes` each. Equal to (11) for one sender.
  double time(long bytes, int senders) const;
};

/// A machine. Plain data.
struct MachineModel {
  std::string name;
  std::string date;  ///< of the measurement, as 2026-11-21
  std::string host;  ///< for people: processor, network, MPI library
  OnNodeModel onNode;
  std::optional<OffNodeModel> offNode;   ///< empty if there was one node only
  std::vector<MeasuredSeries> measured;  ///< what the parameters were fitted to; may be empty

  /// \throws BadInput naming the machine, if it has no parameters for messages between nodes.
  const OffNodeModel& needOffNode() const;
};

/// Blue Waters, a Cray XE with 16 cores a node: tables 3 and 4 of the paper. The heads of B_inj and B_max are swapped
/// there, see (10); the sizes where the protocol changes are not printed, these are the ones of its MPI library.
MachineModel blueWaters();

}  // namespace Komvos
