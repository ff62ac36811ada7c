/// \file Komvos_LocalInverse_def.hpp
/// How it works. Blocks share entries with their neighbours, and an entry of a boundary-element matrix takes longer
/// than what LAPACK does with it. So a batch of neighbouring blocks is done at a time: first all entries that they
/// need, each once, as matrices between units; then the blocks are put together from these, and factored.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "Komvos_DenseInverse.hpp"
#include "Komvos_HMatrix_def.hpp"
#include "Komvos_LocalInverse.hpp"

namespace Komvos::Impl {

/// The entries between pairs of units, each evaluated once.
template <class Scalar>
class UnitEntries {
 public:
  UnitEntries(const ClusterTree& tree, const LocalBlocks& local, const EntryKernel<Scalar>& kernel)
      : tree_(tree), local_(local), kernel_(kernel) {}

  /// What a block needs. \return how many of these entries no block before asked for
  std::int64_t request(const LocalBlock& block) {
    std::int64_t entries = 0;
    for (const int column : block.units) {
      for (const int row : block.units) {
        if (entries_.try_emplace({row, column}).second) {
          entries += static_cast<std::int64_t>(local_.units[row].size()) * local_.units[column].size();
        }
      }
    }
    return entries;
  }

  void evaluate() {
    std::vector<typename decltype(entries_)::value_type*> all;
    for (auto& pair : entries_) {
      all.push_back(&pair);
    }
    forAllOnHost(all.size(), [&](std::size_t i) {
      const BlockUnit &rows = local_.units[all[i]->first.first], &columns = local_.units[all[i]->first.second];
      const int *const rowUnknowns = tree_.order().data() + rows.begin, *const columnUnknowns =
                                                                            tree_.order().data() + columns.begin;
      std::vector<Scalar>& values = all[i]->second;
      values.resize(static_cast<std::size_t>(rows.size()) * columns.size());
      kernel_.block(rowUnknowns, rows.size(), columnUnknowns, columns.size(), values.data());
      requireFinite(values, rowUnknowns, rows.size(), columnUnknowns);
    });
  }

  /// [n x n] of an extended block, once all was evaluated.
  std::vector<Scalar> matrixOf(const LocalBlock& block) const {
    const int n = local_.extendedSize(block);
    std::vector<Scalar> matrix(static_cast<std::size_t>(n) * n);
    int firstColumn = 0;
    for (const int column : block.units) {
      const int columns = local_.units[column].size();
      int firstRow = 0;
      for (const int row : block.units) {
        const int rows = local_.units[row].size();
        const Scalar* from = entries_.at({row, column}).data();
        for (int c = 0; c < columns; ++c, from += rows) {
          std::copy_n(from, rows, matrix.data() + static_cast<std::size_t>(firstColumn + c) * n + firstRow);
        }
        firstRow += rows;
      }
      firstColumn += columns;
    }
    return matrix;
  }

  void forget() { entries_.clear(); }

 private:
  const ClusterTree& tree_;
  const LocalBlocks& local_;
  const EntryKernel<Scalar>& kernel_;
  std::map<std::pair<int, int>, std::vector<Scalar>> entries_;
};

/// The part of a block that has its rows here.
inline std::pair<int, int> ownRows(const LocalBlock& block, int begin, int end) {
  return {std::max(block.begin, begin), std::min(block.end, end)};
}

/// Where a place is among those of the extended block.
inline int positionIn(const LocalBlocks& local, const LocalBlock& block, int place) {
  int position = 0;
  for (const int u : block.units) {
    if (place < local.units[u].end) {
      return position + place - local.units[u].begin;
    }
    position += local.units[u].size();
  }
  return position;
}

template <class Scalar, class Value, class ExecutionSpace>
LocalInverse<Value, ExecutionSpace> denseInverse(const ClusterTree& tree, const LocalBlocks& local, int begin, int end,
                                                 const EntryKernel<Scalar>& kernel) {
  constexpr std::int64_t mostEntries = 1 << 24;  // of a batch
  LocalInverse<Value, ExecutionSpace> result;
  std::vector<std::pair<int, int>> needed;
  for (const LocalBlock& block : local.blocks) {
    const auto ranges = local.rangesOf(block);
    needed.insert(needed.end(), ranges.begin(), ranges.end());
  }
  result.inputs = PlaceRanges(needed);
  result.output = result.inputs.length();
  result.workLength = result.output + (end - begin);

  std::vector<DenseMatrix> matrices;
  for (const LocalBlock& block : local.blocks) {
    const auto [first, last] = ownRows(block, begin, end);
    matrices.push_back({first - begin, last - first, {}});
    for (const auto& [from, to] : local.rangesOf(block)) {
      matrices.back().inputs.emplace_back(result.inputs.positionOf(from), to - from);
    }
    const int size = local.extendedSize(block);
    result.largestBlock = std::max(result.largestBlock, size);
    result.numValues += static_cast<std::int64_t>(last - first) * size;
  }
  PanelMaker<Scalar, Value, ExecutionSpace> maker("Komvos::HMatrixPreconditioner::rows", matrices);
  UnitEntries<Scalar> entries(tree, local, kernel);
  const std::size_t numBlocks = local.blocks.size();
  for (std::size_t done = 0; done < numBlocks;) {
    std::size_t next = done;
    for (std::int64_t count = 0; next < numBlocks && count < mostEntries; ++next) {
      count += entries.request(local.blocks[next]);
    }
    entries.evaluate();
    forAllOnHost(next - done, [&](std::size_t i) {
      const std::size_t b = done + i;
      const LocalBlock& block = local.blocks[b];
      const auto [first, last] = ownRows(block, begin, end);
      const int n = local.extendedSize(block);
      const std::string what = "the block of places [" + std::to_string(block.begin) + ", " +
                               std::to_string(block.end) + "), number " + std::to_string(b) + " of " +
                               std::to_string(numBlocks);
      const std::vector<Scalar> rows =
          rowsOfInverse(n, entries.matrixOf(block), positionIn(local, block, first), last - first, what);
      maker.store(b, rows.data(), n, 1);
    });
    entries.forget();
    done = next;
  }
  result.steps.push_back({maker.make(), 0, result.output, false});
  return result;
}

/// The steps of one level: t = Z^T y, s = S^-1 t, y -= D^-1 W s.
template <class Scalar, class Value, class ExecutionSpace>
class HodlrSteps {
 public:
  using result_type = LocalInverse<Value, ExecutionSpace>;
  using node_type = HodlrNode<Scalar>;

