/// \file interior_points.hpp
/// Points inside of bodies, and the potential of a double layer there.
#pragma once

#include <vector>

#include "Komvos_TriangleMesh.hpp"

namespace Komvos::Program {

/// The solid angle of a triangle seen from a point; positive where its normal points away from the point (A. van
/// Oosterom and J. Strackee, IEEE Trans. Biomed. Eng. 30, 1983).
double solidAngle(const Point3& from, const Point3& a, const Point3& b, const Point3& c);

/// About `count` points, spread over the bodies, each farther from every centroid of its body than a tenth of the
/// diagonal of the box around it, where there are such. For closed bodies whose triangles face outwards.
std::vector<Point3> interiorPoints(const TriangleMesh& mesh, int count);

}  // namespace Komvos::Program
