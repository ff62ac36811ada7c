/// \file Komvos_Panels_def.hpp
/// How it works: the values of all panels are one array, in the order in which they are read, so a product is one pass
/// over memory. On CPUs each thread has one piece of that array, and takes strips by Komvos_StripKernel.hpp. On GPUs a
/// team has a panel. Its `lanes` take each one row, and every so many-th column; then the lanes of a row are summed in
/// their order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "Komvos_Panels.hpp"

namespace Komvos::Impl {

/// What kernels need of Panels.
template <class Value>
struct PanelData {
  const Value* values;
  const Panel* panels;
  const PanelStrip* strips;
  const PanelRun* runs;
};

/// sums[rows x N] += strip * input: what a StripKernel does, in plain code. Four columns at a time: one load and one
/// store of a sum for four products.
template <int N, class Value>
KOKKOS_INLINE_FUNCTION void addStrip(const PanelData<Value>& data, const PanelStrip& strip, const Value* input,
                                     Value* sums) {
  const int rows = strip.rows;
  const Value* column = data.values + strip.firstValue;
  for (int run = strip.firstRun; run < strip.lastRun; ++run) {
    const Value* z = input + static_cast<std::ptrdiff_t>(data.runs[run].input) * N;
    const int columns = data.runs[run].columns;
    int c = 0;
    for (; c + 4 <= columns; c += 4, column += static_cast<std::ptrdiff_t>(4) * rows, z += 4 * N) {
      const Value *a = column, *b = a + rows, *d = b + rows, *e = d + rows;
      for (int r = 0; r < rows; ++r) {
        for (int q = 0; q < N; ++q) {
          sums[r * N + q] += (a[r] * z[q] + b[r] * z[N + q]) + (d[r] * z[2 * N + q] + e[r] * z[3 * N + q]);
        }
      }
    }
    for (; c < columns; ++c, column += rows, z += N) {
      for (int r = 0; r < rows; ++r) {
        for (int q = 0; q < N; ++q) {
          sums[r * N + q] += column[r] * z[q];
        }
      }
    }
  }
}

/// A thread has the panels of a share.
template <int N, class Value, class ExecutionSpace>
struct ThreadProduct {
  static constexpr bool onHost = runsOnHost<ExecutionSpace>();

  PanelData<Value> data;
  StripKernel<Value> stripKernel;  ///< or nullptr
  const int* share;
  const Value* input;
  Value* output;
  bool add;

  KOKKOS_INLINE_FUNCTION void operator()(int piece) const {
    Value sums[PanelLayout::mostRows * N];
    for (int p = share[piece]; p < share[piece + 1]; ++p) {
      const Panel panel = data.panels[p];
      Value* const out = output + static_cast<std::ptrdiff_t>(panel.output) * N;
      for (int i = 0; i < panel.rows * N; ++i) {
        sums[i] = add ? out[i] : Value(0);
      }
      for (int s = panel.firstStrip; s < panel.lastStrip; ++s) {
        const PanelStrip& strip = data.strips[s];
        if constexpr (onHost) {
          if (stripKernel != nullptr) {
            stripKernel(data.values + strip.firstValue, strip.rows, data.runs + strip.firstRun,
                        strip.lastRun - strip.firstRun, input, sums + strip.row * N);
            continue;
          }
        }
        addStrip<N>(data, strip, input, sums + strip.row * N);
      }
      for (int i = 0; i < panel.rows * N; ++i) {
        out[i] = sums[i];
      }
    }
  }
};

/// A team has a panel. The number of lanes does not depend on the team's size, so neither do the sums.
template <int N, class Value, class ExecutionSpace>
struct TeamProduct {
  using team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using scratch = Kokkos::View<Value*, typename ExecutionSpace::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  static constexpr int lanes = 2 * PanelLayout::mostRows;

  PanelData<Value> data;
  const Value* input;
  Value* output;
  bool add;

  static std::size_t scratchBytes() { return scratch::shmem_size((lanes + PanelLayout::mostRows) * N); }

