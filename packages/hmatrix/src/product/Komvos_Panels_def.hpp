/// \file Komvos_Panels_def.hpp
/// How it works: the values of all panels are one array, in the order in which they are read, so a product is one pass
/// over memory. On CPUs each thread has one piece of that array, and takes strips by Komvos_StripKernel.hpp. On GPUs a
/// team has a panel. Its `lanes` take each one row, and every so many-th column; then the lanes of a row are summed in
/// their order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "Komvos_Panels.hpp"

namespace Komvos::Impl {

template <class Value>
struct RealPart {
  using type = Value;
};
template <class Real>
struct RealPart<Kokkos::complex<Real>> {
  using type = Real;
};

/// What kernels need of Panels.
template <class Value>
struct PanelData {
  const unsigned char* values;
  const Panel* panels;
  const PanelStrip* strips;
  const PanelRun* runs;
  const double* outputScale;  ///< or nullptr

  /// Values of a strip, without the scale of their run. \param index of the value in the strip
  KOKKOS_INLINE_FUNCTION Value valueAt(const PanelStrip& strip, std::ptrdiff_t index) const {
    const unsigned char* const upper = values + strip.firstByte;
    if (strip.format == ValueFormat::Whole) {
      return reinterpret_cast<const Value*>(upper)[index];
    }
    if constexpr (std::is_floating_point_v<Value>) {
      return integerAt<Value>(strip.format, upper, values + strip.lowerByte, index);
    } else {
      return Value(0);  // complex values are whole
    }
  }
  KOKKOS_INLINE_FUNCTION Value scaled(Value sum, std::ptrdiff_t output) const {
    return outputScale != nullptr ? sum * static_cast<typename RealPart<Value>::type>(outputScale[output]) : sum;
  }
};

/// sums[rows x N] += strip * input: what a StripKernel does, in plain code.
template <int N, class Value>
KOKKOS_INLINE_FUNCTION void addStrip(const PanelData<Value>& data, const PanelStrip& strip, const Value* input,
                                     Value* sums) {
  const int rows = strip.rows;
  std::ptrdiff_t index = 0;
  for (int run = strip.firstRun; run < strip.lastRun; ++run) {
    const Value* z = input + static_cast<std::ptrdiff_t>(data.runs[run].input) * N;
    const auto scale = static_cast<typename RealPart<Value>::type>(data.runs[run].scale);
    for (int c = 0; c < data.runs[run].columns; ++c, z += N) {
      for (int r = 0; r < rows; ++r, ++index) {
        const Value value = data.valueAt(strip, index) * scale;
        for (int q = 0; q < N; ++q) {
          sums[r * N + q] += value * z[q];
        }
      }
    }
  }
}

/// The same for whole values, four columns at a time: one load and one store of a sum for four products.
template <int N, class Value>
KOKKOS_INLINE_FUNCTION void addWholeStrip(const PanelData<Value>& data, const PanelStrip& strip, const Value* input,
                                          Value* sums) {
  const int rows = strip.rows;
  const Value* column = reinterpret_cast<const Value*>(data.values + strip.firstByte);
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

/// The kernels of a CPU for each format; none on other machines.
template <class Value>
struct StripKernels {
  StripKernel<Value> product[numValueFormats] = {};
  TransposedStripKernel<Value> transposed[numValueFormats] = {};

  StripKernels() = default;
  StripKernels(VectorUnit unit, int numVectors) {
    if constexpr (std::is_floating_point_v<Value>) {
      for (int f = 0; f < numValueFormats; ++f) {
        product[f] = stripKernel<Value>(unit, static_cast<ValueFormat>(f), numVectors);
        transposed[f] = numVectors == 1 ? transposedStripKernel<Value>(unit, static_cast<ValueFormat>(f)) : nullptr;
      }
    }
  }
};

/// A thread has the panels of a share.
template <int N, class Value, class ExecutionSpace>
struct ThreadProduct {
  static constexpr bool onHost = runsOnHost<ExecutionSpace>();

  PanelData<Value> data;
  StripKernels<Value> kernels;
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
          if (const auto kernel = kernels.product[static_cast<int>(strip.format)]) {
            kernel(data.values + strip.firstByte, data.values + strip.lowerByte, strip.rows, data.runs + strip.firstRun,
                   strip.lastRun - strip.firstRun, input, sums + strip.row * N);
            continue;
          }
        }
        if (strip.format == ValueFormat::Whole) {
          addWholeStrip<N>(data, strip, input, sums + strip.row * N);
        } else {
          addStrip<N>(data, strip, input, sums + strip.row * N);
        }
      }
      for (int i = 0; i < panel.rows * N; ++i) {
        out[i] = data.scaled(sums[i], panel.output + i / N);
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
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, panel.rows * N), [&](int i) { out[i] = data.scaled(sums[i], panel.output + i / N); });
  }

  KOKKOS_INLINE_FUNCTION void multiplyLane(const PanelStrip& strip, int row, int first, int step,
                                           Value* partial) const {
    Value sum[N];
    for (int q = 0; q < N; ++q) {
      sum[q] = Value(0);
    }
    std::ptrdiff_t column = row;
    int skip = first;
    for (int run = strip.firstRun; run < strip.lastRun; ++run) {
      const PanelRun r = data.runs[run];
      const auto scale = static_cast<typename RealPart<Value>::type>(r.scale);
      int c = skip;
      for (; c < r.columns; c += step) {
        const Value value = data.valueAt(strip, column + static_cast<std::ptrdiff_t>(c) * strip.rows) * scale;
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
  static constexpr bool onHost = runsOnHost<ExecutionSpace>();

  PanelData<Value> data;
  StripKernels<Value> kernels;
  const std::int64_t* firstColumn;
  const Value* input;
  Value* part;
  int numVectors;

  KOKKOS_INLINE_FUNCTION void operator()(const team& member) const {
    const Panel panel = data.panels[member.league_rank()];
    for (int s = panel.firstStrip; s < panel.lastStrip; ++s) {
      const PanelStrip strip = data.strips[s];
      const Value* const x = input + (static_cast<std::ptrdiff_t>(panel.output) + strip.row) * numVectors;
      Value* const out = part + firstColumn[s] * numVectors;
      if constexpr (onHost) {
        if (const auto kernel = kernels.transposed[static_cast<int>(strip.format)]) {
          kernel(data.values + strip.firstByte, data.values + strip.lowerByte, strip.rows, strip.columns, x, out);
          continue;
        }
      }
      multiplyStrip(member, strip, x, out);
    }
  }

  KOKKOS_INLINE_FUNCTION void multiplyStrip(const team& member, const PanelStrip& strip, const Value* x,
                                            Value* out) const {
    const int n = numVectors;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, strip.columns), [&](int c) {
      const std::ptrdiff_t column = static_cast<std::ptrdiff_t>(c) * strip.rows;
      for (int q = 0; q < n; ++q) {
        Value sum = Value(0);
        Kokkos::parallel_reduce(
            Kokkos::ThreadVectorRange(member, strip.rows),
            [&](int r, Value& to) {
              to += data.valueAt(strip, column + r) * x[static_cast<std::ptrdiff_t>(r) * n + q];
            },
            sum);
        Kokkos::single(Kokkos::PerThread(member), [&] { out[static_cast<std::ptrdiff_t>(c) * n + q] = sum; });
      }
    });
  }
};

