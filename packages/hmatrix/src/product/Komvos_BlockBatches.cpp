/// \file Komvos_BlockBatches.cpp
/// The loop over a tile is compiled for each kind of CPU, as in Komvos_StripKernel.cpp, so that what is compared is how
/// blocks are stored and batched, not the instructions.
#include "Komvos_BlockBatches.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>

#include "Komvos_BatchedGemv.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_StripKernel.hpp"

extern "C" {
#define KOMVOS_DECLARE(name, T)                                                                               \
  void name##_(const char* trans, const int* m, const int* n, const T* alpha, const T* a, const int* lda,     \
               const T* x, const int* incx, const T* beta, T* y, const int* incy);
KOMVOS_DECLARE(sgemv, float)
KOMVOS_DECLARE(dgemv, double)
KOMVOS_DECLARE(zgemv, std::complex<double>)
#undef KOMVOS_DECLARE
}

#ifdef KOMVOS_HAVE_VECTOR_UNITS
#define KOMVOS_INLINE __attribute__((always_inline)) inline
#else
#define KOMVOS_INLINE inline
#endif

namespace Komvos::Impl {
namespace {

/// Pieces of at most so many rows.
std::vector<GemvTask> cutTasks(const std::vector<GemvTask>& tasks, int most) {
  std::vector<GemvTask> pieces;
  for (const GemvTask& task : tasks) {
    for (int row = 0; row < task.rows; row += most) {
      pieces.push_back(
          {task.first + row, task.stride, std::min(task.rows - row, most), task.columns, task.from, task.to + row});
    }
  }
  return pieces;
}

void sortTasks(std::vector<GemvTask>& tasks, BatchOrder order) {
  const auto keyOf = [order](const GemvTask& task) -> std::tuple<std::int64_t, int> {
    switch (order) {
      case BatchOrder::Size:
        return {-static_cast<std::int64_t>(task.rows) * task.columns, 0};
      case BatchOrder::Rows:
        return {task.rows, 0};
      default:
        return {(task.rows - 1) / 8, task.columns};
    }
  };
  if (order != BatchOrder::Tree) {
    std::stable_sort(tasks.begin(), tasks.end(),
                     [&](const GemvTask& a, const GemvTask& b) { return keyOf(a) < keyOf(b); });
  }
}

/// \param mostRows of its tasks
BatchLaunch launchOf(int first, int last, int mostRows, bool onHost) {
  const int tileRows = mostRows <= 8 ? 8 : mostRows <= 32 ? 32 : mostTileRows(onHost);
  return {first, last, tileRows, (mostRows + tileRows - 1) / tileRows};
}

/// R rows, with their sums in registers: one set of them for even columns, one for odd ones.
template <int R, class Value>
KOMVOS_INLINE void multiplyRows(const Value* tile, std::ptrdiff_t stride, int columns, const Value* x, Value* sums) {
  Value even[R] = {}, odd[R] = {};
  int c = 0;
  for (; c + 2 <= columns; c += 2, tile += 2 * stride) {
    for (int r = 0; r < R; ++r) {
      even[r] += tile[r] * x[c];
    }
    for (int r = 0; r < R; ++r) {
      odd[r] += tile[stride + r] * x[c + 1];
    }
  }
  for (int r = 0; r < R; ++r) {
    sums[r] = even[r] + odd[r] + (c < columns ? tile[r] * x[c] : Value(0));
  }
}

/// The number of rows, at most R, as a constant: ranks are small.
template <int R, class Value>
KOMVOS_INLINE void multiplyFewRows(const Value* tile, std::ptrdiff_t stride, int rows, int columns, const Value* x,
                                   Value* sums) {
  if (rows == R) {
    multiplyRows<R>(tile, stride, columns, x, sums);
  } else if constexpr (R > 1) {
    multiplyFewRows<R - 1>(tile, stride, rows, columns, x, sums);
  }
}

template <class Value>
KOMVOS_INLINE void multiplyTile(const Value* tile, std::ptrdiff_t stride, int rows, int columns, const Value* x,
                                Value* sums) {
  constexpr int few = 16;
  if constexpr (std::is_floating_point_v<Value>) {
    if (rows <= few) {
      multiplyFewRows<few>(tile, stride, rows, columns, x, sums);
      return;
    }
  }
  for (int r = 0; r < rows; ++r) {
    sums[r] = Value(0);
  }
  int c = 0;
  for (; c + 4 <= columns; c += 4, tile += 4 * stride) {
    const Value *a = tile, *b = a + stride, *d = b + stride, *e = d + stride;
    const Value xa = x[c], xb = x[c + 1], xd = x[c + 2], xe = x[c + 3];
    for (int r = 0; r < rows; ++r) {
      sums[r] += (a[r] * xa + b[r] * xb) + (d[r] * xd + e[r] * xe);
    }
  }
  for (; c < columns; ++c, tile += stride) {
    for (int r = 0; r < rows; ++r) {
      sums[r] += tile[r] * x[c];
    }
  }
}

template <class Value>
void plainTile(const Value* tile, std::ptrdiff_t stride, int rows, int columns, const Value* x, Value* sums) {
  multiplyTile(tile, stride, rows, columns, x, sums);
}
template <class Value>
KOMVOS_TARGET_AVX2
void avx2Tile(const Value* tile, std::ptrdiff_t stride, int rows, int columns, const Value* x, Value* sums) {
  multiplyTile(tile, stride, rows, columns, x, sums);
}
template <class Value>
KOMVOS_TARGET_AVX512
void avx512Tile(const Value* tile, std::ptrdiff_t stride, int rows, int columns, const Value* x, Value* sums) {
  multiplyTile(tile, stride, rows, columns, x, sums);
}

}  // namespace

bool haveKokkosBatched() { return kokkosBatchedIsThere; }

BatchPlan::BatchPlan(std::vector<GemvTask> unsorted, const BatchOptions& options, bool onHost)
    : tasks(std::move(unsorted)) {
  if (options.count < 1) {
    throw BadInput("BatchPlan: launches of " + std::to_string(options.count) + " tasks; at least 1 is needed");
  }
  if (options.cut) {
    tasks = cutTasks(tasks, mostTileRows(onHost));
  }
  sortTasks(tasks, options.order);
  const int most = options.launches == BatchLaunches::One ? std::numeric_limits<int>::max() : options.count;
  const std::int64_t mostTeams = 1 << 30;  // a league's size is an int
  const int numTasks = static_cast<int>(tasks.size());
  for (int first = 0; first < numTasks;) {
    int last = first + 1, rows = tasks[first].rows;
    for (; last < numTasks && last - first < most; ++last) {
      const int more = std::max(rows, tasks[last].rows);
      const bool isOfRange = rangeOfRows(tasks[last].rows) == rangeOfRows(tasks[first].rows);
      if ((options.launches == BatchLaunches::Variable && !isOfRange) ||
          launchOf(first, last + 1, more, onHost).teams() > mostTeams) {
        break;
      }
      rows = more;
    }
    launches.push_back(launchOf(first, last, rows, onHost));
    first = last;
  }
}

template <class Value>
TileKernel<Value> tileKernel() {
  switch (widestVectorUnit()) {
    case VectorUnit::Avx512:
      return avx512Tile<Value>;
    case VectorUnit::Avx2:
      return avx2Tile<Value>;
    default:
      break;
  }
  return plainTile<Value>;
}

template <class Scalar>
void addGemv(int rows, int columns, const Scalar* a, const Scalar* x, Scalar* y) {
  const Scalar one = 1;
  const int next = 1;
  if constexpr (std::is_same_v<Scalar, float>) {
    sgemv_("N", &rows, &columns, &one, a, &rows, x, &next, &one, y, &next);
  } else if constexpr (std::is_same_v<Scalar, double>) {
    dgemv_("N", &rows, &columns, &one, a, &rows, x, &next, &one, y, &next);
  } else {
    zgemv_("N", &rows, &columns, &one, a, &rows, x, &next, &one, y, &next);
  }
}

template void addGemv(int, int, const float*, const float*, float*);
template void addGemv(int, int, const double*, const double*, double*);
template void addGemv(int, int, const std::complex<double>*, const std::complex<double>*, std::complex<double>*);
template TileKernel<float> tileKernel();
template TileKernel<double> tileKernel();
template TileKernel<Kokkos::complex<double>> tileKernel();

}  // namespace Komvos::Impl
