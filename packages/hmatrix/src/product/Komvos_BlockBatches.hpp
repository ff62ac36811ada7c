/// \file Komvos_BlockBatches.hpp
/// To compare the product of Panels with: blocks stored one by one, multiplied in batches of gemv, as Yamazaki et al.
/// do ("Analyzing Performance of BiCGStab with Hierarchical Matrix on GPU Clusters", IPDPS 2018).
#pragma once

#include <Kokkos_Core.hpp>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "Komvos_BlockTree.hpp"
#include "Komvos_ClusterTree.hpp"
#include "Komvos_EntryKernel.hpp"
#include "Komvos_KokkosShim.hpp"
#include "Komvos_LowRank.hpp"

namespace Komvos::Impl {

/// What views hold for a scalar.
template <class Scalar>
struct BatchValue {
  using type = Scalar;
};
template <class Real>
struct BatchValue<std::complex<Real>> {
  using type = Kokkos::complex<Real>;
};

/// to[0, rows) += A from[0, columns), for A [rows x columns], column by column.
struct GemvTask {
  std::int64_t first;  ///< of the values of A
  int stride;          ///< from one column to the next
  int rows, columns;
  int from, to;  ///< places of one array that holds all vectors
};

struct BlockPlace;

/// Of tasks; values stay in the order of the block tree.
enum class BatchOrder {
  Tree,   ///< that of the block tree: unsorted
  Size,   ///< most values first
  Rows,   ///< fewest rows first, as in Figure 7(a)
  Groups  ///< Figure 7(b): group k has 8 (k - 1) + 1 to 8 k rows, k = 1, 2, ...; in a group, fewest columns first
};

enum class BatchLaunches {
  One,      ///< of all tasks
  Fixed,    ///< of BatchOptions::count tasks each: "fixed batch count", Figure 8(a) and (b)
  Variable  ///< of tasks in one range of rows, at most `count` of them: "variable batch count"; for sorted tasks
};

/// What a team multiplies its rows with.
enum class BatchLoop {
  Own,            ///< ours
  TeamGemv,       ///< KokkosBatched::TeamGemv, Algo::Gemv::Blocked
  TeamVectorGemv  ///< KokkosBatched::TeamVectorGemv, Algo::Gemv::Unblocked: there is no other
};

/// Whether the loops of KokkosBatched are there.
bool haveKokkosBatched();

struct BatchOptions {
  BatchOrder order = BatchOrder::Tree;
  BatchLaunches launches = BatchLaunches::One;
  BatchLoop loop = BatchLoop::Own;
  int count = 20000;  ///< the 20K of Figure 9
  /// Cut matrices into pieces of as many rows as a team has first, so that no team is idle. Not in the paper.
  bool cut = false;
};

/// Tasks [first, last) in one kernel. Each has as many teams as the one of most rows needs, and a team that has no rows
/// stops at once: the "adaptive subgrid truncation" of the paper, Figure 5. So a launch of tasks that differ much in
/// their rows has many idle teams.
struct BatchLaunch {
  int first, last;
  int tileRows;  ///< rows of a team: 8, 32 or mostTileRows()
  int tiles;     ///< teams of a task

  std::int64_t teams() const { return static_cast<std::int64_t>(last - first) * tiles; }
};

/// Rows of a team in a launch of matrices with more of them. On CPUs, where a team is a thread, long columns are read
/// faster; on GPUs, a row is a thread's.
constexpr int mostTileRows(bool onHost) { return onHost ? 1024 : 64; }

/// Sorts tasks, and divides them into launches.
struct BatchPlan {
  std::vector<GemvTask> tasks;
  std::vector<BatchLaunch> launches;

  /// \param onHost whether teams are threads of a CPU
  /// \throws BadInput unless options.count > 0
  BatchPlan(std::vector<GemvTask> unsorted, const BatchOptions& options, bool onHost);
};

/// Number of the range of "variable batch counts": rows up to 8, 32, 64, 96 and so on are in ranges 0, 1, 2, 3, ...
constexpr int rangeOfRows(int rows) { return rows <= 8 ? 0 : (rows + 31) / 32; }

/// The blocks of a matrix, with values, for an execution space. As in the paper, all tasks of dense blocks B and of
/// factors V^T come first; they give y += B x and t = V^T x. All tasks of factors U come second: y += U t. In both,
/// sums go to memory by atomic additions, so the last bits of a product may differ from one time to the next.
///
/// Factors V^T are stored as matrices [rank x columns], so that all tasks are products of matrices that are not
/// transposed.
template <class Scalar, class ExecutionSpace>
class BlockBatches {
 public:
  using value_type = typename BatchValue<Scalar>::type;
  using memory_space = typename BufferSpace<ExecutionSpace>::type;
  using values_view = Kokkos::View<value_type*, memory_space>;
  using input_view = Kokkos::View<const value_type*, memory_space>;

  /// Tasks that are ready to be launched.
  class Batches {
   public:
    int numLaunches() const { return static_cast<int>(plan_[0].size() + plan_[1].size()); }
    std::int64_t numTeams() const;

   private:
    friend class BlockBatches;
    BatchLoop loop_ = BatchLoop::Own;
    std::array<std::vector<BatchLaunch>, 2> plan_;
    std::array<Kokkos::View<GemvTask*, memory_space>, 2> tasks_;
  };

  /// \param blocks HMatrix::blocks() of a matrix of all rows and columns, made of the same kernel with the same options
  /// and whole values; then blocks have the same values
  /// \throws BadInput if a block has another rank than it says
  BlockBatches(const ClusterTree& rows, const ClusterTree& columns, const std::vector<Block>& blocks,
               const EntryKernel<Scalar>& kernel, const LowRankOptions& options);

  /// \throws BadInput if the loop is not there, or as BatchPlan
  Batches prepare(const BatchOptions& options) const;

  /// y = A x, in the user's order. \param x [columns] \param y [rows]
  /// \note Enqueued on `space`; not fenced. One product of an object at a time.
  /// \throws PlanMismatch if a view has another extent
  void multiply(const ExecutionSpace& space, const Batches& batches, const input_view& x, const values_view& y) const;

  /// The same by one call of the BLAS after another, on the host: Figure 6(a). \param x, y in host memory
  void multiplyByBlas(const Scalar* x, Scalar* y) const;

  std::int64_t numValues() const { return static_cast<std::int64_t>(values_.extent(0)); }

 private:
  void addTasks(const std::vector<Block>& blocks, const std::vector<BlockPlace>& places);

  int rows_ = 0, columns_ = 0, ranks_ = 0;
  std::vector<int> rowOrder_, columnOrder_;  ///< of the trees
  Kokkos::View<int*, memory_space> rowPlace_, columnPlace_;
  std::array<std::vector<GemvTask>, 2> tasks_;  ///< both in the order of blocks
  values_view values_;
  decltype(Kokkos::create_mirror_view(std::declval<values_view>())) hostValues_;
  values_view vectors_;  ///< x, then t, then y, by place
};

/// y += a x, by the BLAS. \param a [rows x columns], column by column
template <class Scalar>
void addGemv(int rows, int columns, const Scalar* a, const Scalar* x, Scalar* y);

/// sums[rows] = tile * x
/// \param stride from one column of the tile to the next
template <class Value>
using TileKernel = void (*)(const Value* tile, std::ptrdiff_t stride, int rows, int columns, const Value* x,
                            Value* sums);
/// That of the widest vectors of this CPU. On the host.
template <class Value>
TileKernel<Value> tileKernel();

}  // namespace Komvos::Impl
