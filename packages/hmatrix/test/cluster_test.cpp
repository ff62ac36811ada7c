/// \file cluster_test.cpp
/// The cluster tree and the block tree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "Komvos_BlockTree.hpp"
#include "Komvos_Error.hpp"
#include "point_sets.hpp"

namespace Komvos {
namespace {

TEST(ClusterTree, holdsEachUnknownOnceInLeavesOfTheAskedSize) {
  for (const ClusterSplit split : {ClusterSplit::LongestSide, ClusterSplit::PrincipalAxis}) {
    for (const int n : {1, 2, 15, 16, 1000, 1023}) {
      const auto points = test::spiralOnSphere(n);
      const ClusterTree tree(points, {}, {15, split});
      std::vector<int> order = tree.order(), all(n);
      std::sort(order.begin(), order.end());
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(order, all);
      EXPECT_EQ(tree.root().size(), n);
      for (const Cluster& cluster : tree.clusters()) {
        if (cluster.isLeaf()) {
          EXPECT_LE(cluster.size(), 15);
          continue;
        }
        const Cluster &a = tree.clusters()[cluster.child], &b = tree.clusters()[cluster.child + 1];
        EXPECT_EQ(a.begin, cluster.begin);
        EXPECT_EQ(a.end, b.begin);
        EXPECT_EQ(b.end, cluster.end);
        EXPECT_LE(std::abs(a.size() - b.size()), 1);
      }
    }
  }
}

TEST(ClusterTree, boxesHoldTheSupports) {
  const auto points = test::spiralOnSphere(300);
  std::vector<Box> supports;
  for (const Point3& p : points) {
    supports.push_back({p - Point3{0.1, 0.2, 0.3}, p + Point3{0.3, 0.2, 0.1}});
  }
  const ClusterTree tree(points, supports, {10});
  for (const Cluster& cluster : tree.clusters()) {
    Box box = supports[tree.order()[cluster.begin]];
    for (int i = cluster.begin; i < cluster.end; ++i) {
      box = enclosing(box, supports[tree.order()[i]]);
    }
    EXPECT_EQ(distance(box, cluster.box), 0);
    EXPECT_DOUBLE_EQ(box.diameter(), cluster.box.diameter());
  }
}

TEST(ClusterTree, aPrincipalAxisSplitsALongDiagonalAcross) {
  std::vector<Point3> points;
  for (int i = 0; i < 64; ++i) {
    points.push_back({1.0 * i, 1.0 * i + (i % 2), -0.5 * i});
  }
  const ClusterTree tree(points, {}, {32, ClusterSplit::PrincipalAxis});
  ASSERT_EQ(tree.clusters().size(), 3U);
  const auto& order = tree.order();
  const int most = *std::max_element(order.begin(), order.begin() + 32);
  EXPECT_TRUE(most == 31 || *std::min_element(order.begin(), order.begin() + 32) == 32);
}

TEST(ClusterTree, unknownsInOnePlaceAreSplitToo) {
  const ClusterTree tree(std::vector<Point3>(100, Point3{1, 2, 3}), {}, {8, ClusterSplit::PrincipalAxis});
  EXPECT_EQ(tree.root().box.diameter(), 0);
  for (const Cluster& cluster : tree.clusters()) {
    EXPECT_TRUE(!cluster.isLeaf() || cluster.size() <= 8);
  }
}

TEST(ClusterTree, refusesBadInputWithNumbers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(ClusterTree({}), BadInput);
  EXPECT_THROW(ClusterTree({{0, 0, 0}}, {}, {0}), BadInput);
  EXPECT_THROW(ClusterTree({{0, 0, 0}}, std::vector<Box>(2)), BadInput);
  try {
    ClusterTree({{0, 0, 0}, {0, nan, 0}, {nan, 0, 0}});
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("2 of 3"), std::string::npos) << error.what();
  }
}

TEST(BlockTree, coversEachEntryOnce) {
  const auto points = test::spiralOnSphere(333), others = test::spiralOnSphere(150);
  const ClusterTree rows(points, {}, {10}), columns(others, {}, {7});
  std::vector<int> covered(rows.size() * columns.size());
  for (const Block& block : blockLeaves(rows, columns, 1.5)) {
    for (int i = block.rowBegin; i < block.rowEnd; ++i) {
      for (int j = block.columnBegin; j < block.columnEnd; ++j) {
        ++covered[i * columns.size() + j];
      }
    }
  }
  EXPECT_EQ(std::count(covered.begin(), covered.end(), 1), static_cast<std::ptrdiff_t>(covered.size()));
}

TEST(BlockTree, theLowerHalfAndItsMirrorCoverTheMatrix) {
  const ClusterTree tree(test::spiralOnSphere(501), {}, {16});
  const int n = tree.size();
  std::vector<int> covered(n * n);
  std::size_t numOffDiagonal = 0, numDiagonal = 0;
  const auto half = blockLeaves(tree, tree, 2, BlockHalf::Lower);
  for (const Block& block : half) {
    const bool onDiagonal = block.rowBegin == block.columnBegin && block.rowEnd == block.columnEnd;
    ++(onDiagonal ? numDiagonal : numOffDiagonal);
    for (int i = block.rowBegin; i < block.rowEnd; ++i) {
      for (int j = block.columnBegin; j < block.columnEnd; ++j) {
        ++covered[i * n + j];
        covered[j * n + i] += onDiagonal ? 0 : 1;
      }
    }
  }
  EXPECT_EQ(std::count(covered.begin(), covered.end(), 1), n * n);
  EXPECT_EQ(blockLeaves(tree, tree, 2).size(), 2 * numOffDiagonal + numDiagonal);
}

TEST(BlockTree, admissibleBlocksAreFarEnoughApart) {
  const auto points = test::spiralOnSphere(600);
  const ClusterTree tree(points, {}, {20});
  const auto boxOf = [&](int begin, int end) {
    Box box{points[tree.order()[begin]], points[tree.order()[begin]]};
    for (int i = begin; i < end; ++i) {
      box = enclosing(box, {points[tree.order()[i]], points[tree.order()[i]]});
    }
    return box;
  };
  std::size_t numAdmissible = 0;
  for (const Block& block : blockLeaves(tree, tree, 0.8)) {
    const Box t = boxOf(block.rowBegin, block.rowEnd), s = boxOf(block.columnBegin, block.columnEnd);
    if (block.isAdmissible) {
      ++numAdmissible;
      EXPECT_LE(std::min(t.diameter(), s.diameter()), 0.8 * distance(t, s));
    } else {
      EXPECT_LE(block.rows(), 20);
      EXPECT_LE(block.columns(), 20);
    }
  }
  EXPECT_GT(numAdmissible, 100U);
}

TEST(BlockTree, refusesAnEtaThatMakesNoSense) {
  const ClusterTree tree({{0, 0, 0}}), other({{0, 0, 0}});
  EXPECT_THROW(blockLeaves(tree, tree, 0), BadInput);
  EXPECT_THROW(blockLeaves(tree, tree, std::numeric_limits<double>::infinity()), BadInput);
  EXPECT_THROW(blockLeaves(tree, other, 1, BlockHalf::Lower), BadInput);
  EXPECT_EQ(blockLeaves(tree, tree, 1).size(), 1U);
}

}  // namespace
}  // namespace Komvos
