/// \file Komvos_Hodlr.cpp
#include "Komvos_Hodlr.hpp"

#include <algorithm>
#include <complex>
#include <numeric>
#include <string>
#include <utility>

#include "Komvos_DenseInverse.hpp"
#include "Komvos_HMatrix_def.hpp"
#include "Komvos_Lapack.hpp"

namespace Komvos::Impl {
namespace {

template <class Scalar>
class Factorization {
 public:
  using Node = HodlrNode<Scalar>;

  Factorization(const ClusterTree& tree, const EntryKernel<Scalar>& kernel, const HodlrOptions& options)
      : tree_(tree), kernel_(kernel), options_(options) {}

  std::vector<Node> run(int begin, int end) && {
    split(begin, end);
    approximateBlocks();
    for (int last = static_cast<int>(nodes_.size()); last > 0;) {
      int first = last - 1;
      while (first > 0 && nodes_[first - 1].level == nodes_[last - 1].level) {
        --first;
      }
      factorLevel(first, last);
      last = first;
    }
    return std::move(nodes_);
  }

 private:
  /// Nodes of [begin, end), as the tree's clusters split it.
  void split(int begin, int end) {
    const auto& clusters = tree_.clusters();
    std::vector<int> cluster{0};  // that holds the node
    nodes_.push_back({begin, end, 0, -1, {}, {}, {}});
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const int b = nodes_[i].begin, e = nodes_[i].end, level = nodes_[i].level;
      if (e - b <= std::max(1, options_.leafSize)) {
        continue;
      }
      int c = cluster[i], middle = b + (e - b + 1) / 2;
      while (!clusters[c].isLeaf()) {
        const int between = clusters[clusters[c].child].end;
        if (between > b && between < e) {
          middle = between;
          break;
        }
        c = clusters[c].child + (between <= b ? 1 : 0);
      }
      const bool isLeaf = clusters[c].isLeaf();
      nodes_[i].child = static_cast<int>(nodes_.size());
      nodes_.push_back(Node{b, middle, level + 1, -1, {}, {}, {}});
      nodes_.push_back(Node{middle, e, level + 1, -1, {}, {}, {}});
      cluster.push_back(isLeaf ? c : clusters[c].child);
      cluster.push_back(isLeaf ? c : clusters[c].child + 1);
    }
  }

  std::vector<int> unknownsOf(const Node& node) const {
    return {tree_.order().begin() + node.begin, tree_.order().begin() + node.end};
  }

  LowRank<Scalar> blockOf(const Node& rowNode, const Node& columnNode) const {
    const std::vector<int> rows = unknownsOf(rowNode), columns = unknownsOf(columnNode);
    LowRankOptions lowRank;
    lowRank.accuracy = options_.accuracy;
    if (auto found = approximate(kernel_, rows, columns, lowRank)) {
      return std::move(*found);
    }
    // The block itself, and the identity on its shorter side.
    const int m = rowNode.size(), n = columnNode.size(), least = std::min(m, n);
    std::vector<Scalar> whole(static_cast<std::size_t>(m) * n);
    kernel_.block(rows.data(), m, columns.data(), n, whole.data());
    requireFinite(whole, rows.data(), m, columns.data());
    std::vector<Scalar> identity(static_cast<std::size_t>(least) * least);
    for (int i = 0; i < least; ++i) {
      identity[static_cast<std::size_t>(i) * (least + 1)] = 1;
    }
    LowRank<Scalar> block{m, n, least, {}, {}};
    if (n <= m) {
      block.u = std::move(whole);
      block.v = std::move(identity);
    } else {
      block.u = std::move(identity);
      block.v.resize(whole.size());
      for (int j = 0; j < n; ++j) {
        for (int i = 0; i < m; ++i) {
          block.v[static_cast<std::size_t>(i) * n + j] = whole[static_cast<std::size_t>(j) * m + i];
        }
      }
    }
    recompress(block, options_.accuracy);
    return block;
  }

  /// All of them at once, large ones first: they are on the upper levels.
  void approximateBlocks() {
    std::vector<Node*> inner;
    for (Node& node : nodes_) {
      if (!node.isLeaf()) {
        inner.push_back(&node);
      }
    }
    forAllOnHost(2 * inner.size(), [&](std::size_t i) {
      Node& node = *inner[i / 2];
      const Node &one = nodes_[node.child], &two = nodes_[node.child + 1];
      (i % 2 == 0 ? node.upper : node.lower) = i % 2 == 0 ? blockOf(one, two) : blockOf(two, one);
    });
  }

  void factorLevel(int first, int last) {
    const auto count = static_cast<std::size_t>(last - first);
    forAllOnHost(2 * count, [&](std::size_t i) {
      Node& node = nodes_[first + static_cast<int>(i / 2)];
      if (!node.isLeaf()) {
        LowRank<Scalar>& block = i % 2 == 0 ? node.upper : node.lower;
        solve(nodes_[node.child + static_cast<int>(i % 2)], block.u.data(), block.rows, block.rank);
      }
    });
    forAllOnHost(count, [&](std::size_t i) {
      Node& node = nodes_[first + static_cast<int>(i)];
      node.isLeaf() ? invertLeaf(node) : invertSmall(node);
    });
  }