template <class Value, class ExecutionSpace>
auto Panels<Value, ExecutionSpace>::allocate(const std::string& label, const PanelLayout& layout) -> byte_view {
  const auto length = static_cast<std::size_t>(layout.numBytes());
  const byte_view bytes(Kokkos::view_alloc(label, Kokkos::WithoutInitializing), length + stripOverrun);
  Kokkos::deep_copy(Kokkos::subview(bytes, std::make_pair(length, length + stripOverrun)), 0);
  return bytes;
}

template <class Value, class ExecutionSpace>
Panels<Value, ExecutionSpace>::Panels(const PanelLayout& layout, byte_view values, scale_view outputScale)
    : numBytes_(layout.bytesOfValues()),
      values_(std::move(values)),
      outputScale_(std::move(outputScale)),
      panels_(deviceList<memory_space>("Komvos::Panels::panels", layout.panels())),
      strips_(deviceList<memory_space>("Komvos::Panels::strips", layout.strips())),
      runs_(deviceList<memory_space>("Komvos::Panels::runs", layout.runs())) {
  std::vector<std::int64_t> firstColumn{0};
  for (const PanelStrip& strip : layout.strips()) {
    firstColumn.push_back(firstColumn.back() + strip.columns);
  }
  numColumns_ = firstColumn.back();
  firstColumn_ = deviceList<memory_space>("Komvos::Panels::firstColumn", firstColumn);
  // Four pieces a thread: where one is slowed down, the others take what is left.
  const int threads = ExecutionSpace().concurrency();
  const auto& panels = layout.panels();
  const int pieces = threads == 1 ? 1 : std::min(4 * threads, static_cast<int>(panels.size()));
  std::vector<int> share{0};
  for (int piece = 1; piece < pieces; ++piece) {
    const std::int64_t bound = layout.numBytes() / pieces * piece;
    const auto next = std::partition_point(panels.begin() + share.back(), panels.end(),
                                           [&](const Panel& panel) { return panel.lastByte <= bound; });
    share.push_back(static_cast<int>(next - panels.begin()));
  }
  share.push_back(static_cast<int>(panels.size()));
  share_ = deviceList<memory_space>("Komvos::Panels::share", share);
}

