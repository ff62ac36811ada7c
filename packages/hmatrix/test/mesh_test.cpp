/// \file mesh_test.cpp
/// Meshes: what is asked of them, their generators, what checkMesh() finds, and files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_MeshCheck.hpp"
#include "Komvos_MeshFile.hpp"
#include "Komvos_MeshGenerators.hpp"
#include "Komvos_TriangleMesh.hpp"
#include "Komvos_VtuFile.hpp"

namespace Komvos {
namespace {

constexpr double pi = 3.14159265358979323846;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// With corners on the axes, at the distance 1 from the origin.
TriangleMesh octahedron() {
  TriangleMesh mesh;
  mesh.vertices = {{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}, {0, 0, 1}, {0, 0, -1}};
  mesh.triangles = {{0, 2, 4}, {2, 1, 4}, {1, 3, 4}, {3, 0, 4}, {2, 0, 5}, {1, 2, 5}, {3, 1, 5}, {0, 3, 5}};
  return mesh;
}

template <class Function>
std::string badInputOf(Function function) {
  try {
    function();
  } catch (const BadInput& error) {
    return error.what();
  }
  ADD_FAILURE() << "no BadInput was thrown";
  return "";
}

double totalArea(const TriangleMesh& mesh) {
  double sum = 0;
  for (const double area : areasOf(mesh)) {
    sum += area;
  }
  return sum;
}

/// Vertices - edges + triangles of one body. 2 for what can be blown up to a sphere.
int eulerCharacteristic(const TriangleMesh& mesh, int body) {
  std::set<int> vertices;
  std::set<std::pair<int, int>> edges;
  int triangles = 0;
  for (int t = 0; t < mesh.numTriangles(); ++t) {
    if (mesh.bodyOf(t) != body) {
      continue;
    }
    ++triangles;
    for (int k = 0; k < 3; ++k) {
      const int a = mesh.triangles[t][k], b = mesh.triangles[t][(k + 1) % 3];
      vertices.insert(a);
      edges.insert(std::minmax(a, b));
    }
  }
  return static_cast<int>(vertices.size()) - static_cast<int>(edges.size()) + triangles;
}

void expectClosedOutwardBodies(const TriangleMesh& mesh, int numBodies) {
  const MeshCheck check = checkMesh(mesh);
  EXPECT_EQ(check.faults(), std::vector<std::string>{});
  EXPECT_TRUE(check.isClosed());
  EXPECT_TRUE(check.isOriented());
  EXPECT_FALSE(check.isUnusable());
  EXPECT_EQ(mesh.numBodies(), numBodies);
  EXPECT_EQ(mesh.body, bodiesOf(mesh));
  for (int body = 0; body < numBodies; ++body) {
    EXPECT_EQ(eulerCharacteristic(mesh, body), 2) << "body " << body;
    EXPECT_GT(volumeOf(mesh, body), 0) << "body " << body;
  }
}

/// Longest edge times perimeter over area, as a multiple of what it is with equal sides.
std::vector<double> aspectsOf(const TriangleMesh& mesh) {
  std::vector<double> aspects = areasOf(mesh);
  for (int t = 0; t < mesh.numTriangles(); ++t) {
    double longest = 0, perimeter = 0;
    for (int k = 0; k < 3; ++k) {
      const double side = norm(mesh.corner(t, (k + 1) % 3) - mesh.corner(t, k));
      longest = std::max(longest, side);
      perimeter += side;
    }
    aspects[t] = longest * perimeter / (4 * std::sqrt(3.0) * aspects[t]);
  }
  return aspects;
}

void expectSame(const TriangleMesh& mesh, const TriangleMesh& expected, double tolerance = 0) {
  ASSERT_EQ(mesh.triangles.size(), expected.triangles.size());
  EXPECT_EQ(mesh.vertices.size(), expected.vertices.size());
  for (int t = 0; t < mesh.numTriangles(); ++t) {
    for (int k = 0; k < 3; ++k) {
      EXPECT_LE(norm(mesh.corner(t, k) - expected.corner(t, k)), tolerance) << "triangle " << t << ", corner " << k;
    }
  }
}

// What is asked of a mesh

TEST(TriangleMesh, knowsAreasCentroidsNormalsBoxesAndVolume) {
  const TriangleMesh mesh = octahedron();
  for (int t = 0; t < 8; ++t) {
    EXPECT_NEAR(areasOf(mesh)[t], std::sqrt(3.0) / 2, 1e-15);
    const Point3 centroid = centroidsOf(mesh)[t], normal = normalsOf(mesh)[t];
    EXPECT_NEAR(norm(normal), 1, 1e-15);
    EXPECT_NEAR(norm(normal - (1 / norm(centroid)) * centroid), 0, 1e-15);
  }
  EXPECT_NEAR(norm(centroidsOf(mesh)[0] - Point3{1.0 / 3, 1.0 / 3, 1.0 / 3}), 0, 1e-15);
  const Box box = boxesOf(mesh)[1];
  EXPECT_EQ(norm(box.least - Point3{-1, 0, 0}), 0);
  EXPECT_EQ(norm(box.most - Point3{0, 1, 1}), 0);
  EXPECT_NEAR(volumeOf(mesh, 0), 4.0 / 3, 1e-15);
  EXPECT_EQ(volumeOf(mesh, 1), 0);
}

TEST(TriangleMesh, hasNoNormalWhereItHasNoArea) {
  TriangleMesh mesh = octahedron();
  mesh.triangles = {{0, 1, 0}};
  EXPECT_EQ(norm(normalsOf(mesh)[0]), 0);
  EXPECT_EQ(areasOf(mesh)[0], 0);
}

TEST(TriangleMesh, measuresVolumesFarFromTheOrigin) {
  TriangleMesh mesh = octahedron();
  for (Point3& vertex : mesh.vertices) {
    vertex = vertex + Point3{1048576, -2097152, 4194304};
  }
  EXPECT_NEAR(volumeOf(mesh, 0), 4.0 / 3, 1e-14);
}

TEST(TriangleMesh, withoutTrianglesHasNothing) {
  const TriangleMesh mesh;
  EXPECT_EQ(mesh.numBodies(), 0);
  EXPECT_TRUE(bodiesOf(mesh).empty() && areasOf(mesh).empty() && boxesOf(mesh).empty());
  EXPECT_TRUE(checkMesh(mesh).faults().empty());
}

TEST(TriangleMesh, bodiesHangTogetherByVertices) {
  TriangleMesh mesh;
  mesh.vertices.resize(12);
  mesh.triangles = {{9, 10, 11}, {0, 1, 2}, {3, 4, 5}, {2, 6, 7}, {5, 8, 6}};
  EXPECT_EQ(bodiesOf(mesh), (std::vector<int>{0, 1, 1, 1, 1}));
  mesh.triangles.pop_back();
  EXPECT_EQ(bodiesOf(mesh), (std::vector<int>{0, 1, 2, 1}));
  EXPECT_EQ(mesh.numBodies(), 1) << "without a list, all are of body 0";
  mesh.body = bodiesOf(mesh);
  EXPECT_EQ(mesh.numBodies(), 3);
}

TEST(TriangleMesh, unitedBodiesAreNumberedOneAfterTheOther) {
  const TriangleMesh one = octahedron();
  const TriangleMesh two = united(one, sphereMesh(20, 1, {5, 0, 0}));
  expectClosedOutwardBodies(two, 2);
  const TriangleMesh four = united(two, united(sphereMesh(12, 1, {0, 5, 0}), sphereMesh(8, 1, {0, 0, 5})));
  expectClosedOutwardBodies(four, 4);
  EXPECT_EQ(four.numTriangles(), 8 + 20 + 12 + 8);
  expectClosedOutwardBodies(united(TriangleMesh{}, sphereMesh(8)), 1);
}

// Generators

TEST(MeshGenerators, makeExactlyAsManyTrianglesClosedAndOutwards) {
  for (int n = 8; n <= 200; n += 2) {
    const TriangleMesh mesh = sphereMesh(n);
    EXPECT_EQ(mesh.numTriangles(), n);
    expectClosedOutwardBodies(mesh, 1);
  }
  for (const double height : {0.01, 1.0, 4.0, 100.0}) {
    for (int n = 24; n <= 200; n += 2) {
      const TriangleMesh mesh = cylinderMesh(n, 0.5, height);
      EXPECT_EQ(mesh.numTriangles(), n);
      expectClosedOutwardBodies(mesh, 1);
    }
  }
  for (const int n : {10400, 20000}) {
    EXPECT_EQ(sphereMesh(n).numTriangles(), n);
    expectClosedOutwardBodies(sphereMesh(n), 1);
    EXPECT_EQ(cylinderMesh(n).numTriangles(), n);
    expectClosedOutwardBodies(cylinderMesh(n), 1);
  }
}

TEST(MeshGenerators, aSphereOfEightTrianglesIsAnOctahedron) {
  const TriangleMesh mesh = sphereMesh(8, 2, {1, 1, 1});
  EXPECT_EQ(mesh.vertices.size(), 6U);
  EXPECT_NEAR(volumeOf(mesh, 0), 8 * 4.0 / 3, 1e-14);
}

TEST(MeshGenerators, verticesOfASphereAreOnIt) {
  const Point3 centre{1, -2, 3};
  for (const Point3& vertex : sphereMesh(1000, 0.25, centre).vertices) {
    EXPECT_NEAR(norm(vertex - centre), 0.25, 1e-15);
  }
}

TEST(MeshGenerators, verticesOfACylinderAreOnIt) {
  const TriangleMesh mesh = cylinderMesh(2000, 0.5, 3);
  for (const Point3& p : mesh.vertices) {
    const double away = std::hypot(p.x, p.y);
    EXPECT_LE(away, 0.5 + 1e-15);
    EXPECT_TRUE(std::abs(away - 0.5) < 1e-15 || p.z == 0 || p.z == 3) << away << " " << p.z;
  }
  // Caps are flat, and no triangle reaches over the rim. Those of the side lean a little: the next ring is turned.
  const std::vector<Point3> normals = normalsOf(mesh);
  for (int t = 0; t < mesh.numTriangles(); ++t) {
    EXPECT_TRUE(std::abs(normals[t].z) < 0.1 || std::abs(normals[t].z) > 1 - 1e-14) << "triangle " << t;
  }
}

TEST(MeshGenerators, trianglesAreOfAboutTheSameSizeAndShape) {
  for (const TriangleMesh& mesh : {sphereMesh(1000), sphereMesh(10400), sphereMesh(20000), cylinderMesh(10400)}) {
    const std::vector<double> areas = areasOf(mesh), aspects = aspectsOf(mesh);
    const double mean = totalArea(mesh) / mesh.numTriangles();
    EXPECT_GT(*std::min_element(areas.begin(), areas.end()), 0.7 * mean);
    EXPECT_LT(*std::max_element(areas.begin(), areas.end()), 1.3 * mean);
    EXPECT_LT(*std::max_element(aspects.begin(), aspects.end()), 1.5);
  }
}

TEST(MeshGenerators, volumesAndAreasConvergeAtSecondOrder) {
  struct Shape {
    TriangleMesh (*make)(int);
    double volume, area;
  };
  const Shape shapes[] = {{[](int n) { return sphereMesh(n); }, 4 * pi / 3, 4 * pi},
                          {[](int n) { return cylinderMesh(n); }, 4 * pi, 10 * pi}};
  for (const Shape& shape : shapes) {
    const TriangleMesh coarse = shape.make(2000), fine = shape.make(32000);
    // A quarter of the edge length: a sixteenth of the error.
    const double volumeRatio = (shape.volume - volumeOf(coarse, 0)) / (shape.volume - volumeOf(fine, 0));
    const double areaRatio = (shape.area - totalArea(coarse)) / (shape.area - totalArea(fine));
    EXPECT_NEAR(std::log(volumeRatio) / std::log(4.0), 2, 0.1);
    EXPECT_NEAR(std::log(areaRatio) / std::log(4.0), 2, 0.1);
  }
}

TEST(MeshGenerators, twoSpheresAreOneAboveTheOther) {
  const TriangleMesh mesh = twoSpheresMesh(400, 0.25, 1);
  EXPECT_EQ(mesh.numTriangles(), 400);
  expectClosedOutwardBodies(mesh, 2);
  const std::vector<Point3> centroids = centroidsOf(mesh);
  for (int t = 0; t < mesh.numTriangles(); ++t) {
    EXPECT_EQ(mesh.bodyOf(t), centroids[t].z > 0 ? 0 : 1);
    EXPECT_LE(norm(centroids[t] - Point3{0, 0, mesh.bodyOf(t) == 0 ? 0.5 : -0.5}), 0.25);
  }
}

TEST(MeshGenerators, anArrayHasASphereAtEachPointOfTheLattice) {
  const TriangleMesh mesh = sphereArrayMesh(1000, 3, 0.25, 1);
  EXPECT_EQ(mesh.numTriangles(), 27 * 36);
  expectClosedOutwardBodies(mesh, 27);
  const std::vector<Point3> centroids = centroidsOf(mesh);
  for (int t = 0; t < mesh.numTriangles(); ++t) {
    const int body = mesh.bodyOf(t);
    EXPECT_LE(norm(centroids[t] - Point3{1.0 * (body % 3), 1.0 * (body / 3 % 3), 1.0 * (body / 9)}), 0.25);
  }
  expectClosedOutwardBodies(sphereArrayMesh(10, 1, 3, 1), 1);
}

TEST(MeshGenerators, refuseWhatMakesNoSense) {
  EXPECT_EQ(badInputOf([] { sphereMesh(7); }), "sphereMesh: 7 triangles; an even number is needed, at least 8");
  EXPECT_EQ(badInputOf([] { sphereMesh(6); }), "sphereMesh: 6 triangles; an even number is needed, at least 8");
  EXPECT_EQ(badInputOf([] { sphereMesh(8, -0.5); }), "sphereMesh: the radius is -0.5; it must be above 0, and finite");
  EXPECT_EQ(badInputOf([] { sphereMesh(8, nan); }), "sphereMesh: the radius is nan; it must be above 0, and finite");
  EXPECT_EQ(badInputOf([] { cylinderMesh(22); }), "cylinderMesh: 22 triangles; an even number is needed, at least 24");
  EXPECT_EQ(badInputOf([] { cylinderMesh(24, 1, 0); }),
            "cylinderMesh: the height is 0; it must be above 0, and finite");
  EXPECT_EQ(badInputOf([] { twoSpheresMesh(18); }),
            "twoSpheresMesh: 18 triangles; a multiple of 4 is needed, an even number for each sphere");
  EXPECT_EQ(badInputOf([] { twoSpheresMesh(16, 0.5, 1); }),
            "twoSpheresMesh: spheres of radius 0.5 at the distance 1 touch; it must be more than twice the radius, and "
            "finite");
  EXPECT_EQ(badInputOf([] { sphereArrayMesh(100); }),
            "sphereArrayMesh: 100 triangles for 27 spheres; each needs at least 8");
  EXPECT_EQ(badInputOf([] { sphereArrayMesh(100, 0); }),
            "sphereArrayMesh: 0 spheres a side; at least 1 is needed, at most 1290");
  EXPECT_NE(badInputOf([] { sphereArrayMesh(1000, 2, 0.6, 1); }).find("touch"), std::string::npos);
}

// What checkMesh() finds

void expectFault(const MeshFault& fault, long count, int first, const char* what) {
  EXPECT_EQ(fault.count, count) << what;
  EXPECT_EQ(fault.first, first) << what;
}

TEST(MeshCheck, findsNothingInASoundMesh) {
  const MeshCheck check = checkMesh(octahedron());
  EXPECT_TRUE(check.faults().empty());
  EXPECT_TRUE(check.isClosed() && check.isOriented() && !check.isUnusable());
}

TEST(MeshCheck, findsCoordinatesThatAreNotFinite) {
  TriangleMesh mesh = octahedron();
  mesh.vertices[4].y = nan;
  EXPECT_EQ(checkMesh(mesh).faults(),
            std::vector<std::string>{"1 vertex has a coordinate that is not finite (vertex 4)"});
  mesh.vertices[2].z = std::numeric_limits<double>::infinity();
  EXPECT_EQ(checkMesh(mesh).faults(),
            std::vector<std::string>{"2 vertices have coordinates that are not finite (the first is vertex 2)"});
  EXPECT_TRUE(checkMesh(mesh).isUnusable());
}

TEST(MeshCheck, findsVerticesThatDoNotExist) {
  TriangleMesh mesh = octahedron();
  mesh.triangles.push_back({0, 1, 6});
  mesh.triangles.push_back({-1, 1, 2});
  const MeshCheck check = checkMesh(mesh);
  expectFault(check.badVertexNumbers, 2, 8, "bad vertex numbers");
  EXPECT_TRUE(check.isUnusable());
  EXPECT_EQ(check.faults(),
            std::vector<std::string>{"2 triangles name vertices that do not exist (the first is triangle 8)"});
}

TEST(MeshCheck, findsTrianglesWithoutArea) {
  TriangleMesh mesh = octahedron();
  mesh.vertices.insert(mesh.vertices.end(), {{0.1, 0.1, 0.1}, {0.2, 0.2, 0.2}, {0.7, 0.7, 0.7}, {0.1, 0.1, 0.1}});
  mesh.triangles.push_back({6, 7, 8});  // on a line, up to rounding
  mesh.triangles.push_back({6, 9, 0});  // two in one place
  mesh.triangles.push_back({0, 2, 0});  // the same twice
  const MeshCheck check = checkMesh(mesh);
  expectFault(check.degenerate, 3, 8, "degenerate");
  EXPECT_TRUE(check.isUnusable());
  EXPECT_EQ(check.faults().front(), "3 triangles have no area (the first is triangle 8)");
  expectFault(check.openEdges, 6, 8, "open edges of the first two");
}

TEST(MeshCheck, takesThinTrianglesForWhatTheyAre) {
  TriangleMesh mesh;
  mesh.vertices = {{0, 0, 0}, {1, 0, 0}, {0.5, 1e-12, 0}};
  mesh.triangles = {{0, 1, 2}};
  EXPECT_EQ(checkMesh(mesh).degenerate.count, 0);
  for (Point3& vertex : mesh.vertices) {
    vertex.y += 1e6;  // where 1e-12 is lost
  }
  EXPECT_EQ(checkMesh(mesh).degenerate.count, 1);
}

TEST(MeshCheck, findsDuplicatesWhicheverCornerComesFirst) {
  TriangleMesh mesh = octahedron();
  mesh.triangles.push_back({4, 0, 2});
  mesh.triangles.push_back({2, 0, 4});
  mesh.triangles.push_back({2, 5, 0});
  const MeshCheck check = checkMesh(mesh);
  expectFault(check.duplicates, 3, 8, "duplicates");
  expectFault(check.manyTriangles, 5, 0, "edges of more than two triangles");
  EXPECT_TRUE(check.isUnusable());
  EXPECT_EQ(check.faults().front(), "3 triangles have the same corners as an earlier one (the first is triangle 8)");
}

TEST(MeshCheck, findsHoles) {
  TriangleMesh mesh = octahedron();
  mesh.triangles.erase(mesh.triangles.begin() + 1);
  const MeshCheck check = checkMesh(mesh);
  expectFault(check.openEdges, 3, 0, "open edges");
  EXPECT_FALSE(check.isClosed() || check.isOriented() || check.isUnusable());
  EXPECT_EQ(check.faults(),
            std::vector<std::string>{
                "3 edges belong to one triangle only, so the surface is open there (the first is of triangle 0)"});
}

TEST(MeshCheck, findsEdgesOfThreeTriangles) {
  TriangleMesh mesh = octahedron();
  mesh.vertices.push_back({3, 3, 3});
  mesh.triangles.push_back({0, 2, 6});
  const MeshCheck check = checkMesh(mesh);
  expectFault(check.manyTriangles, 1, 0, "edges of three triangles");
  expectFault(check.openEdges, 2, 8, "open edges");
  EXPECT_FALSE(check.isOriented() || check.isUnusable());
  EXPECT_EQ(check.faults().back(), "1 edge belongs to more than two triangles (of triangle 0)");
}

TEST(MeshCheck, findsTrianglesThatAreTurnedOver) {
  TriangleMesh mesh = octahedron();
  std::swap(mesh.triangles[6][0], mesh.triangles[6][1]);
  const MeshCheck check = checkMesh(mesh);
  expectFault(check.turnedEdges, 3, 2, "turned edges");
  EXPECT_TRUE(check.isClosed());
  EXPECT_FALSE(check.isOriented() || check.isUnusable());
  EXPECT_EQ(check.faults(),
            std::vector<std::string>{
                "3 edges have triangles on their sides that face opposite ways (the first is of triangle 2)"});
}

TEST(MeshCheck, findsBodiesThatFaceInwards) {
  TriangleMesh inwards = octahedron();
  for (auto& corners : inwards.triangles) {
    std::swap(corners[0], corners[1]);
  }
  const MeshCheck check = checkMesh(united(united(octahedron(), inwards), inwards));
  expectFault(check.inwardBodies, 2, 8, "inward bodies");
  EXPECT_TRUE(check.isClosed());
  EXPECT_FALSE(check.isOriented() || check.isUnusable());
  EXPECT_EQ(check.faults(), std::vector<std::string>{"2 closed bodies face inwards (the first is with triangle 8)"});
  EXPECT_EQ(checkMesh(inwards).faults(), std::vector<std::string>{"1 closed body faces inwards (with triangle 0)"});
}

TEST(MeshCheck, tellsBodiesApartThatTouchInAVertex) {
  TriangleMesh mesh = octahedron();
  mesh.vertices.insert(mesh.vertices.end(), {{2, 1, 0}, {2, 0, 0}, {2, 0, 1}});
  mesh.triangles.insert(mesh.triangles.end(), {{0, 6, 7}, {0, 7, 8}, {0, 8, 6}, {6, 8, 7}});
  const TriangleMesh outwards = mesh;
  for (int t = 8; t < 12; ++t) {
    std::swap(mesh.triangles[t][0], mesh.triangles[t][1]);
  }
  EXPECT_EQ(checkMesh(mesh).inwardBodies.count + checkMesh(outwards).inwardBodies.count, 1);
}

TEST(MeshCheck, agreesWithACountOfEachEdgeByItself) {
  std::mt19937 random(7);
  TriangleMesh mesh = sphereMesh(400);
  for (int damage = 0; damage < 60; ++damage) {
    auto& corners = mesh.triangles[random() % mesh.triangles.size()];
    switch (random() % 4) {
      case 0:
        std::swap(corners[1], corners[2]);
        break;
      case 1:
        mesh.triangles.erase(mesh.triangles.begin() + static_cast<long>(random() % mesh.triangles.size()));
        break;
      case 2:
        mesh.triangles.push_back(std::array<int, 3>(corners));
        break;
      default:
        corners[0] = static_cast<int>(random() % mesh.vertices.size());
    }
  }
  long open = 0, many = 0, turned = 0;
  const int numVertices = static_cast<int>(mesh.vertices.size());
  for (int a = 0; a < numVertices; ++a) {
    for (int b = a + 1; b < numVertices; ++b) {
      int upwards = 0, downwards = 0;
      for (const auto& c : mesh.triangles) {
        const bool isRegular = c[0] != c[1] && c[1] != c[2] && c[2] != c[0];
        for (int k = 0; isRegular && k < 3; ++k) {
          upwards += c[k] == a && c[(k + 1) % 3] == b ? 1 : 0;
          downwards += c[k] == b && c[(k + 1) % 3] == a ? 1 : 0;
        }
      }
      open += upwards + downwards == 1 ? 1 : 0;
      many += upwards + downwards > 2 ? 1 : 0;
      turned += upwards + downwards == 2 && upwards != 1 ? 1 : 0;
    }
  }
  const MeshCheck check = checkMesh(mesh);
  EXPECT_EQ(check.openEdges.count, open);
  EXPECT_EQ(check.manyTriangles.count, many);
  EXPECT_EQ(check.turnedEdges.count, turned);
  EXPECT_TRUE(open > 0 && many > 0 && turned > 0);
}

// Files

/// With a folder of its own.
class MeshFile : public testing::Test {
 protected:
  MeshFile() : folder_(std::filesystem::temp_directory_path() / ("komvos_mesh_test_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~MeshFile() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string write(const std::string& name, const std::string& bytes) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  TriangleMesh read(const std::string& name, const std::string& bytes, const std::string& group = "") const {
    return readMesh(write(name, bytes), group);
  }
  /// What is wrong, without the path.
  std::string faultOf(const std::string& name, const std::string& bytes, const std::string& group = "") const {
    const std::string path = write(name, bytes), message = badInputOf([&] { readMesh(path, group); });
    EXPECT_EQ(message.substr(0, path.size()), path);
    return message.substr(std::min(path.size(), message.size()));
  }

  std::filesystem::path folder_;
};

/// Those that Assimp reads. Without it, they must be refused.
class AssimpFile : public MeshFile {
 protected:
  void SetUp() override {
    try {
      read("probe.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n");
    } catch (const BadInput& error) {
      ASSERT_NE(std::string(error.what()).find("built without Assimp"), std::string::npos) << error.what();
      GTEST_SKIP() << "built without Assimp";
    }
  }
};

/// \param first of the numbers of vertices: 0 or 1
std::string trianglesAsText(const TriangleMesh& mesh, const std::string& before, int first) {
  std::ostringstream out;
  for (const auto& corners : mesh.triangles) {
    out << before << corners[0] + first << " " << corners[1] + first << " " << corners[2] + first << "\n";
  }
  return out.str();
}

std::string verticesAsText(const TriangleMesh& mesh, const std::string& before) {
  std::ostringstream out;
  out.precision(17);
  for (const Point3& p : mesh.vertices) {
    out << before << p.x << " " << p.y << " " << p.z << "\n";
  }
  return out.str();
}

std::string offFile(const TriangleMesh& mesh) {
  return "OFF\n" + std::to_string(mesh.vertices.size()) + " " + std::to_string(mesh.triangles.size()) + " 0\n" +
         verticesAsText(mesh, "") + trianglesAsText(mesh, "3 ", 0);
}

std::string objFile(const TriangleMesh& mesh) { return verticesAsText(mesh, "v ") + trianglesAsText(mesh, "f ", 1); }

std::string textStl(const TriangleMesh& mesh) {
  std::ostringstream out;
  out.precision(9);
  out << "solid body\n";
  for (int t = 0; t < mesh.numTriangles(); ++t) {
    out << " facet normal 0 0 0\n  outer loop\n";
    for (int k = 0; k < 3; ++k) {
      const Point3 p = mesh.corner(t, k);
      out << "   vertex " << p.x << " " << p.y << " " << p.z << "\n";
    }
    out << "  endloop\n endfacet\n";
  }
  out << "endsolid body\n";
  return out.str();
}

template <class T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string binaryStl(const TriangleMesh& mesh, std::string head = "binary") {
  head.resize(80, ' ');
  append(head, static_cast<std::uint32_t>(mesh.triangles.size()));
  for (int t = 0; t < mesh.numTriangles(); ++t) {
    head.append(12, '\0');
    for (int k = 0; k < 3; ++k) {
      const Point3 p = mesh.corner(t, k);
      for (const double value : {p.x, p.y, p.z}) {
        append(head, static_cast<float>(value));
      }
    }
    head.append(2, '\0');
  }
  return head;
}

TEST_F(AssimpFile, readsEachFormat) {
  TriangleMesh mesh = united(sphereMesh(200, 0.3, {1, 2, 3}), sphereMesh(100, 0.1));
  // Exact in 32 bits: these files then bring back what was written.
  for (Point3& p : mesh.vertices) {
    p = {static_cast<float>(p.x), static_cast<float>(p.y), static_cast<float>(p.z)};
  }
  const std::pair<const char*, std::string> files[] = {
      {"mesh.off", offFile(mesh)},    {"mesh.obj", objFile(mesh)},       {"text.stl", textStl(mesh)},
      {"binary.STL", binaryStl(mesh)}, {"solid.stl", binaryStl(mesh, "solid, but binary")}};
  for (const auto& [name, bytes] : files) {
    const TriangleMesh result = read(name, bytes);
    // Assimp's own conversion of decimal fractions may be off by a bit.
    expectSame(result, mesh, 1e-6);
    expectClosedOutwardBodies(result, 2);
  }
}

TEST_F(AssimpFile, keepsCoordinatesIn32Bits) {
  const TriangleMesh result = read("a.off", "OFF\n3 1 0\n0.1 0 0\n1 0 0\n0 1 0\n3 0 1 2\n");
  EXPECT_NEAR(result.corner(0, 0).x, 0.1, 6e-9);
}

TEST_F(AssimpFile, joinsVerticesInTheSamePlaceAndDropsOthers) {
  // A vertex that is there twice, once as -0, one with other normals, and one of no triangle.
  const TriangleMesh result = read("a.obj",
                                   "v 0 0 0\nv 1 0 0\nv 0 1 0\nv -0 0 0\nv 0 0 1\nv 7 7 7\nvn 0 0 1\nvn 1 0 0\n"
                                   "f 1//1 3//1 2//1\nf 4//2 2//2 5//2\nf 1 5 3\nf 2 3 5\n");
  EXPECT_EQ(result.vertices.size(), 4U);
  expectClosedOutwardBodies(result, 1);
}

TEST_F(AssimpFile, makesTrianglesOfPolygons) {
  const std::string cube =
      "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0 0 1\nv 1 0 1\nv 1 1 1\nv 0 1 1\n"
      "f 4 3 2 1\nf 5 6 7 8\nf 1 2 6 5\nf 2 3 7 6\nf 3 4 8 7\nf 4 1 5 8\n";
  TriangleMesh result = read("cube.obj", cube);
  EXPECT_EQ(result.numTriangles(), 12);
  expectClosedOutwardBodies(result, 1);
  EXPECT_DOUBLE_EQ(volumeOf(result, 0), 1);
  // With a dent, lines and points.
  result = read("dent.obj", "v 0 0 0\nv 2 0 0\nv 2 2 0\nv 1 0.5 0\nv 0 2 0\nf 1 2 3 4 5\nl 1 2\np 3\n");
  EXPECT_EQ(result.numTriangles(), 3);
  EXPECT_DOUBLE_EQ(totalArea(result), 2.5);
  result = read("lines.obj", "v 0 0 0\nv 2 0 0\nv 2 2 0\nf 1 2 3\nl 1 2\np 3\n");
  EXPECT_EQ(result.numTriangles(), 1);
}

TEST_F(AssimpFile, readsOneGroupOfAnObjFile) {
  const std::string file =
      "mtllib missing.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\ng skin\nusemtl pink\nf 1 3 2\n"
      "g helper\nf 1 2 4\ng skin\nf 1 4 3\nusemtl blue\nf 2 3 4\n";
  EXPECT_EQ(read("a.obj", file).numTriangles(), 4);
  EXPECT_EQ(read("a.obj", file, "skin").numTriangles(), 3);
  EXPECT_EQ(read("a.obj", file, "helper").numTriangles(), 1);
  EXPECT_EQ(read("a.obj", file, "helper").vertices.size(), 3U);
  EXPECT_EQ(faultOf("a.obj", file, "sking").substr(0, 35), ": has no group 'sking', but 'skin',");
  EXPECT_EQ(faultOf("a.off", offFile(octahedron()), "skin"),
            ": the group 'skin' is asked for, but only those of .obj can be told apart");
}

TEST_F(AssimpFile, leavesCoordinatesThatAreNotFiniteToCheckMesh) {
  EXPECT_EQ(checkMesh(read("a.obj", "v 0 0 0\nv 1 nan 0\nv 0 1 0\nf 1 2 3\n")).notFinite.count, 1);
  EXPECT_EQ(checkMesh(read("a.off", "OFF\n3 1 0\n0 0 0\n1 inf 0\n0 nan 0\n3 0 1 2\n")).notFinite.count, 2);
  TriangleMesh mesh = octahedron();
  mesh.vertices[4].z = nan;
  // STL repeats it in each of its four triangles, and those who are nowhere are not in the same place.
  EXPECT_EQ(checkMesh(read("binary.stl", binaryStl(mesh))).notFinite.count, 4);
  EXPECT_EQ(checkMesh(read("text.stl", textStl(mesh))).notFinite.count, 4);
}

TEST_F(AssimpFile, isRefusedIfItBreaksOff) {
  const TriangleMesh mesh = octahedron();
  const std::string off = offFile(mesh), text = textStl(mesh), binary = binaryStl(mesh);
  EXPECT_EQ(faultOf("a.stl", binary.substr(0, 400)),
            ": has 400 bytes, but a binary STL file of 8 triangles has 484");
  EXPECT_EQ(faultOf("a.stl", text.substr(0, text.size() / 2)), ": breaks off: \"endsolid\" is missing");
  EXPECT_EQ(faultOf("a.stl", text.substr(0, text.find("endsolid"))), ": breaks off: \"endsolid\" is missing");
  EXPECT_NE(faultOf("a.off", off.substr(0, off.size() - 9)).find("number of faces"), std::string::npos);
  const std::string withinAVertex = faultOf("a.off", off.substr(0, 29));
  EXPECT_TRUE(withinAVertex.find("number of verts") != std::string::npos ||  // Assimp 5
              withinAVertex.find("breaks off") != std::string::npos ||       // Assimp 6.0
              withinAVertex.find("number of faces") != std::string::npos)    // Assimp 6.0.5
      << withinAVertex;
  EXPECT_NE(faultOf("a.off", off.substr(0, 30)).find("breaks off"), std::string::npos);
  EXPECT_EQ(faultOf("a.obj", verticesAsText(mesh, "v ")), ": has no triangle");
}

TEST_F(AssimpFile, isRefusedIfItHasAFault) {
  EXPECT_NE(faultOf("a.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 7\n").find("out of range"), std::string::npos);
  EXPECT_NE(faultOf("a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 4\n").find("out of range"), std::string::npos);
  EXPECT_NE(faultOf("a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 x\n").find("face"), std::string::npos);
  EXPECT_EQ(faultOf("a.stl", "no mesh\n"), ": has 8 bytes, too few for an STL file");
  EXPECT_NE(faultOf("a.off", "no mesh, but a line of text\n"), "");
  EXPECT_NE(faultOf("a.obj", "no mesh, but a line of text\n"), "");
}

TEST_F(MeshFile, isRefusedIfThereIsNothingToRead) {
  for (const char* name : {"a.obj", "a.off", "a.stl", "a.msh"}) {
    EXPECT_EQ(faultOf(name, ""), ": is empty");
    const std::string path = (folder_ / "missing" / name).string();
    EXPECT_EQ(badInputOf([&] { readMesh(path); }), path + ": no such file");
  }
  std::filesystem::create_directory(folder_ / "folder.msh");
  EXPECT_EQ(badInputOf([&] { readMesh((folder_ / "folder.msh").string()); }).substr(folder_.string().size()),
            "/folder.msh: is a folder");
  for (const char* name : {"a.ply", "a", "obj", "a.obj.gz"}) {
    EXPECT_EQ(faultOf(name, "x"), ": its name does not end with .obj, .off, .stl or .msh, which can be read");
  }
}

/// One kind of element on a surface, and in the file's words.
struct GmshSurface {
  std::vector<Point3> nodes;
  std::vector<std::vector<int>> elements;  ///< their corners
  int type, nodesPerElement;
};

GmshSurface gmshOctahedron(int type, int nodesPerElement) {
  GmshSurface surface{octahedron().vertices, {}, type, nodesPerElement};
  for (const auto& corners : octahedron().triangles) {
    surface.elements.emplace_back(corners.begin(), corners.end());
  }
  return surface;
}

GmshSurface gmshCube(int type, int nodesPerElement) {
  return {{{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}},
          {{3, 2, 1, 0}, {4, 5, 6, 7}, {0, 1, 5, 4}, {1, 2, 6, 5}, {2, 3, 7, 6}, {3, 0, 4, 7}},
          type,
          nodesPerElement};
}

/// Writes Gmsh's formats. Numbers are separated by blanks or, in binary, take their bytes.
class GmshWriter {
 public:
  GmshWriter(bool isVersion4, bool isBinary) : isVersion4_(isVersion4), isBinary_(isBinary) {
    out_ = std::string("$MeshFormat\n") + (isVersion4 ? "4.1 " : "2.2 ") + (isBinary ? "1" : "0") + " 8\n";
    if (isBinary) {
      append(out_, std::int32_t{1});
      out_ += "\n";
    }
    out_ += "$EndMeshFormat\n$PhysicalNames\n1\n2 1 \"skin\"\n$EndPhysicalNames\n";
  }

