/// \file Komvos_TriangleIntegrals.hpp
/// Exact integrals over flat triangles, on the host and on devices.
///
/// With x the point, d its distance from the plane, and for each edge, counter-clockwise: t the distance of the edge's
/// line from the projection of x in the plane, positive if that is on the inner side; l- and l+ where the edge begins
/// and ends, measured along it from the projection of x; r- and r+ the distances of its ends from x; R0^2 = t^2 + d^2:
///
///     integral of 1/r = sum over edges of t f - |d| Omega,   f = integral over the edge of 1/r
///
/// (D. R. Wilton et al., 1984; R. D. Graglia, 1993). Omega is the solid angle (A. van Oosterom and J. Strackee, 1983).
/// Integrals of r^n follow from those of r^(n-2) by the divergence theorem and by parts:
///
///     (n + 1) J_n = [l r^n] + n R0^2 J_(n-2)    over an edge
///     (n + 2) I_n = sum t J_n + n d^2 I_(n-2)   over the triangle
///
/// Rounding: a few 1e-15 (h + |x - centroid|) h / area, relative, where h is the largest distance of a corner from the
/// centroid. A triangle of almost no height has no better area either, for its corners are rounded too.
#pragma once

#include <Kokkos_Macros.hpp>
#include <cmath>

#include "Komvos_Point3.hpp"

