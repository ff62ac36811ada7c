/// \file Komvos_Hodlr.hpp
/// The inverse of a matrix whose off-diagonal blocks are of low rank, down to small dense blocks.
#pragma once

#include <vector>

#include "Komvos_ClusterTree.hpp"
#include "Komvos_EntryKernel.hpp"
#include "Komvos_LowRank.hpp"

namespace Komvos::Impl {

/// Places [begin, end) of the tree's order. What belongs to both halves of an inner node:
///
///     A = [A1, u12 v12^T; u21 v21^T, A2]   with ranks k12, k21
template <class Scalar>
struct HodlrNode {
  int begin, end;
  int level;
  int child = -1;  ///< the first of two, which are neighbours; -1 in a leaf
  /// In a leaf, the inverse [n x n]. In an inner node that of [I, v12^T A2^-1 u21; v21^T A1^-1 u12, I],
  /// [k12 + k21 x k12 + k21].
  std::vector<Scalar> inverse;
  LowRank<Scalar> upper;  ///< A1^-1 u12, and v12
  LowRank<Scalar> lower;  ///< A2^-1 u21, and v21

  int size() const { return end - begin; }
  bool isLeaf() const { return child < 0; }
  int rank() const { return upper.rank + lower.rank; }
};

struct HodlrOptions {
  double accuracy = 0.1;  ///< of each off-diagonal block, in the Frobenius norm
  int leafSize = 100;     ///< a node of more unknowns is split
};

/// Weak admissibility: every block beside the diagonal is approximated. Nodes are the parts of the tree's clusters
/// within [begin, end); a block that has no low rank is taken as it is. Then, from the leaves up, with D = diag(A1,
/// A2), W = diag(u12, u21) and Z^T = [0, v12^T; v21^T, 0], by Woodbury's formula
///
///     A^-1 = D^-1 - D^-1 W (I + Z^T D^-1 W)^-1 Z^T D^-1
///
/// which is the solver of Ambikasaran and Darve, J. Sci. Comput. 57 (2013) 477-501. Making it takes O(n k^2 log^2 n)
/// operations, applying it O(n k log n).
/// \return the root first, parents before their children, levels one after the other; nothing for no places
/// \throws BadInput if a leaf or the small matrix of a node is singular, or an entry is not finite
template <class Scalar>
std::vector<HodlrNode<Scalar>> hodlrInverse(const ClusterTree& tree, int begin, int end,
                                            const EntryKernel<Scalar>& kernel, const HodlrOptions& options);

}  // namespace Komvos::Impl
