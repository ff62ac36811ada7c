/// \file Komvos_ClusterTree.hpp
/// Unknowns sorted by where they are, in a binary tree of clusters.
#pragma once

#include <vector>

#include "Komvos_Box.hpp"
#include "Komvos_Point3.hpp"

namespace Komvos {

/// One cluster: the unknowns at places [begin, end) of the tree's order.
struct Cluster {
  int begin = 0, end = 0;
  int child = -1;  ///< the first of two children, which are neighbours in clusters(); -1 in a leaf
  Box box;         ///< around the supports of all its unknowns

  int size() const { return end - begin; }
  bool isLeaf() const { return child < 0; }
};

enum class ClusterSplit {
  LongestSide,   ///< across the longest side of the box around the centres
  PrincipalAxis  ///< across the direction in which the centres are spread most
};

struct ClusterOptions {
  int leafSize = 32;  ///< a cluster of more unknowns is split in two
  ClusterSplit split = ClusterSplit::LongestSide;
};

/// The unknowns of a boundary-element problem, halved again and again: half of a cluster's unknowns to each child, by
/// the position of their centres. The same points give the same tree, on all ranks and with any number of threads.
class ClusterTree {
 public:
  /// \param centres one for each unknown, in the user's order
  /// \param supports the box around what each unknown stands for, such as a triangle; empty if they are points
  /// \throws BadInput if there is none, if a coordinate is not finite, or the lists or options do not fit
  explicit ClusterTree(const std::vector<Point3>& centres, const std::vector<Box>& supports = {},
                       const ClusterOptions& options = {});

  int size() const { return static_cast<int>(order_.size()); }
  /// The root first; parents before their children.
  const std::vector<Cluster>& clusters() const { return clusters_; }
  const Cluster& root() const { return clusters_.front(); }
  /// The user's number of the unknown at each place.
  const std::vector<int>& order() const { return order_; }
  int depth() const { return depth_; }  ///< of a root alone: 1

 private:
  std::vector<Cluster> clusters_;
  std::vector<int> order_;
  int depth_ = 0;
};

}  // namespace Komvos
