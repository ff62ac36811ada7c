/// \file Komvos_BlockBatches_def.hpp
/// How it works: x, t and y are parts of one array, so that all tasks are of one kind. A team has some rows of a
/// matrix. On CPUs it is one thread, which goes through the columns of these rows. On GPUs its `lanes` take each one
/// row, and every so many-th column; then the lanes of a row are summed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "Komvos_BatchedGemv.hpp"
#include "Komvos_BlockBatches.hpp"
#include "Komvos_DeviceList.hpp"
#include "Komvos_Error.hpp"

namespace Komvos::Impl {

template <class Real>
KOKKOS_INLINE_FUNCTION void addAtomically(Real& to, const Real& value) {
  Kokkos::atomic_add(&to, value);
}
template <class Real>
KOKKOS_INLINE_FUNCTION void addAtomically(Kokkos::complex<Real>& to, const Kokkos::complex<Real>& value) {
  Kokkos::atomic_add(&to.real(), value.real());
  Kokkos::atomic_add(&to.imag(), value.imag());
}

/// One launch.
template <BatchLoop Loop, class Value, class ExecutionSpace>
struct BatchProduct {
  using policy = Kokkos::TeamPolicy<ExecutionSpace, Kokkos::Schedule<Kokkos::Dynamic>>;
  using team = typename policy::member_type;
  using scratch = Kokkos::View<Value*, typename ExecutionSpace::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  using space = typename ExecutionSpace::memory_space;
  using tile_view = Kokkos::View<const Value**, Kokkos::LayoutStride, space, Kokkos::MemoryUnmanaged>;
  using tile_input = Kokkos::View<const Value*, space, Kokkos::MemoryUnmanaged>;
  static constexpr bool onHost = runsOnHost<ExecutionSpace>();
  static constexpr int lanes = 2 * mostTileRows(false);

  const Value* values;
  const GemvTask* tasks;  ///< of the launch
  int tileRows, tiles;
  TileKernel<Value> kernel;  ///< of a CPU
  Value* vectors;

  static policy policyFor(const ExecutionSpace& space, const BatchLaunch& launch) {
    const int teams = static_cast<int>(launch.teams());
    const auto memory = Kokkos::PerTeam(scratch::shmem_size(std::max<int>(lanes, launch.tileRows)));
    if (onHost) {
      return policy(space, teams, 1).set_scratch_size(0, memory);
    }
    const bool hasVectors = Loop == BatchLoop::TeamVectorGemv;
    return policy(space, teams, hasVectors ? lanes / 16 : lanes, hasVectors ? 16 : 1).set_scratch_size(0, memory);
  }

  KOKKOS_INLINE_FUNCTION void operator()(const team& member) const {
    const GemvTask& task = tasks[member.league_rank() / tiles];
    const int row = member.league_rank() % tiles * tileRows;
    if (row >= task.rows) {
      return;
    }
    const int rows = task.rows - row < tileRows ? task.rows - row : tileRows;
    const Value* const tile = values + task.first + row;
    Value* const out = vectors + task.to + row;
    if constexpr (Loop != BatchLoop::Own) {
      multiplyBatched(member, task, tile, rows, out);
    } else if constexpr (onHost) {
      Value sums[mostTileRows(true)];
      kernel(tile, task.stride, rows, task.columns, vectors + task.from, sums);
      for (int r = 0; r < rows; ++r) {
        addAtomically(out[r], sums[r]);
      }
    } else {
      multiplyByLanes(member, task, tile, rows, out);
    }
  }

