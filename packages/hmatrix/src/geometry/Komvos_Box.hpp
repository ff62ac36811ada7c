/// \file Komvos_Box.hpp
/// Boxes with sides along the axes.
#pragma once

#include "Komvos_Point3.hpp"

namespace Komvos {

/// A box with sides along the axes.
struct Box {
  Point3 least, most;

  double diameter() const { return norm(most - least); }
};

/// The smallest box around both.
Box enclosing(const Box& a, const Box& b);
/// Between the nearest points of both; 0 where they meet.
double distance(const Box& a, const Box& b);

}  // namespace Komvos