  KOKKOS_INLINE_FUNCTION void operator()(const team& member) const {
    const Panel panel = data.panels[member.league_rank()];
    Value* const out = output + static_cast<std::ptrdiff_t>(panel.output) * N;
    const scratch memory(member.team_scratch(0), (lanes + PanelLayout::mostRows) * N);
    Value *const partial = memory.data(), *const sums = partial + lanes * N;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, panel.rows * N),
                         [&](int i) { sums[i] = add ? out[i] : Value(0); });
    member.team_barrier();
    for (int s = panel.firstStrip; s < panel.lastStrip; ++s) {
      const PanelStrip strip = data.strips[s];
      const int perRow = lanes / strip.rows;
      Kokkos::parallel_for(Kokkos::TeamThreadRange(member, perRow * strip.rows), [&](int lane) {
        multiplyLane(strip, lane % strip.rows, lane / strip.rows, perRow, partial);
      });
      member.team_barrier();
      Kokkos::parallel_for(Kokkos::TeamThreadRange(member, strip.rows * N), [&](int i) {
        const int row = i / N, q = i % N;
        Value sum = sums[strip.row * N + i];
        for (int k = 0; k < perRow; ++k) {
          sum += partial[(k * strip.rows + row) * N + q];
        }
        sums[strip.row * N + i] = sum;
      });
      member.team_barrier();
    }
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, panel.rows * N), [&](int i) { out[i] = sums[i]; });
  }

  KOKKOS_INLINE_FUNCTION void multiplyLane(const PanelStrip& strip, int row, int first, int step,
                                           Value* partial) const {
    Value sum[N];
    for (int q = 0; q < N; ++q) {
      sum[q] = Value(0);
    }
    const Value* column = data.values + strip.firstValue + row;
    int skip = first;
    for (int run = strip.firstRun; run < strip.lastRun; ++run) {
      const PanelRun r = data.runs[run];
      int c = skip;
      for (; c < r.columns; c += step) {
        const Value value = column[static_cast<std::ptrdiff_t>(c) * strip.rows];
        for (int q = 0; q < N; ++q) {
          sum[q] += value * input[(static_cast<std::ptrdiff_t>(r.input) + c) * N + q];
        }
      }
      skip = c - r.columns;
      column += static_cast<std::ptrdiff_t>(r.columns) * strip.rows;
    }
    for (int q = 0; q < N; ++q) {
      partial[(first * strip.rows + row) * N + q] = sum[q];
    }
  }
};

/// Each column of each strip, times the rows that the strip covers.
template <class Value, class ExecutionSpace>
struct TransposedProduct {
  using team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  PanelData<Value> data;
  const std::int64_t* firstColumn;
  const Value* input;
  Value* part;
  int numVectors;

  KOKKOS_INLINE_FUNCTION void operator()(const team& member) const {
    const Panel panel = data.panels[member.league_rank()];
    for (int s = panel.firstStrip; s < panel.lastStrip; ++s) {
      const PanelStrip strip = data.strips[s];
      const Value* const values = data.values + strip.firstValue;
      const Value* const x = input + (static_cast<std::ptrdiff_t>(panel.output) + strip.row) * numVectors;
      Value* const out = part + firstColumn[s] * numVectors;
      const int columns = static_cast<int>(firstColumn[s + 1] - firstColumn[s]);
      const int n = numVectors;
      Kokkos::parallel_for(Kokkos::TeamThreadRange(member, columns), [&](int c) {
        const Value* const column = values + static_cast<std::ptrdiff_t>(c) * strip.rows;
        for (int q = 0; q < n; ++q) {
          Value sum = Value(0);
          Kokkos::parallel_reduce(
              Kokkos::ThreadVectorRange(member, strip.rows),
              [&](int r, Value& to) { to += column[r] * x[static_cast<std::ptrdiff_t>(r) * n + q]; }, sum);
          Kokkos::single(Kokkos::PerThread(member), [&] { out[static_cast<std::ptrdiff_t>(c) * n + q] = sum; });
        }
      });
    }
  }
};

template <class Value, class ExecutionSpace>
auto Panels<Value, ExecutionSpace>::allocate(const std::string& label, const PanelLayout& layout) -> value_view {
  const std::size_t length = static_cast<std::size_t>(layout.numValues);
  const value_view values(Kokkos::view_alloc(label, Kokkos::WithoutInitializing), length + stripOverrun);
  Kokkos::deep_copy(Kokkos::subview(values, std::make_pair(length, length + stripOverrun)), Value(0));
  return values;
}

