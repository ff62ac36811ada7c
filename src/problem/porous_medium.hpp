/// \file porous_medium.hpp
/// Hydraulic conductivity of a heterogeneous medium, for the groundwater problem.
#pragma once

#include <array>
#include <complex>
#include <vector>

#include "Komvos_TpetraShim.hpp"

namespace Komvos::Program {

/// A random field on the cells of a box, which anyone can evaluate anywhere: the same on any number of ranks.
///
/// Its logarithm is uniformly distributed: conductivity lies between 1e-5 and 1e5, as Fujii and Marques have it, each
/// power of ten taking about a tenth of the cells. It is a sum of plane waves with random directions and phases, which is about
/// normally distributed, mapped to the uniform distribution. Waves are between one and an eighth of the shortest
/// edge long, so that a cell is like its neighbours, but layers of very different conductivity meet within some cells.
class PorousMedium {
 public:
  /// \param size cells in each direction
  explicit PorousMedium(const std::array<DefaultGlobalOrdinal, 3>& size);

  /// At the centre of cell (i, j, k).
  double conductivity(DefaultGlobalOrdinal i, DefaultGlobalOrdinal j, DefaultGlobalOrdinal k) const;

 private:
  static constexpr int numWaves = 32;
  /// exp(i w x) of each wave, for each index in one direction. A phase is in the first.
  std::array<std::vector<std::complex<double>>, 3> waves_;
};

}  // namespace Komvos::Program