  KOKKOS_INLINE_FUNCTION void multiplyBatched(const team& member, const GemvTask& task, const Value* tile, int rows,
                                              Value* out) const {
    const scratch sums(member.team_scratch(0), rows);
    batchedGemv<Loop>(member, tile_view(tile, Kokkos::LayoutStride(rows, 1, task.columns, task.stride)),
                      tile_input(vectors + task.from, task.columns), sums);
    member.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, rows), [&](int r) {
      Kokkos::single(Kokkos::PerThread(member), [&] { addAtomically(out[r], sums(r)); });
    });
  }

  KOKKOS_INLINE_FUNCTION void multiplyByLanes(const team& member, const GemvTask& task, const Value* tile, int rows,
                                              Value* out) const {
    const scratch partial(member.team_scratch(0), lanes);
    const Value* const x = vectors + task.from;
    const int step = lanes / tileRows;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, lanes), [&](int lane) {
      const int r = lane % tileRows;
      Value sum = Value(0);
      if (r < rows) {
        for (int c = lane / tileRows; c < task.columns; c += step) {
          sum += tile[r + static_cast<std::ptrdiff_t>(c) * task.stride] * x[c];
        }
      }
      partial(lane) = sum;
    });
    member.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, rows), [&](int r) {
      Value sum = Value(0);
      for (int k = 0; k < step; ++k) {
        sum += partial(k * tileRows + r);
      }
      addAtomically(out[r], sum);
    });
  }
};

/// x by place, and zeros for t and y.
template <class Value>
struct SetVectors {
  const int* columnPlace;
  int columns;
  const Value* x;
  Value* vectors;
  KOKKOS_INLINE_FUNCTION void operator()(int i) const { vectors[i] = i < columns ? x[columnPlace[i]] : Value(0); }
};

template <class Value>
struct TakeOutput {
  const int* rowPlace;
  const Value* from;
  Value* y;
  KOKKOS_INLINE_FUNCTION void operator()(int i) const { y[rowPlace[i]] = from[i]; }
};

template <BatchLoop Loop, class Value, class ExecutionSpace>
void launchBatches(const ExecutionSpace& space, const std::vector<BatchLaunch>& launches, const Value* values,
                   const GemvTask* tasks, Value* vectors) {
  using Product = BatchProduct<Loop, Value, ExecutionSpace>;
  for (const BatchLaunch& launch : launches) {
    Kokkos::parallel_for(
        "Komvos::BlockBatches::multiply", Product::policyFor(space, launch),
        Product{values, tasks + launch.first, launch.tileRows, launch.tiles, tileKernel<Value>(), vectors});
  }
}

/// Where the values of a block begin: of B or V^T, and of U.
struct BlockPlace {
  std::int64_t first, second;
};

/// All tasks of the first kind come before all of the second, so that each pass reads memory in order if unsorted.
inline std::vector<BlockPlace> placesOfBlocks(const std::vector<Block>& blocks, std::int64_t& numValues) {
  std::vector<BlockPlace> places;
  BlockPlace next{0, 0};
  for (const Block& block : blocks) {
    places.push_back(next);
    next.first += static_cast<std::int64_t>(block.isAdmissible ? block.rank : block.rows()) * block.columns();
    next.second += block.isAdmissible ? static_cast<std::int64_t>(block.rows()) * block.rank : 0;
  }
  for (BlockPlace& place : places) {
    place.second += next.first;
  }
  numValues = next.first + next.second;
  return places;
}

/// Values of a block. \return its rank, or -1 of a dense one
template <class Scalar>
int storeBlock(const Block& block, const int* rowOrder, const int* columnOrder, const EntryKernel<Scalar>& kernel,
               const LowRankOptions& options, Scalar* first, Scalar* second) {
  const std::vector<int> rows(rowOrder + block.rowBegin, rowOrder + block.rowEnd);
  const std::vector<int> columns(columnOrder + block.columnBegin, columnOrder + block.columnEnd);
  if (!block.isAdmissible) {
    kernel.block(rows.data(), block.rows(), columns.data(), block.columns(), first);
    return -1;
  }
  const auto factors = approximate(kernel, rows, columns, options);
  if (!factors || factors->rank != block.rank) {
    return factors ? factors->rank : -1;
  }
  for (int c = 0; c < block.columns(); ++c) {
    for (int l = 0; l < block.rank; ++l) {
      *first++ = factors->v[static_cast<std::size_t>(l) * block.columns() + c];
    }
  }
  std::copy(factors->u.begin(), factors->u.end(), second);
  return block.rank;
}