namespace Komvos {

/// A flat triangle. Corners are counter-clockwise as seen from where the normal, of unit length, points to.
struct FlatTriangle {
  Point3 corner[3];
  Point3 normal;
  double area = 0;
};

namespace Impl {

/// What the integrals need of one edge, and the integral of 1 / r along it.
struct EdgeIntegral {
  double t = 0;                  ///< as above
  double begin = 0, end = 0;     ///< l-, l+
  double rBegin = 0, rEnd = 0;   ///< r-, r+
  double length = 0;             ///< end - begin
  double squaredDistance = 0;    ///< R0^2: of x from the edge's line
  double ofOneOverDistance = 0;  ///< f; 0 where x is on the edge, for it is multiplied by t there
};

/// \param a, b the ends, as seen from x \param height of x above the plane, of either sign
KOKKOS_INLINE_FUNCTION EdgeIntegral edgeIntegral(const Point3& a, const Point3& b, const Point3& normal,
                                                 double height) {
  EdgeIntegral e;
  e.length = norm(b - a);
  const Point3 along = (1 / e.length) * (b - a);
  e.t = dot(a, cross(along, normal));
  e.begin = dot(a, along);
  e.end = dot(b, along);
  e.rBegin = norm(a);
  e.rEnd = norm(b);
  e.squaredDistance = e.t * e.t + height * height;
  // f = log((r+ + r- + L) / (r+ + r- - L)) = log1p(2 L / g), g = r+ + r- - L = (r- + l-) + (r+ - l+), and no term of g
  // may be a difference of almost equal numbers: r - l = R0^2 / (r + l)
  const double g = (e.begin < 0 ? e.squaredDistance / (e.rBegin - e.begin) : e.rBegin + e.begin) +
                   (e.end > 0 ? e.squaredDistance / (e.rEnd + e.end) : e.rEnd - e.end);
  e.ofOneOverDistance = g > 1e-200 * e.length ? std::log1p(2 * e.length / g) : 0;
  return e;
}

/// The solid angle, of no sign, as the sum over edges of the angles of (R0^2 + |d| r+ + i t l+) and (R0^2 + |d| r- - i
/// t l-) (R. D. Graglia, 1993): the angle of their product.
/// \param a, b, c the corners, as seen from x
KOKKOS_INLINE_FUNCTION double solidAngleByEdges(const Point3& a, const Point3& b, const Point3& c, const Point3& normal,
                                                double height) {
  const Point3* const corners[] = {&a, &b, &c, &a};
  const double d = std::fabs(height);
  double real = 1, imaginary = 0;
  bool isInside = true;
  double farthest = 0;
  for (int k = 0; k < 3; ++k) {
    const EdgeIntegral e = edgeIntegral(*corners[k], *corners[k + 1], normal, height);
    const double scale = 1 / (e.length * e.length);
    const double realEnd = scale * (e.squaredDistance + d * e.rEnd), imaginaryEnd = scale * e.t * e.end;
    const double realBegin = scale * (e.squaredDistance + d * e.rBegin), imaginaryBegin = -scale * e.t * e.begin;
    const double re = realEnd * realBegin - imaginaryEnd * imaginaryBegin;
    const double im = realEnd * imaginaryBegin + imaginaryEnd * realBegin;
    const double previous = real;
    real = real * re - imaginary * im;
    imaginary = previous * im + imaginary * re;
    isInside = isInside && e.t > 0;
    farthest = farthest > e.rBegin ? farthest : e.rBegin;
  }
  // In [0, 2 pi]; beyond pi only if the projection of x is inside, and close to 2 pi only close to the plane. Elsewhere
  // a negative angle is rounding.
  const double angle = std::atan2(imaginary, real);
  const bool isBeyondPi = angle < -1 || (angle < 0 && isInside && d < 0.1 * farthest);
  return isBeyondPi ? angle + 6.28318530717958648 : angle;
}

}  // namespace Impl

/// The integral of n(y) . (y - x) / |y - x|^3 over y: the solid angle under which x sees the triangle, in [-2 pi, 2
/// pi]; positive where x is behind it. Zero at the corners and edges, and in the plane beside the triangle.
KOKKOS_INLINE_FUNCTION double solidAngle(const Point3& x, const FlatTriangle& triangle) {
  const Point3 a = triangle.corner[0] - x, b = triangle.corner[1] - x, c = triangle.corner[2] - x;
  const double ra = norm(a), rb = norm(b), rc = norm(c);
  // tan(Omega / 2) = a . (b x c) / (ra rb rc + (a . b) rc + (b . c) ra + (c . a) rb)
  const double height = dot(triangle.normal, a), product = ra * rb * rc;
  const double denominator = product + dot(a, b) * rc + dot(b, c) * ra + dot(c, a) * rb;
  if (denominator < 0.1 * product) {  // terms cancel, the more so the flatter the triangle is
    const double angle = Impl::solidAngleByEdges(a, b, c, triangle.normal, height);
    return height < 0 ? -angle : angle;
  }
  return 2 * std::atan2(2 * triangle.area * height, denominator);
}

/// The integral of 1 / |x - y| over y. Finite everywhere.
KOKKOS_INLINE_FUNCTION double integralOfOneOverDistance(const Point3& x, const FlatTriangle& triangle) {
  const double height = dot(triangle.normal, triangle.corner[0] - x);
  double sum = -std::fabs(height * solidAngle(x, triangle));
  for (int k = 0; k < 3; ++k) {
    const auto e =
        Impl::edgeIntegral(triangle.corner[k] - x, triangle.corner[(k + 1) % 3] - x, triangle.normal, height);
    sum += e.t * e.ofOneOverDistance;
  }
  return sum;
}

/// See integralOfExponential().
struct ExponentialIntegral {
  double even = 0, odd = 0;
};

/// With g = kappa r, by the power series of the exponential function:
/// - sign = 1: even = integral of cosh(g) / r, odd = integral of sinh(g) / r, so exp(-g) / r gives even - odd;
/// - sign = -1: even = integral of cos(g) / r, odd = integral of sin(g) / r, so exp(i g) / r gives even + i odd.
///
/// Rounding grows by exp(2 z), z = kappa times the largest distance of a corner from x: meant for z up to 6.
/// \param accuracy relative to the integral of exp(-g) / r
KOKKOS_INLINE_FUNCTION ExponentialIntegral integralOfExponential(const Point3& x, const FlatTriangle& triangle,
                                                                 double kappa, int sign, double accuracy) {
  const double height = dot(triangle.normal, triangle.corner[0] - x);
  Impl::EdgeIntegral edges[3];
  // Of the powers n - 2, n - 1 and n of r: along each edge, and over the triangle.
  double alongOdd[3], alongEven[3];
  double powerBegin[3], powerEnd[3];  // r-^n, r+^n
  double overOdd = -std::fabs(height * solidAngle(x, triangle)), overEven = triangle.area;
  double farthest = 0;
  for (int k = 0; k < 3; ++k) {
    const auto& e = edges[k] =
        Impl::edgeIntegral(triangle.corner[k] - x, triangle.corner[(k + 1) % 3] - x, triangle.normal, height);
    overOdd += e.t * e.ofOneOverDistance;
    alongOdd[k] = e.ofOneOverDistance;
    alongEven[k] = e.length;
    powerBegin[k] = powerEnd[k] = 1;
    farthest = farthest > e.rBegin ? farthest : e.rBegin;
  }
  // Terms: kappa^(n+1) / (n+1)! I_n, of which the first two are those of n = -1 and 0.
  ExponentialIntegral sums{overOdd, kappa * overEven};
  const double z = kappa * farthest, least = accuracy * std::exp(-z);
  double coefficient = kappa, bound = z;
  for (int n = 1; bound > least && n < 200; ++n) {
    coefficient *= kappa / (n + 1);
    bound *= z / (n + 1);
    double* const along = n % 2 == 1 ? alongOdd : alongEven;
    double& over = n % 2 == 1 ? overOdd : overEven;
    double sum = n * height * height * over;
    for (int k = 0; k < 3; ++k) {
      const auto& e = edges[k];
      powerBegin[k] *= e.rBegin;
      powerEnd[k] *= e.rEnd;
      along[k] = (e.end * powerEnd[k] - e.begin * powerBegin[k] + n * e.squaredDistance * along[k]) / (n + 1);
      sum += e.t * along[k];
    }
    over = sum / (n + 2);
    // (n + 1) / 2 changes of sign, if any
    const double term = sign < 0 && (n + 1) / 2 % 2 == 1 ? -coefficient * over : coefficient * over;
    (n % 2 == 1 ? sums.even : sums.odd) += term;
  }
  return sums;
}

}  // namespace Komvos
