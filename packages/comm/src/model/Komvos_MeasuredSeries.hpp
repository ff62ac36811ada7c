/// \file Komvos_MeasuredSeries.hpp
/// Measured times of messages, to which the parameters of a machine are fitted.
#pragma once

#include <vector>

namespace Komvos {

/// One-way times of messages of several sizes.
struct MeasuredSeries {
  struct Point {
    long bytes;
    double seconds;
  };
  bool onNode;  ///< between ranks of one node; else between two nodes
  int pairs;    ///< pairs of ranks that exchanged messages at the same time, between the same two nodes
  std::vector<Point> points;
};

}  // namespace Komvos