template <class Value, class ExecutionSpace>
Panels<Value, ExecutionSpace>::Panels(const PanelLayout& layout, value_view values)
    : numValues_(layout.numValues),
      values_(std::move(values)),
      panels_(deviceList<memory_space>("Komvos::Panels::panels", layout.panels)),
      strips_(deviceList<memory_space>("Komvos::Panels::strips", layout.strips)),
      runs_(deviceList<memory_space>("Komvos::Panels::runs", layout.runs)) {
  std::vector<std::int64_t> firstColumn{0};
  for (const PanelStrip& strip : layout.strips) {
    std::int64_t columns = 0;
    for (int run = strip.firstRun; run < strip.lastRun; ++run) {
      columns += layout.runs[run].columns;
    }
    firstColumn.push_back(firstColumn.back() + columns);
  }
  numColumns_ = firstColumn.back();
  firstColumn_ = deviceList<memory_space>("Komvos::Panels::firstColumn", firstColumn);
  // Four pieces a thread: where one is slowed down, the others take what is left.
  const int threads = ExecutionSpace().concurrency();
  const int pieces = threads == 1 ? 1 : std::min(4 * threads, static_cast<int>(layout.panels.size()));
  std::vector<int> share{0};
  for (int piece = 1; piece < pieces; ++piece) {
    const std::int64_t bound = layout.numValues / pieces * piece;
    const auto next = std::partition_point(layout.panels.begin() + share.back(), layout.panels.end(),
                                           [&](const Panel& panel) { return panel.lastValue <= bound; });
    share.push_back(static_cast<int>(next - layout.panels.begin()));
  }
  share.push_back(static_cast<int>(layout.panels.size()));
  share_ = deviceList<memory_space>("Komvos::Panels::share", share);
}

template <int N, class Value, class ExecutionSpace>
void launchProduct(const ExecutionSpace& space, PanelKernel kernel, VectorUnit unit, const PanelData<Value>& data,
                   int numPanels, const Kokkos::View<int*, typename BufferSpace<ExecutionSpace>::type>& share,
                   const Value* input, Value* output, bool add) {
  if (kernel == PanelKernel::Threads) {
    const int pieces = static_cast<int>(share.extent(0)) - 1;
    StripKernel<Value> strip = nullptr;
    if constexpr (std::is_floating_point_v<Value>) {
      strip = stripKernel<Value>(unit, N);
    }
    using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::Schedule<Kokkos::Dynamic>>;
    Kokkos::parallel_for("Komvos::Panels::multiply", Policy(space, 0, pieces).set_chunk_size(1),
                         ThreadProduct<N, Value, ExecutionSpace>{data, strip, share.data(), input, output, add});
    return;
  }
  using Teams = TeamProduct<N, Value, ExecutionSpace>;
  const int teamSize = runsOnHost<ExecutionSpace>() ? 1 : static_cast<int>(Teams::lanes);
  Kokkos::parallel_for("Komvos::Panels::multiply",
                       Kokkos::TeamPolicy<ExecutionSpace>(space, numPanels, teamSize)
                           .set_scratch_size(0, Kokkos::PerTeam(Teams::scratchBytes())),
                       Teams{data, input, output, add});
}

template <class Value, class ExecutionSpace>
void Panels<Value, ExecutionSpace>::multiply(const ExecutionSpace& space, PanelKernel kernel, int numVectors,
                                             const Value* input, Value* output, bool add) const {
  const int numPanels = static_cast<int>(panels_.extent(0));
  if (numPanels == 0) {
    return;
  }
  const PanelData<Value> data{values_.data(), panels_.data(), strips_.data(), runs_.data()};
  switch (numVectors) {
    case 1:
      return launchProduct<1>(space, kernel, vectorUnit_, data, numPanels, share_, input, output, add);
    case 2:
      return launchProduct<2>(space, kernel, vectorUnit_, data, numPanels, share_, input, output, add);
    case 4:
      return launchProduct<4>(space, kernel, vectorUnit_, data, numPanels, share_, input, output, add);
    case 8:
      return launchProduct<8>(space, kernel, vectorUnit_, data, numPanels, share_, input, output, add);
    default:
      if constexpr (mostVectors == 16) {
        launchProduct<16>(space, kernel, vectorUnit_, data, numPanels, share_, input, output, add);
      }
  }
}

template <class Value, class ExecutionSpace>
void Panels<Value, ExecutionSpace>::multiplyTransposed(const ExecutionSpace& space, int numVectors, const Value* input,
                                                       Value* part) const {
  const int numPanels = static_cast<int>(panels_.extent(0));
  if (numPanels == 0) {
    return;
  }
  const PanelData<Value> data{values_.data(), panels_.data(), strips_.data(), runs_.data()};
  using Product = TransposedProduct<Value, ExecutionSpace>;
  const Kokkos::TeamPolicy<ExecutionSpace> policy = runsOnHost<ExecutionSpace>()
                                                        ? Kokkos::TeamPolicy<ExecutionSpace>(space, numPanels, 1)
                                                        : Kokkos::TeamPolicy<ExecutionSpace>(space, numPanels, 8, 32);
  Kokkos::parallel_for("Komvos::Panels::multiplyTransposed", policy,
                       Product{data, firstColumn_.data(), input, part, numVectors});
}

}  // namespace Komvos::Impl