  /// Node i has the tag 10 * (i + 1); the last one is of no surface element.
  std::string file(const GmshSurface& surface) && {
    nodes(surface.nodes);
    elements(surface);
    return std::move(out_);
  }

 private:
  void integer(int value) { isBinary_ ? append(out_, std::int32_t{value}) : text(std::to_string(value)); }
  void size(std::int64_t value) { isBinary_ ? append(out_, value) : text(std::to_string(value)); }
  void real(double value) {
    if (isBinary_) {
      append(out_, value);
      return;
    }
    std::ostringstream shown;
    shown.precision(17);
    shown << value;
    text(shown.str());
  }
  void tag(std::int64_t value) { isVersion4_ ? size(value) : integer(static_cast<int>(value)); }
  void text(const std::string& word) { out_ += (out_.back() == '\n' ? "" : " ") + word; }
  void endLine() { out_ += isBinary_ ? "" : "\n"; }
  /// Version 4: of blocks, nodes or elements, least and largest tag. Version 2: the number alone, as text.
  void counts(std::int64_t blocks, std::int64_t count) {
    if (!isVersion4_) {
      out_ += std::to_string(count) + "\n";
      return;
    }
    for (const std::int64_t value : {blocks, count, std::int64_t{1}, std::int64_t{1000}}) {
      size(value);
    }
    endLine();
  }