  void invertLeaf(Node& node) const {
    const std::vector<int> unknowns = unknownsOf(node);
    const int n = node.size();
    std::vector<Scalar> block(static_cast<std::size_t>(n) * n);
    kernel_.block(unknowns.data(), n, unknowns.data(), n, block.data());
    requireFinite(block, unknowns.data(), n, unknowns.data());
    node.inverse = inverseOf(n, std::move(block), "the block of places " + nameOf(node));
  }

  // S = I + Z^T D^-1 W = [I, v12^T A2^-1 u21; v21^T A1^-1 u12, I]
  void invertSmall(Node& node) const {
    const LowRank<Scalar>&upper = node.upper, &lower = node.lower;
    const int k = node.rank();
    std::vector<Scalar> small(static_cast<std::size_t>(k) * k);
    for (int i = 0; i < k; ++i) {
      small[static_cast<std::size_t>(i) * (k + 1)] = 1;
    }
    addProduct(true, upper.rank, lower.rank, lower.rows, Scalar(1), upper.v.data(), lower.rows, lower.u.data(),
               lower.rows, Scalar(0), small.data() + static_cast<std::size_t>(upper.rank) * k, std::max(k, 1));
    addProduct(true, lower.rank, upper.rank, upper.rows, Scalar(1), lower.v.data(), upper.rows, upper.u.data(),
               upper.rows, Scalar(0), small.data() + upper.rank, std::max(k, 1));
    node.inverse = inverseOf(k, std::move(small), "the coupling of both halves of places " + nameOf(node));
  }

  static std::string nameOf(const Node& node) {
    return "[" + std::to_string(node.begin) + ", " + std::to_string(node.end) + ")";
  }

  /// b = A^-1 b, for a node that is factored. \param b [node.size() x columns], `stride` from column to column
  void solve(const Node& node, Scalar* b, int stride, int columns) const {
    if (columns == 0) {
      return;
    }
    if (node.isLeaf()) {
      const int n = node.size();
      std::vector<Scalar> x(static_cast<std::size_t>(n) * columns);
      addProduct(false, n, columns, n, Scalar(1), node.inverse.data(), n, b, stride, Scalar(0), x.data(), n);
      for (int c = 0; c < columns; ++c) {
        std::copy_n(x.data() + static_cast<std::size_t>(c) * n, n, b + static_cast<std::size_t>(c) * stride);
      }
      return;
    }
    const LowRank<Scalar>&upper = node.upper, &lower = node.lower;
    Scalar* const second = b + upper.rows;
    solve(nodes_[node.child], b, stride, columns);
    solve(nodes_[node.child + 1], second, stride, columns);
    const int k = node.rank();
    if (k == 0) {
      return;
    }
    // t = Z^T b, s = S^-1 t, b -= D^-1 W s
    std::vector<Scalar> t(static_cast<std::size_t>(k) * columns), s(t.size());
    addProduct(true, upper.rank, columns, lower.rows, Scalar(1), upper.v.data(), lower.rows, second, stride, Scalar(0),
               t.data(), k);
    addProduct(true, lower.rank, columns, upper.rows, Scalar(1), lower.v.data(), upper.rows, b, stride, Scalar(0),
               t.data() + upper.rank, k);
    addProduct(false, k, columns, k, Scalar(1), node.inverse.data(), k, t.data(), k, Scalar(0), s.data(), k);
    addProduct(false, upper.rows, columns, upper.rank, Scalar(-1), upper.u.data(), upper.rows, s.data(), k, Scalar(1),
               b, stride);
    addProduct(false, lower.rows, columns, lower.rank, Scalar(-1), lower.u.data(), lower.rows, s.data() + upper.rank, k,
               Scalar(1), second, stride);
  }

  const ClusterTree& tree_;
  const EntryKernel<Scalar>& kernel_;
  HodlrOptions options_;
  std::vector<Node> nodes_;
};

}  // namespace

template <class Scalar>
std::vector<HodlrNode<Scalar>> hodlrInverse(const ClusterTree& tree, int begin, int end,
                                            const EntryKernel<Scalar>& kernel, const HodlrOptions& options) {
  return begin < end ? Factorization<Scalar>(tree, kernel, options).run(begin, end) : std::vector<HodlrNode<Scalar>>();
}

#define KOMVOS_INSTANTIATE_HODLR(S)                                                                    \
  template std::vector<HodlrNode<S>> hodlrInverse(const ClusterTree&, int, int, const EntryKernel<S>&, \
                                                  const HodlrOptions&);
KOMVOS_INSTANTIATE_HODLR(float)
KOMVOS_INSTANTIATE_HODLR(double)
KOMVOS_INSTANTIATE_HODLR(std::complex<double>)
#undef KOMVOS_INSTANTIATE_HODLR

}  // namespace Komvos::Impl
