/// \file boundary_kernels_test.cpp
/// Integrals over triangles against integration in polar coordinates, and the kernels made from them.
#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "Komvos_BoundaryKernels.hpp"
#include "Komvos_DeviceKernels.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_LowRank.hpp"
#include "Komvos_TriangleIntegrals.hpp"
#include "Komvos_TriangleRules.hpp"

namespace Komvos {
namespace {

using Real = long double;
using Complex = std::complex<Real>;
constexpr double pi = 3.14159265358979323846;

/// Gauss' rule of 16 points on [a, b].
template <class Function>
Complex gauss(Real a, Real b, const Function& f) {
  static const Real x[] = {0.0950125098376374401853193354250L, 0.2816035507792589132304605014605L,
                           0.4580167776572273863424194429836L, 0.6178762444026437484466717640488L,
                           0.7554044083550030338951011948474L, 0.8656312023878317438804678977124L,
                           0.9445750230732325760779884155346L, 0.9894009349916499325961541734503L};
  static const Real w[] = {0.1894506104550684962853967232083L, 0.1826034150449235888667636679692L,
                           0.1691565193950025381893120790304L, 0.1495959888165767320815017305474L,
                           0.1246289712555338720524762821920L, 0.0951585116824927848099251076022L,
                           0.0622535239386478928628438369944L, 0.0271524594117540948517805724560L};
  Complex sum = 0;
  for (int i = 0; i < 8; ++i) {
    const Real middle = (a + b) / 2, half = (b - a) / 2;
    sum += w[i] * half * (f(middle - half * x[i]) + f(middle + half * x[i]));
  }
  return sum;
}
template <class Function>
Complex adaptive(Real a, Real b, const Function& f, Complex whole, Real tolerance, int depth) {
  const Real middle = (a + b) / 2;
  const Complex left = gauss(a, middle, f), right = gauss(middle, b, f);
  if (depth == 0 || std::abs(left + right - whole) <= tolerance) {
    return left + right;
  }
  return adaptive(a, middle, f, left, tolerance, depth - 1) + adaptive(middle, b, f, right, tolerance, depth - 1);
}

struct Vec {
  Real x, y, z;
};
Vec operator-(const Vec& a, const Vec& b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
Real dot(const Vec& a, const Vec& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
Vec cross(const Vec& a, const Vec& b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
Vec scaled(Real s, const Vec& a) { return {s * a.x, s * a.y, s * a.z}; }
Vec vec(const Point3& p) { return {p.x, p.y, p.z}; }

/// The integral of f(r) over a triangle in polar coordinates around the projection of x: of inner(d, s), the integral
/// of f(r) r over r from |d| to sqrt(s^2 + d^2), over the angle; s is the distance from the projection to the edge.
template <class Inner>
Complex polarIntegral(const Point3& point, const Point3* corners, const Inner& inner) {
  const Vec x = vec(point), p[] = {vec(corners[0]) - x, vec(corners[1]) - x, vec(corners[2]) - x};
  Vec n = cross(vec(corners[1]) - vec(corners[0]), vec(corners[2]) - vec(corners[0]));
  n = scaled(1 / std::sqrt(dot(n, n)), n);
  const Real d = std::fabs(dot(n, p[0]));
  Complex sum = 0;
  for (int k = 0; k < 3; ++k) {
    const Vec& a = p[k];
    const Vec& b = p[(k + 1) % 3];
    const Vec edge = b - a, along = scaled(1 / std::sqrt(dot(edge, edge)), edge);
    const Real t = dot(a, cross(along, n)), distance = std::fabs(t);
    if (distance < 1e-18L * std::sqrt(dot(edge, edge))) {
      continue;  // the projection is on the edge's line: no angle
    }
    // tan(angle) = sinh(u), for angles close to a right one have too few digits; d angle = d u / cosh(u)
    const auto f = [&](Real u) { return inner(d, distance * std::cosh(u)) / std::cosh(u); };
    const Real from = std::asinh(dot(a, along) / distance), to = std::asinh(dot(b, along) / distance);
    const Complex whole = gauss(from, to, f);
    sum += (t > 0 ? 1.0L : -1.0L) * adaptive(from, to, f, whole, 1e-18L * std::sqrt(dot(edge, edge)), 40);
  }
  return sum;
}

// r - |d| = s^2 / (r + |d|)
Real growth(Real d, Real s) { return s * s / (std::sqrt(s * s + d * d) + d); }
/// Of 1 / r.
Real exactSingle(const Point3& x, const Point3* corners) {
  return polarIntegral(x, corners, [](Real d, Real s) { return Complex(growth(d, s)); }).real();
}
/// Of exp(z r) / r.
Complex exactExponential(const Point3& x, const Point3* corners, Complex z) {
  return polarIntegral(x, corners, [z](Real d, Real s) {
    const Complex g = z * growth(d, s);
    // (exp(g) - 1) exp(z d) / z
    const Complex difference =
        std::abs(g) > 0.1L ? std::exp(g) - 1.0L : std::exp(g / 2.0L) * 2.0L * std::sinh(g / 2.0L);
    return difference * std::exp(z * d) / z;
  });
}
/// Of |d| / r^3.
Real exactSolidAngle(const Point3& x, const Point3* corners) {
  return polarIntegral(x, corners, [](Real d, Real s) { return Complex(growth(d, s) / std::sqrt(s * s + d * d)); })
      .real();
}

FlatTriangle flat(const Point3& a, const Point3& b, const Point3& c) {
  const Vec n = cross(vec(b) - vec(a), vec(c) - vec(a));
  const Real length = std::sqrt(dot(n, n));
  const Vec unit = scaled(1 / length, n);
  return {{a, b, c},
          {static_cast<double>(unit.x), static_cast<double>(unit.y), static_cast<double>(unit.z)},
          static_cast<double>(length / 2)};
}

/// Well and badly shaped ones, somewhere in space.
std::vector<FlatTriangle> shapes() {
  std::vector<FlatTriangle> list{flat({0.1, 0.2, 0.3}, {1.1, 0.3, 0.2}, {0.4, 1.2, 0.5}),
                                 flat({0, 0, 0}, {1, 0, 0}, {0.5, 0.8660254, 0}),
                                 flat({0, 0, 0}, {1, 0, 0}, {0, 1, 0}),
                                 flat({0, 0, 0}, {1, 0, 0}, {0.5, 1e-2, 0}),        // a cap
                                 flat({0, 0, 0}, {1, 0, 0}, {1, 1e-2, 1e-3}),       // a needle
                                 flat({0, 0, 0}, {1, 0.5, 0.25}, {0.9, 0.4, 0.3}),  // an obtuse one
                                 flat({0, 0, 0}, {1e-5, 0, 0}, {0, 2e-5, 1e-5})};
  std::mt19937 generator(7);
  std::normal_distribution<double> normal;
  const auto point = [&] { return Point3{normal(generator), normal(generator), normal(generator)}; };
  for (int i = 0; i < 20; ++i) {
    const Point3 a = point(), b = point(), c = point();
    list.push_back(flat(a, b, c));
    list.push_back(flat(a, b, a + (i / 20.0) * (b - a) + 0.01 * (c - a)));  // from needles to caps
  }
  return list;
}

Point3 centroidOf(const FlatTriangle& t) { return (1.0 / 3) * (t.corner[0] + t.corner[1] + t.corner[2]); }
double radiusOf(const FlatTriangle& t) {
  double radius = 0;
  for (const Point3& corner : t.corner) {
    radius = std::max(radius, norm(corner - centroidOf(t)));
  }
  return radius;
}

/// Points on, beside, just above and far from a triangle.
std::vector<Point3> pointsAround(const FlatTriangle& t) {
  const Point3 *p = t.corner, c = centroidOf(t);
  const double h = radiusOf(t);
  std::vector<Point3> points{c, p[0], p[1], p[2]};
  for (int k = 0; k < 3; ++k) {
    const Point3 &a = p[k], &b = p[(k + 1) % 3];
    points.push_back(0.5 * (a + b));  // on an edge
    points.push_back(a + 0.3 * (b - a));
    points.push_back(a + 1.7 * (b - a));  // on its line
    points.push_back(a + 0.8 * (a - b));
    points.push_back(a + 1e-9 * (c - a));  // by a corner
    points.push_back(0.5 * (a + b) + 1e-9 * (c - a));
    points.push_back(a + 1.4 * (c - a));  // in the plane
  }
  const std::size_t inPlane = points.size();
  for (std::size_t i = 0; i < inPlane; ++i) {
    for (const double height : {1e-12, 1e-6, -1e-3, 0.2, -1.0}) {
      points.push_back(points[i] + height * h * t.normal);
    }
  }
  std::mt19937 generator(3);
  std::normal_distribution<double> normal;
  for (const double ratio : {0.5, 1.0, 2.0, 4.0}) {
    Point3 x{normal(generator), normal(generator), normal(generator)};
    points.push_back(c + ratio * h / norm(x) * x);
  }
  return points;
}

TEST(TriangleRules, integrateTheMonomialsUpToTheirDegree) {
  for (const TriangleRule& rule : triangleRules()) {
    for (int i = 0; i <= rule.degree; ++i) {
      for (int j = 0; i + j <= rule.degree; ++j) {
        double sum = 0;
        for (const auto& p : rule.points) {
          EXPECT_GT(p.weight, 0);
          sum += p.weight * std::pow(p.a, i) * std::pow(p.b, j);
        }
        // 2 i! j! / (i + j + 2)!
        const double exact = 2 * std::tgamma(i + 1.0) * std::tgamma(j + 1.0) / std::tgamma(i + j + 3.0);
        EXPECT_NEAR(sum, exact, 4e-16) << rule.points.size() << " points, " << i << ", " << j;
      }
    }
  }
}

TEST(TriangleIntegrals, agreeWithPolarCoordinatesWhereverThePointIs) {
  for (const FlatTriangle& t : shapes()) {
    const double h = radiusOf(t);
    for (const Point3& x : pointsAround(t)) {
      EXPECT_NEAR(integralOfOneOverDistance(x, t), static_cast<double>(exactSingle(x, t.corner)), 3e-14 * h);
    }
  }
}

TEST(TriangleIntegrals, giveTheSolidAngle) {
  for (const FlatTriangle& t : shapes()) {
    const double h = radiusOf(t);
    for (const Point3& x : pointsAround(t)) {
      const double height = dot(t.normal, t.corner[0] - x), angle = solidAngle(x, t);
      ASSERT_TRUE(std::isfinite(angle));
      double nearest = h;  // to an edge: rounding of x itself moves the angle by 1e-16 h / nearest
      for (int k = 0; k < 3; ++k) {
        const auto e = Impl::edgeIntegral(t.corner[k] - x, t.corner[(k + 1) % 3] - x, t.normal, height);
        nearest = std::min(nearest, std::sqrt(e.squaredDistance));
      }
      if (std::fabs(height) > 1e-4 * h) {
        const double exact = std::copysign(static_cast<double>(exactSolidAngle(x, t.corner)), height);
        EXPECT_NEAR(angle, exact, 1e-14 * h / nearest);
      }
    }
  }
}

TEST(TriangleIntegrals, ofExponentialFunctionsAgreeWithPolarCoordinates) {
  for (const FlatTriangle& t : shapes()) {
    const double h = radiusOf(t);
    for (const Point3& x : pointsAround(t)) {
      double farthest = 0;
      for (const Point3& corner : t.corner) {
        farthest = std::max(farthest, norm(corner - x));
      }
      for (const double z : {0.01, 0.5, 3.0}) {
        const double kappa = z / farthest;
        const auto damped = integralOfExponential(x, t, kappa, 1, 1e-16);
        const double exact = static_cast<double>(exactExponential(x, t.corner, -kappa).real());
        EXPECT_NEAR(damped.even - damped.odd, exact, 2e-14 * std::exp(z) * h) << z;
        const auto wave = integralOfExponential(x, t, kappa, -1, 1e-16);
        const Complex exactWave = exactExponential(x, t.corner, Complex(0, kappa));
        EXPECT_NEAR(wave.even, static_cast<double>(exactWave.real()), 2e-14 * std::exp(z) * h) << z;
        EXPECT_NEAR(wave.odd, static_cast<double>(exactWave.imag()), 2e-14 * std::exp(z) * h) << z;
      }
    }
  }
}

/// A closed mesh: a sphere of rings.
TriangleMesh ball(int rings, double radius = 1) {
  TriangleMesh mesh;
  const int around = 2 * rings;
  const auto vertex = [&](int i, int j) { return i == 0 ? 0 : i == rings ? 1 : 2 + (i - 1) * around + j % around; };
  mesh.vertices = {{0, 0, radius}, {0, 0, -radius}};
  for (int i = 1; i < rings; ++i) {
    for (int j = 0; j < around; ++j) {
      const double theta = pi * i / rings, phi = 2 * pi * j / around;
      mesh.vertices.push_back({radius * std::sin(theta) * std::cos(phi), radius * std::sin(theta) * std::sin(phi),
                               radius * std::cos(theta)});
    }
  }
  for (int i = 0; i < rings; ++i) {
    for (int j = 0; j < around; ++j) {
      if (i > 0) {
        mesh.triangles.push_back({vertex(i, j), vertex(i + 1, j), vertex(i, j + 1)});
      }
      if (i < rings - 1) {
        mesh.triangles.push_back({vertex(i, j + 1), vertex(i + 1, j), vertex(i + 1, j + 1)});
      }
    }
  }
  return mesh;
}

std::vector<int> upTo(int n) {
  std::vector<int> list(n);
  std::iota(list.begin(), list.end(), 0);
  return list;
}

template <class Scalar>
std::vector<Scalar> wholeMatrix(const EntryKernel<Scalar>& kernel, int n) {
  const auto all = upTo(n);
  std::vector<Scalar> values(static_cast<std::size_t>(n) * n);
  kernel.block(all.data(), n, all.data(), n, values.data());
  return values;
}

TEST(TriangleIntegrals, solidAnglesOfAClosedMeshAddUp) {
  const TriangleMesh mesh = ball(9);
  const auto sumAt = [&](const Point3& x) {
    double sum = 0;
    for (int t = 0; t < mesh.numTriangles(); ++t) {
      sum += solidAngle(x, flat(mesh.corner(t, 0), mesh.corner(t, 1), mesh.corner(t, 2)));
    }
    return sum;
  };
  for (const Point3& x : {Point3{0, 0, 0}, Point3{0.3, -0.2, 0.5}, Point3{0.9, 0.01, 0}}) {
    EXPECT_NEAR(sumAt(x), 4 * pi, 1e-12);
  }
  for (const Point3& x : {Point3{2, 0, 0}, Point3{0, 0, 1.001}, Point3{0.3, 20, -1}}) {
    EXPECT_NEAR(sumAt(x), 0, 1e-12);
  }
}

TEST(LaplaceSingleLayer, makesAChargedSphereAnEquipotential) {
  for (const int rings : {10, 20}) {
    const TriangleMesh mesh = ball(rings, 2);
    const int n = mesh.numTriangles();
    const auto values = wholeMatrix(LaplaceSingleLayer(mesh), n);
    for (int i = 0; i < n; ++i) {
      double sum = 0;
      for (int j = 0; j < n; ++j) {
        sum += values[static_cast<std::size_t>(j) * n + i];
      }
      EXPECT_NEAR(sum, 2, 2 * 4.0 / (rings * rings));  // inscribed: the area is too small by about this
    }
  }
}

TEST(LaplaceDoubleLayer, rowsAddUpToMinusOneHalfAndTheJump) {
  const TriangleMesh mesh = ball(12);
  const int n = mesh.numTriangles();
  for (const double accuracy : {1e-4, 1e-8, 1e-12}) {
    const auto values = wholeMatrix(LaplaceDoubleLayer(mesh, -0.5, {accuracy}), n);
    for (int i = 0; i < n; ++i) {
      EXPECT_EQ(values[static_cast<std::size_t>(i) * n + i], -0.5);
      double sum = 0;
      for (int j = 0; j < n; ++j) {
        sum += values[static_cast<std::size_t>(j) * n + i];
      }
      EXPECT_NEAR(sum, -1, accuracy + 1e-13);
    }
  }
}

/// One triangle, number 0, and small ones around points at many distances from it.
TriangleMesh triangleAndPoints(const FlatTriangle& t, unsigned seed) {
  TriangleMesh mesh;
  const auto add = [&](const Point3& a, const Point3& b, const Point3& c) {
    const int n = static_cast<int>(mesh.vertices.size());
    mesh.vertices.insert(mesh.vertices.end(), {a, b, c});
    mesh.triangles.push_back({n, n + 1, n + 2});
  };
  add(t.corner[0], t.corner[1], t.corner[2]);
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  const double h = radiusOf(t);
  const auto addPoint = [&](const Point3& x) {
    add(x + Point3{1e-3 * h, 0, 0}, x + Point3{-0.5e-3 * h, 1e-3 * h, 0}, x + Point3{-0.5e-3 * h, -1e-3 * h, 0});
  };
  int number = 0;
  for (double ratio = 0.4; ratio < 400; ratio *= number < 30 ? 1.07 : 1.25) {
    // Along the longest side, in the plane and anywhere: errors are largest along the side.
    Point3 direction{normal(generator), normal(generator), normal(generator)};
    if (number % 3 == 0) {
      const int k = number % 9 / 3;
      direction = t.corner[k] - centroidOf(t);
    } else if (number % 3 == 1) {
      direction = direction - dot(direction, t.normal) * t.normal;
    }
    addPoint(centroidOf(t) + ratio * h / norm(direction) * direction);
    ++number;
  }
  return mesh;
}

Point3 centroidOf(const TriangleMesh& mesh, int t) {
  return (1.0 / 3) * (mesh.corner(t, 0) + mesh.corner(t, 1) + mesh.corner(t, 2));
}

const std::vector<double> accuracies{1e-4, 1e-6, 1e-8, 1e-10, 1e-12};

TEST(LaplaceKernels, reachEachAccuracyAtAllDistances) {
  unsigned seed = 0;
  for (const FlatTriangle& t : shapes()) {
    const TriangleMesh mesh = triangleAndPoints(t, ++seed);
    const Point3 corners[] = {mesh.corner(0, 0), mesh.corner(0, 1), mesh.corner(0, 2)};
    const double h = radiusOf(t);
    for (int i = 1; i < mesh.numTriangles(); ++i) {
      const Point3 x = centroidOf(mesh, i);
      const double distance = norm(x - centroidOf(t)), height = dot(t.normal, x - t.corner[0]);
      const double single = static_cast<double>(exactSingle(x, corners)) / (4 * pi);
      const double twice = std::copysign(static_cast<double>(exactSolidAngle(x, corners)), height) / (4 * pi);
      for (const double accuracy : accuracies) {
        const double rounding = 2e-15 * h;
        EXPECT_NEAR(LaplaceSingleLayer(mesh, {accuracy}).entry(i, 0), single, accuracy * single + rounding)
            << "accuracy " << accuracy << ", distance / h " << distance / h << ", seed " << seed;
        if (std::fabs(height) > 1e-4 * distance) {
          EXPECT_NEAR(LaplaceDoubleLayer(mesh, 0, {accuracy}).entry(i, 0), twice, accuracy * std::fabs(twice) + 1e-14)
              << "accuracy " << accuracy << ", distance / h " << distance / h << ", seed " << seed;
        }
      }
    }
  }
}

TEST(ExponentialKernels, reachEachAccuracyAtAllDistances) {
  unsigned seed = 100;
  for (const FlatTriangle& t : shapes()) {
    const TriangleMesh mesh = triangleAndPoints(t, ++seed);
    const Point3 corners[] = {mesh.corner(0, 0), mesh.corner(0, 1), mesh.corner(0, 2)};
    const double h = radiusOf(t);
    for (const double z : {0.1, 1.0, 7.0}) {
      const double kappa = z / h;
      for (int i = 0; i < mesh.numTriangles(); ++i) {
        const Point3 x = centroidOf(mesh, i);
        const double distance = norm(x - centroidOf(t));
        const double single = static_cast<double>(exactSingle(x, corners)) / (4 * pi);
        const Complex wave = exactExponential(x, corners, Complex(0, kappa)) / Real(4 * pi);
        const double damped = static_cast<double>(exactExponential(x, corners, -kappa).real()) / (4 * pi);
        for (const double accuracy : accuracies) {
          const double rounding = 2e-14 * h;
          const auto value = HelmholtzSingleLayer(mesh, kappa, {accuracy}).entry(i, 0);
          EXPECT_LE(std::abs(Complex(value) - wave), accuracy * single + rounding * (1 + 1e-2 * kappa * distance))
              << "accuracy " << accuracy << ", distance / h " << distance / h << ", k h " << z << ", seed " << seed;
          if (kappa * distance < 12) {
            EXPECT_NEAR(YukawaSingleLayer(mesh, kappa, {accuracy}).entry(i, 0), damped, accuracy * damped + rounding)
                << "accuracy " << accuracy << ", distance / h " << distance / h << ", k h " << z << ", seed " << seed;
          }
        }
      }
    }
  }
}

TEST(ExponentialKernels, areTheSingleLayerWithoutKappa) {
  const TriangleMesh mesh = ball(5);
  const int n = mesh.numTriangles();
  const auto laplace = wholeMatrix(LaplaceSingleLayer(mesh), n);
  const auto yukawa = wholeMatrix(YukawaSingleLayer(mesh, 0), n);
  const auto helmholtz = wholeMatrix(HelmholtzSingleLayer(mesh, 0), n);
  for (std::size_t k = 0; k < laplace.size(); ++k) {
    EXPECT_NEAR(yukawa[k], laplace[k], 1e-14 * laplace[k]);
    EXPECT_NEAR(helmholtz[k].real(), laplace[k], 1e-14 * laplace[k]);
    EXPECT_EQ(helmholtz[k].imag(), 0);
  }
}

/// Each block, however it is cut, has the same bits as single entries.
template <class Scalar>
void expectSameBits(const EntryKernel<Scalar>& kernel, int n) {
  std::vector<int> list = upTo(n);
  std::shuffle(list.begin(), list.end(), std::mt19937(5));
  const auto sizes = {std::pair<int, int>{1, n}, {n, 1}, {3, 100}, {100, 3}, {9, 70}, {65, 8}, {2, 2}, {33, 41}};
  for (const auto& [numRows, numColumns] : sizes) {
    const int* const rows = list.data() + (n - numRows) / 2;
    const int* const columns = list.data() + (n - numColumns) / 3;
    std::vector<Scalar> values(static_cast<std::size_t>(numRows) * numColumns);
    kernel.block(rows, numRows, columns, numColumns, values.data());
    for (int c = 0; c < numColumns; ++c) {
      for (int r = 0; r < numRows; ++r) {
        const Scalar one = kernel.entry(rows[r], columns[c]);
        const Scalar& other = values[static_cast<std::size_t>(c) * numRows + r];
        ASSERT_EQ(std::memcmp(&one, &other, sizeof one), 0) << numRows << " x " << numColumns << ": " << r << ", " << c;
      }
    }
  }
}

std::vector<Point3> centroidsOfBall(const TriangleMesh& mesh) {
  std::vector<Point3> points;
  for (int t = 0; t < mesh.numTriangles(); ++t) {
    points.push_back(centroidOf(mesh, t));
  }
  return points;
}

TEST(BoundaryKernels, entriesHaveTheSameBitsInAnyBlock) {
  const TriangleMesh mesh = ball(10);
  const int n = mesh.numTriangles();
  expectSameBits(LaplaceSingleLayer(mesh), n);
  expectSameBits(LaplaceDoubleLayer(mesh, -0.5), n);
  expectSameBits(YukawaSingleLayer(mesh, 3), n);
  expectSameBits(HelmholtzSingleLayer(mesh, 3), n);
  expectSameBits(OneOverDistance(centroidsOfBall(mesh), 1), n);
}

TEST(OneOverDistance, isSymmetricAndHasItsDiagonal) {
  auto points = centroidsOfBall(ball(6));
  points.push_back(points[3]);  // in one place
  const int n = static_cast<int>(points.size());
  const OneOverDistance kernel(points, 7);
  const auto values = wholeMatrix<double>(kernel, n);
  EXPECT_TRUE(kernel.isSymmetric());
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      const double value = values[static_cast<std::size_t>(j) * n + i], r = norm(points[i] - points[j]);
      EXPECT_EQ(value, values[static_cast<std::size_t>(i) * n + j]);
      EXPECT_NEAR(value, r == 0 ? 7 : 1 / r, 1e-15 * value);
    }
  }
}

TEST(BoundaryKernels, areSmoothEnoughForTinyAccuracies) {
  // Rows at one end, columns from the middle on: distances go through the limits of several rules.
  const TriangleMesh mesh = ball(24);
  std::vector<int> rows, columns;
  for (int t = 0; t < mesh.numTriangles(); ++t) {
    const double z = centroidOf(mesh, t).z;
    if (z > 0.8) {
      rows.push_back(t);
    } else if (z < 0.3) {
      columns.push_back(t);
    }
  }
  LowRankOptions options;
  options.accuracy = 1e-10;
  const auto rankOf = [&](double accuracy) {
    const auto block = approximate<double>(LaplaceSingleLayer(mesh, {accuracy}), rows, columns, options);
    return block ? block->rank : -1;
  };
  const int rank = rankOf(1e-14);
  EXPECT_GT(rank, 0);
  EXPECT_EQ(rankOf(1e-12), rank);
}

/// Entries of a functor in a kernel of the default execution space.
template <class Entry>
struct EvaluateAll {
  Entry entry;
  int n;
  Kokkos::View<typename Entry::value_type*, typename Entry::memory_space> values;
  KOKKOS_FUNCTION void operator()(int place) const { values(place) = entry(place % n, place / n); }
};

/// \param scale of entries: differences are relative to this
template <class Scalar, class Entry>
void expectSameOnDevice(const EntryKernel<Scalar>& kernel, const Entry& entry, int n, double scale) {
  const Kokkos::View<typename Entry::value_type*, typename Entry::memory_space> values("values", n * n);
  Kokkos::parallel_for("entries", Kokkos::RangePolicy<typename Entry::memory_space::execution_space>(0, n * n),
                       EvaluateAll<Entry>{entry, n, values});
  const auto onHost = Kokkos::create_mirror_view(values);
  Kokkos::deep_copy(onHost, values);
  const auto expected = wholeMatrix(kernel, n);
  for (int k = 0; k < n * n; ++k) {
    ASSERT_LE(std::abs(expected[k] - static_cast<Scalar>(onHost(k))), 1e-14 * scale) << k % n << ", " << k / n;
  }
}

using DefaultSpace = Kokkos::DefaultExecutionSpace;
using Memory = DefaultSpace::memory_space;

TEST(DeviceKernels, giveTheEntriesOfTheHost) {
  const TriangleMesh mesh = ball(8);
  const int n = mesh.numTriangles();
  const BoundaryKernelOptions options{1e-13};
  expectSameOnDevice(LaplaceSingleLayer(mesh, options), LaplaceSingleLayerEntry<Memory>(mesh, options), n, 1);
  expectSameOnDevice(LaplaceDoubleLayer(mesh, -0.5, options), LaplaceDoubleLayerEntry<Memory>(mesh, -0.5, options), n,
                     1);
  expectSameOnDevice(YukawaSingleLayer(mesh, 2, options), YukawaSingleLayerEntry<Memory>(mesh, 2, options), n, 1);
  expectSameOnDevice(HelmholtzSingleLayer(mesh, 2, options), HelmholtzSingleLayerEntry<Memory>(mesh, 2, options), n, 1);
  const auto points = centroidsOfBall(mesh);
  expectSameOnDevice(OneOverDistance(points, 3), OneOverDistanceEntry<Memory>(points, 3), n, 10);
}

TEST(DeviceKernels, fillBlocksInDeviceMemory) {
  const TriangleMesh mesh = ball(8);
  const std::vector<int> indices{5, 3, 90, 17, 44, 100, 61, 2};
  const Kokkos::View<int*, Memory> list("list", indices.size());
  const auto hostList = Kokkos::create_mirror_view(list);
  std::copy(indices.begin(), indices.end(), hostList.data());
  Kokkos::deep_copy(list, hostList);
  // Rows 5 3 90, columns 17 44; and rows 100 61 2, columns 5 3 90 17.
  const DeviceBlock blocks[] = {{list.data(), 3, list.data() + 3, 2, 1}, {list.data() + 5, 3, list.data(), 4, 8}};
  const auto onHost = std::make_shared<HelmholtzSingleLayer>(mesh, 2);
  const auto kernel = withDevice<std::complex<double>>(onHost, HelmholtzSingleLayerEntry<Memory>(mesh, 2));
  const Kokkos::View<std::complex<double>*, Kokkos::LayoutRight, Memory> values("values", 21);
  EXPECT_FALSE(onHost->fillDevice(blocks, 2, values.data()));
  EXPECT_TRUE(kernel.fillDevice(blocks, 0, values.data()));
  ASSERT_TRUE(kernel.fillDevice(blocks, 2, values.data()));
  const auto hostValues = Kokkos::create_mirror_view(values);
  Kokkos::deep_copy(hostValues, values);
  EXPECT_EQ(hostValues(0), 0.0);
  EXPECT_EQ(hostValues(7), 0.0);
  EXPECT_EQ(hostValues(20), 0.0);
  std::vector<std::complex<double>> expected(12);
  kernel.block(indices.data(), 3, indices.data() + 3, 2, expected.data());
  for (int k = 0; k < 6; ++k) {
    EXPECT_LE(std::abs(hostValues(1 + k) - expected[k]), 1e-15);
  }
  kernel.block(indices.data() + 5, 3, indices.data(), 4, expected.data());
  for (int k = 0; k < 12; ++k) {
    EXPECT_LE(std::abs(hostValues(8 + k) - expected[k]), 1e-15);
  }
}

TEST(BoundaryKernels, refuseTrianglesWithoutAreaAndBadNumbers) {
  TriangleMesh mesh = ball(4);
  mesh.triangles.push_back({0, 5, 5});
  EXPECT_THROW(LaplaceSingleLayer{mesh}, BadInput);
  EXPECT_THROW(LaplaceDoubleLayer(mesh, 0), BadInput);
  EXPECT_THROW(LaplaceSingleLayerEntry<Memory>{mesh}, BadInput);
  mesh.triangles.pop_back();
  EXPECT_THROW(YukawaSingleLayer(mesh, -1), BadInput);
  EXPECT_THROW(HelmholtzSingleLayer(mesh, NAN), BadInput);
  EXPECT_THROW((LaplaceSingleLayer{mesh, {0.0}}), BadInput);
  mesh.vertices[3].x = NAN;
  EXPECT_THROW(LaplaceSingleLayer{mesh}, BadInput);
}

}  // namespace
}  // namespace Komvos
