/// \file Komvos_MachineFit.hpp
/// Parameters of a machine from measured times. Pure functions: points in, parameters out.
#pragma once

#include <optional>
#include <vector>

#include "Komvos_MachineModel.hpp"

namespace Komvos {

/// Latency and rate of each protocol by linear least squares over the sizes of its range, weighted so that relative
/// errors count. A protocol for larger messages starts no faster than one for smaller ones, and none in less than half
/// the time of the fastest message; a rate comes out infinite where larger messages are not slower.
/// \param measured one pair; sizes ascending
/// \param limits   where the protocol changes; if empty, the pair of measured sizes that fits best, with at least
///                 three sizes for each protocol
/// \throws BadInput if a protocol has less than two sizes, or, without limits, there are less than nine in all
OnNodeModel fitOnNode(const MeasuredSeries& measured, const std::optional<ProtocolLimits>& limits = {});

/// As fitOnNode from the series of one pair; then, with these parameters kept, B_inj and B_N of equation (10) from the
/// series of more pairs, again by least squares of relative errors. Where more pairs start later, as on cores that they
/// share, (10) cannot follow: that delay enters no rate.
/// \param measured one series of one pair, and any of more pairs over the same sizes
/// \throws BadInput as fitOnNode, or if there is no series of one pair
OffNodeModel fitOffNode(const std::vector<MeasuredSeries>& measured, const std::optional<ProtocolLimits>& limits = {});

}  // namespace Komvos
