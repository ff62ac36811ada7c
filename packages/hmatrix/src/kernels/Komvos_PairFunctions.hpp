/// \file Komvos_PairFunctions.hpp
/// Far entries of many pairs of a point and a triangle, by the widest vectors that this CPU has.
#pragma once

#include <cstdint>

#include "Komvos_BoundaryEntry.hpp"

namespace Komvos::Impl {

/// Up to `most` pairs. What is the same for all of them is given once: its step is 0, and it is repeated `widest`
/// times.
struct PairChunk {
  static constexpr int most = 64, widest = 8;
  /// Fields of a triangle; each Point3 takes three.
  enum Field { Centroid = 0, Edge1 = 3, Edge2 = 6, Normal = 9, Area = 12, Limits = 13, NumFields = 19 };

  int count = 0;  ///< a multiple of `widest`
  int positionStep = 1, triangleStep = 1;
  double kappa = 0;
  alignas(64) double position[3][most];
  alignas(64) double triangle[NumFields][most];
  /// Of real parts, then of imaginary ones, if there are any. Undefined in near places.
  alignas(64) double out[2][most];
  std::uint64_t nearPlaces = 0;  ///< a bit for each pair: 1 where no rule is good enough

  bool isNear(int place) const { return (nearPlaces >> place & 1) != 0; }

  PairChunk() {}  // NOLINT: 11 kB that are written before they are read
  void setPosition(int place, const Point3& x) {
    position[0][place] = x.x, position[1][place] = x.y, position[2][place] = x.z;
  }
  void setTriangle(int place, const BoundaryTriangle& t) {
    const Point3* const vectors[] = {&t.centroid, &t.edge1, &t.edge2, &t.normal};
    for (int v = 0; v < 4; ++v) {
      triangle[3 * v][place] = vectors[v]->x;
      triangle[3 * v + 1][place] = vectors[v]->y;
      triangle[3 * v + 2][place] = vectors[v]->z;
    }
    triangle[Area][place] = t.area;
    for (int k = 0; k < numTriangleRules; ++k) {
      triangle[Limits + k][place] = t.squaredLimit[k];
    }
  }
};

/// Fills `out` and `nearPlaces`. Each pair gets the same bits whatever its place and its neighbours are.
using PairFunction = void (*)(PairChunk& chunk, const RuleTable& rules);

/// \return nullptr where there is none for this compiler
PairFunction pairFunction(const SingleLayerForm&);
PairFunction pairFunction(const DoubleLayerForm&);
PairFunction pairFunction(const YukawaForm&);
PairFunction pairFunction(const HelmholtzForm&);
/// Of 1 / distance, without 1 / (4 pi), between positions and centroids; near places are where the distance is 0.
PairFunction distancePairFunction();

}  // namespace Komvos::Impl