  void nodes(std::vector<Point3> places) {
    places.push_back({0.5, 0.5, 0.5});
    const auto count = static_cast<std::int64_t>(places.size());
    out_ += "$Nodes\n";
    counts(1, count);
    if (isVersion4_) {
      integer(2), integer(1), integer(1), size(count);
      endLine();
      for (std::int64_t i = 0; i < count; ++i) {
        tag(10 * (i + 1));
        endLine();
      }
    }
    for (std::int64_t i = 0; i < count; ++i) {
      if (!isVersion4_) {
        tag(10 * (i + 1));
      }
      const Point3& p = places[static_cast<std::size_t>(i)];
      real(p.x), real(p.y), real(p.z);
      if (isVersion4_) {  // parametric
        real(0.25), real(0.75);
      }
      endLine();
    }
    out_ += std::string(isBinary_ ? "\n" : "") + "$EndNodes\n";
  }

  /// \param count elements follow
  void block(int type, int count) {
    if (isVersion4_) {
      integer(2), integer(1), integer(type), size(count);
      endLine();
    } else if (isBinary_) {
      integer(type), integer(count), integer(2);
    }
  }
  void element(int number, int type, const std::vector<std::int64_t>& tags) {
    tag(number);
    if (!isVersion4_) {
      if (!isBinary_) {
        integer(type), integer(2);
      }
      integer(1), integer(7);
    }
    for (const std::int64_t node : tags) {
      tag(node);
    }
    endLine();
  }