/// Values of all blocks, by all threads of the host.
template <class Scalar>
void storeBlocks(const std::vector<Block>& blocks, const std::vector<BlockPlace>& places,
                 const std::vector<int>& rowOrder, const std::vector<int>& columnOrder,
                 const EntryKernel<Scalar>& kernel, const LowRankOptions& options, Scalar* values) {
  using Policy = Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace, Kokkos::Schedule<Kokkos::Dynamic>>;
  std::atomic<int> wrong{-1}, rankOfWrong{0};
  Kokkos::parallel_for("Komvos::BlockBatches: values",
                       Policy(0, static_cast<int>(blocks.size())).set_chunk_size(1), [&](int b) {
                         const int rank = storeBlock(blocks[b], rowOrder.data(), columnOrder.data(), kernel, options,
                                                     values + places[b].first, values + places[b].second);
                         if (rank != (blocks[b].isAdmissible ? blocks[b].rank : -1)) {
                           rankOfWrong = rank;
                           wrong = b;
                         }
                       });
  Kokkos::DefaultHostExecutionSpace().fence();
  if (wrong >= 0) {
    throw BadInput("BlockBatches: block " + std::to_string(wrong) + " has rank " + std::to_string(rankOfWrong) +
                   ", not " + std::to_string(blocks[wrong].rank) + " as it says");
  }
}

template <class Scalar, class ExecutionSpace>
std::int64_t BlockBatches<Scalar, ExecutionSpace>::Batches::numTeams() const {
  std::int64_t teams = 0;
  for (const auto& launches : plan_) {
    teams = std::accumulate(launches.begin(), launches.end(), teams,
                            [](std::int64_t sum, const BatchLaunch& launch) { return sum + launch.teams(); });
  }
  return teams;
}

template <class Scalar, class ExecutionSpace>
BlockBatches<Scalar, ExecutionSpace>::BlockBatches(const ClusterTree& rows, const ClusterTree& columns,
                                                   const std::vector<Block>& blocks, const EntryKernel<Scalar>& kernel,
                                                   const LowRankOptions& options)
    : rows_(rows.size()), columns_(columns.size()), rowOrder_(rows.order()), columnOrder_(columns.order()) {
  const std::int64_t ranks = std::accumulate(
      blocks.begin(), blocks.end(), std::int64_t{0},
      [](std::int64_t sum, const Block& block) { return sum + (block.isAdmissible ? block.rank : 0); });
  if (ranks + rows_ + columns_ > std::numeric_limits<int>::max()) {
    throw BadInput("BlockBatches: blocks of " + std::to_string(ranks) +
                   " ranks together; at most 2^31 - 1 are possible");
  }
  ranks_ = static_cast<int>(ranks);
  std::int64_t numValues = 0;
  const std::vector<BlockPlace> places = placesOfBlocks(blocks, numValues);
  values_ = values_view(Kokkos::view_alloc("Komvos::BlockBatches::values", Kokkos::WithoutInitializing),
                        static_cast<std::size_t>(numValues));
  hostValues_ = Kokkos::create_mirror_view(values_);
  storeBlocks(blocks, places, rowOrder_, columnOrder_, kernel, options, reinterpret_cast<Scalar*>(hostValues_.data()));
  Kokkos::deep_copy(values_, hostValues_);
  vectors_ = values_view("Komvos::BlockBatches::vectors", static_cast<std::size_t>(columns_ + ranks_ + rows_));
  rowPlace_ = deviceList<memory_space>("Komvos::BlockBatches::rowPlace", rowOrder_);
  columnPlace_ = deviceList<memory_space>("Komvos::BlockBatches::columnPlace", columnOrder_);
  addTasks(blocks, places);
}