  HodlrSteps(const std::vector<node_type>& nodes, result_type& result) : nodes_(nodes), result_(result) {}

  void addLeaves() {
    std::vector<DenseMatrix> matrices;
    std::vector<const node_type*> leaves;
    for (const node_type& node : nodes_) {
      if (node.isLeaf()) {
        matrices.push_back({place(node), node.size(), {{place(node), node.size()}}});
        leaves.push_back(&node);
      }
    }
    add(matrices, 0, result_.output, false,
        [&](auto& maker, std::size_t m) { maker.store(m, leaves[m]->inverse.data(), 1, leaves[m]->size()); });
  }

  void addLevel(int level) {
    std::vector<const node_type*> inner;
    std::vector<int> rankBefore{0};
    for (const node_type& node : nodes_) {
      if (node.level == level && !node.isLeaf() && node.rank() > 0) {
        inner.push_back(&node);
        rankBefore.push_back(rankBefore.back() + node.rank());
      }
    }
    const int t = result_.output + place(nodes_.front()) + nodes_.front().size(), s = t + rankBefore.back();
    result_.workLength = std::max(result_.workLength, s + rankBefore.back());
    std::vector<DenseMatrix> gather, small, scatter;
    for (std::size_t i = 0; i < inner.size(); ++i) {
      const node_type& node = *inner[i];
      const node_type &one = nodes_[node.child], &two = nodes_[node.child + 1];
      const int first = rankBefore[i], second = first + node.upper.rank;
      gather.push_back({first, node.upper.rank, {{place(two), two.size()}}});
      gather.push_back({second, node.lower.rank, {{place(one), one.size()}}});
      small.push_back({first, node.rank(), {{first, node.rank()}}});
      // A factor of rank 0 leaves its rows as they are.
      scatter.push_back({place(one), node.upper.rank > 0 ? one.size() : 0, {{first, node.upper.rank}}});
      scatter.push_back({place(two), node.lower.rank > 0 ? two.size() : 0, {{second, node.lower.rank}}});
    }
    const auto half = [&](std::size_t m) -> const LowRank<Scalar>& {
      return m % 2 == 0 ? inner[m / 2]->upper : inner[m / 2]->lower;
    };
    add(gather, result_.output, t, false,
        [&](auto& maker, std::size_t m) { maker.store(m, half(m).v.data(), half(m).columns, 1); });
    add(small, t, s, false,
        [&](auto& maker, std::size_t m) { maker.store(m, inner[m]->inverse.data(), 1, inner[m]->rank()); });
    add(scatter, s, result_.output, true, [&](auto& maker, std::size_t m) {
      std::vector<Scalar> negative = half(m).u;
      for (Scalar& value : negative) {
        value = -value;
      }
      maker.store(m, negative.data(), 1, half(m).rows);
    });
  }

 private:
  int place(const node_type& node) const { return node.begin - nodes_.front().begin; }

  template <class Store>
  void add(const std::vector<DenseMatrix>& matrices, int input, int output, bool toWhatIsThere, const Store& store) {
    PanelMaker<Scalar, Value, ExecutionSpace> maker("Komvos::HMatrixPreconditioner::factors", matrices);
    forAllOnHost(matrices.size(), [&](std::size_t m) { store(maker, m); });
    for (const DenseMatrix& matrix : matrices) {
      for (const auto& run : matrix.inputs) {
        result_.numValues += static_cast<std::int64_t>(matrix.rows) * run.second;
      }
    }
    result_.steps.push_back({maker.make(), input, output, toWhatIsThere});
  }

  const std::vector<node_type>& nodes_;
  result_type& result_;
};

template <class Scalar, class Value, class ExecutionSpace>
LocalInverse<Value, ExecutionSpace> hodlrLocalInverse(const ClusterTree& tree, int begin, int end,
                                                      const EntryKernel<Scalar>& kernel, const HodlrOptions& options) {
  LocalInverse<Value, ExecutionSpace> result;
  result.inputs = PlaceRanges({{begin, end}});
  result.output = end - begin;
  result.workLength = 2 * (end - begin);
  const auto nodes = hodlrInverse(tree, begin, end, kernel, options);
  if (nodes.empty()) {
    return result;
  }
  for (const auto& node : nodes) {
    result.largestBlock = std::max(result.largestBlock, node.isLeaf() ? node.size() : 0);
    result.largestRank = std::max({result.largestRank, node.upper.rank, node.lower.rank});
  }
  HodlrSteps<Scalar, Value, ExecutionSpace> steps(nodes, result);
  steps.addLeaves();
  for (int level = nodes.back().level - 1; level >= 0; --level) {
    steps.addLevel(level);
  }
  return result;
}

}  // namespace Komvos::Impl