template <class Value>
void storeValues(const PanelLayout& layout, unsigned char* bytes, StripPlace place, StripLine line, int at, int count,
                 const Value* values, std::ptrdiff_t stride, double scale) {
  const PanelStrip& strip = layout.strips()[place.strip];
  unsigned char* const upper = bytes + strip.firstByte;
  const bool isRow = line == StripLine::Row;
  const std::int64_t first = static_cast<std::int64_t>(place.column) * strip.rows + at;
  const std::int64_t step = isRow ? strip.rows : 1;
  if (strip.format == ValueFormat::Whole) {
    for (int i = 0; i < count; ++i) {
      std::memcpy(upper + (first + i * step) * static_cast<std::int64_t>(sizeof(Value)), values + i * stride,
                  sizeof(Value));
    }
    return;
  }
  if constexpr (std::is_floating_point_v<Value>) {
    storeIntegers(strip.format, scale, upper, bytes + strip.lowerByte, first, step, count, values, stride);
  }
}

template <class Value>
void storeColumn(const PanelLayout& layout, unsigned char* bytes, StripPlace place, int row, int rows,
                 const Value* values, std::ptrdiff_t stride, double scale) {
  storeValues(layout, bytes, place, StripLine::Column, row, rows, values, stride, scale);
}

template <int N, class Value, class ExecutionSpace>
void launchProduct(const ExecutionSpace& space, PanelKernel kernel, VectorUnit unit, const PanelData<Value>& data,
                   int numPanels, const Kokkos::View<int*, typename BufferSpace<ExecutionSpace>::type>& share,
                   const Value* input, Value* output, bool add) {
  if (kernel == PanelKernel::Threads) {
    const int pieces = static_cast<int>(share.extent(0)) - 1;
    using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::Schedule<Kokkos::Dynamic>>;
    Kokkos::parallel_for("Komvos::Panels::multiply", Policy(space, 0, pieces).set_chunk_size(1),
                         ThreadProduct<N, Value, ExecutionSpace>{data, StripKernels<Value>(unit, N), share.data(),
                                                                 input, output, add});
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
  const PanelData<Value> data{values_.data(), panels_.data(), strips_.data(), runs_.data(), outputScale_.data()};
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
  const PanelData<Value> data{values_.data(), panels_.data(), strips_.data(), runs_.data(), outputScale_.data()};
  using Product = TransposedProduct<Value, ExecutionSpace>;
  const Kokkos::TeamPolicy<ExecutionSpace> policy = runsOnHost<ExecutionSpace>()
                                                        ? Kokkos::TeamPolicy<ExecutionSpace>(space, numPanels, 1)
                                                        : Kokkos::TeamPolicy<ExecutionSpace>(space, numPanels, 8, 32);
  Kokkos::parallel_for("Komvos::Panels::multiplyTransposed", policy,
                       Product{data, StripKernels<Value>(vectorUnit_, numVectors), firstColumn_.data(), input, part, numVectors});
}

}  // namespace Komvos::Impl