template <class Scalar, class ExecutionSpace>
void BlockBatches<Scalar, ExecutionSpace>::addTasks(const std::vector<Block>& blocks,
                                                    const std::vector<BlockPlace>& places) {
  int t = columns_;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const Block& block = blocks[b];
    const int from = block.columnBegin, to = columns_ + ranks_ + block.rowBegin;
    if (!block.isAdmissible) {
      tasks_[0].push_back({places[b].first, block.rows(), block.rows(), block.columns(), from, to});
    } else if (block.rank > 0) {
      tasks_[0].push_back({places[b].first, block.rank, block.rank, block.columns(), from, t});
      tasks_[1].push_back({places[b].second, block.rows(), block.rows(), block.rank, t, to});
      t += block.rank;
    }
  }
}

template <class Scalar, class ExecutionSpace>
auto BlockBatches<Scalar, ExecutionSpace>::prepare(const BatchOptions& options) const -> Batches {
  if (options.loop != BatchLoop::Own && !kokkosBatchedIsThere) {
    throw BadInput("BlockBatches: Komvos was built without the headers of KokkosBatched");
  }
  Batches batches;
  batches.loop_ = options.loop;
  for (std::size_t pass = 0; pass < 2; ++pass) {
    BatchPlan plan(tasks_[pass], options, runsOnHost<ExecutionSpace>());
    batches.plan_[pass] = std::move(plan.launches);
    batches.tasks_[pass] = deviceList<memory_space>("Komvos::BlockBatches::tasks", plan.tasks);
  }
  return batches;
}

template <class Scalar, class ExecutionSpace>
void BlockBatches<Scalar, ExecutionSpace>::multiply(const ExecutionSpace& space, const Batches& batches,
                                                    const input_view& x, const values_view& y) const {
  if (static_cast<int>(x.extent(0)) != columns_ || static_cast<int>(y.extent(0)) != rows_) {
    throw PlanMismatch("BlockBatches::multiply: x has " + std::to_string(x.extent(0)) + " values and y " +
                       std::to_string(y.extent(0)) + "; the matrix is " + std::to_string(rows_) + " x " +
                       std::to_string(columns_));
  }
  const int outputs = columns_ + ranks_;
  Kokkos::parallel_for("Komvos::BlockBatches::multiply: x", range(space, 0, outputs + rows_),
                       SetVectors<value_type>{columnPlace_.data(), columns_, x.data(), vectors_.data()});
  for (std::size_t pass = 0; pass < 2; ++pass) {
    const auto launch = [&](auto loop) {
      launchBatches<decltype(loop)::value>(space, batches.plan_[pass], values_.data(), batches.tasks_[pass].data(),
                                           vectors_.data());
    };
    switch (batches.loop_) {
      case BatchLoop::Own:
        launch(std::integral_constant<BatchLoop, BatchLoop::Own>());
        break;
      case BatchLoop::TeamGemv:
        launch(std::integral_constant<BatchLoop, BatchLoop::TeamGemv>());
        break;
      case BatchLoop::TeamVectorGemv:
        launch(std::integral_constant<BatchLoop, BatchLoop::TeamVectorGemv>());
        break;
    }
  }
  Kokkos::parallel_for("Komvos::BlockBatches::multiply: y", range(space, 0, rows_),
                       TakeOutput<value_type>{rowPlace_.data(), vectors_.data() + outputs, y.data()});
}

template <class Scalar, class ExecutionSpace>
void BlockBatches<Scalar, ExecutionSpace>::multiplyByBlas(const Scalar* x, Scalar* y) const {
  const Scalar* const values = reinterpret_cast<const Scalar*>(hostValues_.data());
  const int outputs = columns_ + ranks_;
  std::vector<Scalar> vectors(static_cast<std::size_t>(outputs) + rows_);
  for (int i = 0; i < columns_; ++i) {
    vectors[i] = x[columnOrder_[i]];
  }
  const auto run = [&](const GemvTask& task) {
    addGemv(task.rows, task.columns, values + task.first, vectors.data() + task.from, vectors.data() + task.to);
  };
  auto second = tasks_[1].begin();
  for (const GemvTask& task : tasks_[0]) {
    run(task);
    if (task.to < outputs) {
      run(*second++);  // of the same block
    }
  }
  for (int i = 0; i < rows_; ++i) {
    y[rowOrder_[i]] = vectors[outputs + i];
  }
}

}  // namespace Komvos::Impl