  void elements(const GmshSurface& surface) {
    const auto count = static_cast<int>(surface.elements.size());
    out_ += "$Elements\n";
    counts(3, count + 2);
    block(15, 1);
    element(1, 15, {10});
    block(4, 1);
    element(2, 4, {10, 20, 30, 40});
    block(surface.type, count);
    for (int e = 0; e < count; ++e) {
      std::vector<std::int64_t> tags;
      for (const int corner : surface.elements[e]) {
        tags.push_back(10 * (corner + 1));
      }
      // Nodes on edges and inside come after the corners.
      tags.resize(surface.nodesPerElement, 10 * (static_cast<std::int64_t>(surface.nodes.size()) + 1));
      element(3 + e, surface.type, tags);
    }
    out_ += std::string(isBinary_ ? "\n" : "") + "$EndElements\n";
  }

  bool isVersion4_, isBinary_;
  std::string out_;
};

TEST_F(MeshFile, ofGmshIsReadInAllVersionsWithAllSurfaceElements) {
  for (const bool isVersion4 : {false, true}) {
    for (const bool isBinary : {false, true}) {
      SCOPED_TRACE(std::string(isVersion4 ? "4.1" : "2.2") + (isBinary ? ", binary" : ", text"));
      for (const auto& [type, nodes] : {std::pair(2, 3), std::pair(9, 6), std::pair(21, 10)}) {
        const auto mesh = read("a.msh", GmshWriter(isVersion4, isBinary).file(gmshOctahedron(type, nodes)));
        expectSame(mesh, octahedron());
        expectClosedOutwardBodies(mesh, 1);
      }
      for (const auto& [type, nodes] : {std::pair(3, 4), std::pair(10, 9), std::pair(16, 8)}) {
        const auto mesh = read("a.msh", GmshWriter(isVersion4, isBinary).file(gmshCube(type, nodes)));
        EXPECT_EQ(mesh.numTriangles(), 12);
        EXPECT_EQ(mesh.vertices.size(), 8U);
        EXPECT_DOUBLE_EQ(volumeOf(mesh, 0), 1);
        expectClosedOutwardBodies(mesh, 1);
      }
    }
  }
}

TEST_F(MeshFile, ofGmshKeepsCoordinatesIn64Bits) {
  GmshSurface surface = gmshOctahedron(2, 3);
  surface.nodes[0].x = 1 + 1e-15;
  surface.nodes[3].y = -1.0 / 3;
  for (const bool isBinary : {false, true}) {
    const TriangleMesh mesh = read("a.msh", GmshWriter(true, isBinary).file(surface));
    EXPECT_EQ(mesh.vertices[0].x, 1 + 1e-15);
    EXPECT_EQ(mesh.vertices[3].y, -1.0 / 3);
  }
}

TEST_F(MeshFile, ofGmshSplitsQuadranglesAlongTheShorterDiagonal) {
  GmshSurface surface = gmshCube(3, 4);
  surface.elements = {{0, 1, 2, 3}};
  surface.nodes[2] = {3, 3, 0};
  for (const auto& corners : read("a.msh", GmshWriter(false, false).file(surface)).triangles) {
    EXPECT_EQ(std::count(corners.begin(), corners.end(), 1), 1);
    EXPECT_EQ(std::count(corners.begin(), corners.end(), 3), 1);
  }
}

TEST_F(MeshFile, ofGmshLeavesCoordinatesThatAreNotFiniteToCheckMesh) {
  for (const bool isBinary : {false, true}) {
    GmshSurface surface = gmshOctahedron(2, 3);
    surface.nodes[4].z = nan;
    EXPECT_EQ(checkMesh(read("a.msh", GmshWriter(true, isBinary).file(surface))).notFinite.count, 1);
  }
}

/// A triangle in version 2.2; lines as in the file.
std::string gmshTriangle(const std::string& nodes, const std::string& elements) {
  return "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n" + nodes + "$EndNodes\n$Elements\n" + elements +
         "$EndElements\n";
}

TEST_F(MeshFile, ofGmshIsRefusedWithTheLineOfTheFault) {
  const std::string nodes = "3\n1 0 0 0\n2 1 0 0\n3 0 1 0\n", element = "1\n1 2 2 1 1 1 2 3\n";
  EXPECT_EQ(read("a.msh", gmshTriangle(nodes, element)).numTriangles(), 1);
  EXPECT_EQ(read("a.msh", gmshTriangle(nodes, "2\n1 2 2 1 1 1 2 3\n2 999 0 1 2 3\n")).numTriangles(), 1)
      << "elements of other kinds do not count";
  EXPECT_EQ(faultOf("a.msh", gmshTriangle("3\n1 0 0 0\n2 1 zero 0\n3 0 1 0\n", element)),
            ", line 7 ($Nodes): 'zero' is no number that can be read");
  EXPECT_EQ(faultOf("a.msh", gmshTriangle("3\n1 0 0 0\n2 1 0\n3 0 1 0\n", element)),
            ", line 7 ($Nodes): the line ends where another number is expected");
  EXPECT_EQ(faultOf("a.msh", gmshTriangle("3\n1 0 0 0\n2 1 0 0\n2 0 1 0\n", element)),
            ", line 8 ($Nodes): node 2 is there already");
  EXPECT_EQ(faultOf("a.msh", gmshTriangle("2\n1 0 0 0\n2 1 0 0\n3 0 1 0\n", element)),
            ", line 8 ($Nodes): more is there than was announced: $EndNodes is missing");
  EXPECT_EQ(faultOf("a.msh", gmshTriangle("4\n1 0 0 0\n2 1 0 0\n3 0 1 0\n", element)),
            ", line 9 ($Nodes): '$EndNodes' is no whole number that can be read");
  EXPECT_EQ(faultOf("a.msh", gmshTriangle(nodes, "1\n1 2 2 1 1 1 2 4\n")),
            ", line 12 ($Elements): element 1 names node 4, which does not exist");
  EXPECT_EQ(faultOf("a.msh", gmshTriangle(nodes, "1\n1 2 -2 1 1 1 2 3\n")),
            ", line 12 ($Elements): 1 elements with -2 labels follow, where 1 elements are left");
  EXPECT_EQ(faultOf("a.msh", gmshTriangle(nodes, "1\n1 1 2 1 1 1 2\n")), ": has no triangle");
}

TEST_F(MeshFile, ofGmshIsRefusedIfItBreaksOffAnywhere) {
  for (const bool isVersion4 : {false, true}) {
    for (const bool isBinary : {false, true}) {
      const std::string whole = GmshWriter(isVersion4, isBinary).file(gmshOctahedron(9, 6));
      // The end of the last line may be missing.
      for (std::size_t length = 1; length + 1 < whole.size(); ++length) {
        const std::string fault = faultOf("a.msh", whole.substr(0, length));
        EXPECT_NE(fault, "") << length;
      }
    }
  }
  const std::string text = GmshWriter(false, false).file(gmshOctahedron(2, 3));
  EXPECT_EQ(faultOf("a.msh", text.substr(0, text.find("$Elements") - 20)),
            ": breaks off in its section $Nodes, which begins in line 8");
  EXPECT_EQ(faultOf("a.msh", text.substr(0, text.find("$Elements"))),
            ": has no section $Elements; does it break off?");
}

TEST_F(MeshFile, ofGmshIsRefusedIfItIsOfAnotherKind) {
  EXPECT_EQ(faultOf("a.msh", "no mesh"), ": does not begin with $MeshFormat, as Gmsh's files do");
  EXPECT_EQ(faultOf("a.msh", "$MeshFormat\n4 0 8\n$EndMeshFormat\n"),
            ", line 2 ($MeshFormat): a version other than 2.2 and 4.1; Gmsh's option Mesh.MshFileVersion sets it");
  std::string swapped = "$MeshFormat\n4.1 1 8\n";
  append(swapped, std::int32_t{0x01000000});
  EXPECT_NE(faultOf("a.msh", swapped).find("another order of bytes"), std::string::npos);
  EXPECT_NE(faultOf("a.msh", "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$ParametricNodes\n").find("SaveParametric"),
            std::string::npos);
  EXPECT_NE(faultOf("a.msh", "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n1 2 3\n").find("between sections"),
            std::string::npos);
  // Sizes that no file has do not take memory for them.
  EXPECT_NE(faultOf("a.msh", gmshTriangle("2000000000\n", "1\n")).find("breaks off"), std::string::npos);
}

// VTK

std::vector<unsigned char> fromBase64(const std::string& text) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<unsigned char> bytes;
  unsigned bits = 0;
  int numBits = 0;
  for (const char c : text) {
    if (c == '=') {
      break;
    }
    bits = bits << 6 | static_cast<unsigned>(letters.find(c));
    numBits += 6;
    if (numBits >= 8) {
      numBits -= 8;
      bytes.push_back(static_cast<unsigned char>(bits >> numBits & 255));
    }
  }
  return bytes;
}

/// The array of this name in a .vtu file, whose type must be `type`.
template <class T>
std::vector<T> arrayOf(const std::string& file, const std::string& name, const std::string& type) {
  const std::size_t at = file.find("type=\"" + type + "\" Name=\"" + name + "\"");
  EXPECT_NE(at, std::string::npos) << name;
  const std::size_t begin = file.find('>', at) + 1;
  const auto bytes = fromBase64(file.substr(begin, file.find('<', begin) - begin));
  std::uint64_t numBytes = 0;
  std::memcpy(&numBytes, bytes.data(), sizeof numBytes);
  EXPECT_EQ(numBytes + sizeof numBytes, bytes.size()) << name;
  std::vector<T> values(numBytes / sizeof(T));
  std::memcpy(values.data(), bytes.data() + sizeof numBytes, values.size() * sizeof(T));
  return values;
}

TEST(VtuFile, holdsTheMeshAndTheValues) {
  const TriangleMesh mesh = twoSpheresMesh(20 * 4);
  const std::vector<double> charge = areasOf(mesh);
  std::vector<double> potential(mesh.triangles.size(), -1e300);
  std::ostringstream out;
  writeVtu(out, mesh, {{"charge", &charge}, {"a < b & \"c\"", &potential}});
  const std::string file = out.str();
  EXPECT_NE(file.find("NumberOfPoints=\"" + std::to_string(mesh.vertices.size()) + "\" NumberOfCells=\"80\""),
            std::string::npos);
  const auto points = arrayOf<double>(file, "points", "Float64");
  ASSERT_EQ(points.size(), 3 * mesh.vertices.size());
  for (std::size_t v = 0; v < mesh.vertices.size(); ++v) {
    EXPECT_EQ(norm(mesh.vertices[v] - Point3{points[3 * v], points[3 * v + 1], points[3 * v + 2]}), 0);
  }
  const auto corners = arrayOf<std::int32_t>(file, "connectivity", "Int32");
  const auto ends = arrayOf<std::int64_t>(file, "offsets", "Int64");
  ASSERT_EQ(corners.size(), 3 * mesh.triangles.size());
  ASSERT_EQ(ends.size(), mesh.triangles.size());
  for (int t = 0; t < mesh.numTriangles(); ++t) {
    EXPECT_EQ(ends[t], 3 * (t + 1));
    EXPECT_TRUE(std::equal(mesh.triangles[t].begin(), mesh.triangles[t].end(), corners.begin() + 3 * t));
  }
  EXPECT_EQ(arrayOf<std::uint8_t>(file, "types", "UInt8"), std::vector<std::uint8_t>(mesh.triangles.size(), 5));
  EXPECT_EQ(arrayOf<std::int32_t>(file, "body", "Int32"), mesh.body);
  EXPECT_EQ(arrayOf<double>(file, "charge", "Float64"), charge);
  EXPECT_EQ(arrayOf<double>(file, "a &lt; b &amp; &quot;c&quot;", "Float64"), potential);
}

TEST(VtuFile, writesArraysOfAnyLength) {
  TriangleMesh mesh = octahedron();
  while (!mesh.triangles.empty()) {
    std::ostringstream out;
    writeVtu(out, mesh, {});
    EXPECT_EQ(arrayOf<std::uint8_t>(out.str(), "types", "UInt8").size(), mesh.triangles.size());
    EXPECT_EQ(arrayOf<std::int32_t>(out.str(), "body", "Int32"), std::vector<int>(mesh.triangles.size(), 0));
    mesh.triangles.pop_back();
  }
}

TEST(VtuFile, isRefusedIfLengthsOrNamesDoNotFit) {
  std::ostringstream out;
  TriangleMesh mesh = octahedron();
  const std::vector<double> seven(7), eight(8);
  EXPECT_EQ(badInputOf([&] { writeVtu(out, mesh, {{"charge", &seven}}); }),
            "writeVtu: 'charge' has 7 values, but the mesh has 8 triangles");
  EXPECT_EQ(badInputOf([&] { writeVtu(out, mesh, {{"charge", &eight}, {"charge", &eight}}); }),
            "writeVtu: the name 'charge' is taken already");
  EXPECT_EQ(badInputOf([&] { writeVtu(out, mesh, {{"body", &eight}}); }), "writeVtu: the name 'body' is taken already");
  EXPECT_EQ(badInputOf([&] { writeVtu(out, mesh, {{"", &eight}}); }), "writeVtu: the name '' is empty");
  mesh.body = {0, 1};
  EXPECT_EQ(badInputOf([&] { writeVtu(out, mesh, {}); }),
            "writeVtu: bodies of 2 triangles, but the mesh has 8 triangles");
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace Komvos
