/// \file Komvos_Panels_def.hpp
/// How it works: the values of all panels are one array, in the order in which they are read, so a product is one pass
/// over memory. On CPUs each thread has one piece of that array, and takes strips by Komvos_StripKernel.hpp. On GPUs a
/// team has a task of a TeamPlan, see Komvos_TeamProduct.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <numeric>
#include <type_traits>
#include <utility>

#include "Komvos_PanelData.hpp"
#include "Komvos_Panels.hpp"
#include "Komvos_PartLists.hpp"
#include "Komvos_TeamProduct.hpp"

namespace Komvos::Impl {

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

/// out [columns x vectors] = strip^T * x, for columns [column, column + columns), in plain code.
template <class Value>
KOKKOS_INLINE_FUNCTION void dotPlainColumns(const PanelData<Value>& data, const PanelStrip& strip, int column,
                                            int columns, int numVectors, const Value* x, Value* out) {
  for (int c = 0; c < columns; ++c) {
    const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(column + c) * strip.rows;
    for (int q = 0; q < numVectors; ++q) {
      Value sum = Value(0);
      for (int r = 0; r < strip.rows; ++r) {
        sum += data.valueAt(strip, first + r) * x[static_cast<std::ptrdiff_t>(r) * numVectors + q];
      }
      out[static_cast<std::ptrdiff_t>(c) * numVectors + q] = sum;
    }
  }
}

/// The kernels of a CPU for each format; none on other machines.
template <class Value>
struct StripKernels {
  StripKernel<Value> product[numValueFormats] = {};
  TransposedStripKernel<Value> transposed[numValueFormats] = {};
  StripKernelOfBoth<Value> both[numValueFormats] = {};  ///< of one vector

  StripKernels() = default;
  StripKernels(VectorUnit unit, int numVectors) {
    if constexpr (std::is_floating_point_v<Value>) {
      for (int f = 0; f < numValueFormats; ++f) {
        product[f] = stripKernel<Value>(unit, static_cast<ValueFormat>(f), numVectors);
        transposed[f] = transposedStripKernel<Value>(unit, static_cast<ValueFormat>(f));
        both[f] = numVectors == 1 ? stripKernelOfBoth<Value>(unit, static_cast<ValueFormat>(f)) : nullptr;
      }
    }
  }
};

/// Columns of a strip, by the kernel that there is for it.
template <class Value>
void dotColumns(const PanelData<Value>& data, const StripKernels<Value>& kernels, const PanelStrip& strip, int column,
                int columns, int numVectors, const Value* x, Value* out) {
  const auto kernel = kernels.transposed[static_cast<int>(strip.format)];
  if (kernel == nullptr) {
    return dotPlainColumns(data, strip, column, columns, numVectors, x, out);
  }
  const std::ptrdiff_t index = static_cast<std::ptrdiff_t>(column) * strip.rows;
  const int width = strip.format == ValueFormat::Whole ? static_cast<int>(sizeof(Value)) : upperBytes(strip.format);
  kernel(data.values + strip.firstByte + index * width, data.values + strip.lowerByte + index * lowerBytes(strip.format),
         strip.rows, columns, numVectors, x, out);
}

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

  /// sums += strip * input
  KOKKOS_INLINE_FUNCTION void addProduct(const PanelStrip& strip, Value* sums) const {
    if constexpr (onHost) {
      if (const auto kernel = kernels.product[static_cast<int>(strip.format)]) {
        kernel(data.values + strip.firstByte, data.values + strip.lowerByte, strip.rows, data.runs + strip.firstRun,
               strip.lastRun - strip.firstRun, input, sums);
        return;
      }
    }
    if (strip.format == ValueFormat::Whole) {
      addWholeStrip<N>(data, strip, input, sums);
    } else {
      addStrip<N>(data, strip, input, sums);
    }
  }

  KOKKOS_INLINE_FUNCTION void operator()(int piece) const {
    Value sums[PanelLayout::mostRows * N];
    for (int p = share[piece]; p < share[piece + 1]; ++p) {
      const Panel panel = data.panels[p];
      Value* const out = output + static_cast<std::ptrdiff_t>(panel.output) * N;
      for (int i = 0; i < panel.rows * N; ++i) {
        sums[i] = add ? out[i] : Value(0);
      }
      for (int s = panel.firstStrip; s < panel.lastStrip; ++s) {
        addProduct(data.strips[s], sums + data.strips[s].row * N);
      }
      for (int i = 0; i < panel.rows * N; ++i) {
        out[i] = data.scaled(sums[i], panel.output + i / N);
      }
    }
  }
};

/// ThreadProduct, and what each column of each strip adds to the transposed product, a few columns at a time: these
/// are in the nearest cache when they are taken a second time.
template <int N, class Value, class ExecutionSpace>
struct ThreadProductOfBoth {
  static constexpr int mostBytes = 16 * 1024, mostColumns = 256;

  ThreadProduct<N, Value, ExecutionSpace> product;
  const std::int64_t* firstColumn;
  const Value* rows;
  Value* part;

  void operator()(int piece) const {
    const PanelData<Value>& data = product.data;
    Value sums[PanelLayout::mostRows * N];
    for (int p = product.share[piece]; p < product.share[piece + 1]; ++p) {
      const Panel panel = data.panels[p];
      std::fill_n(sums, panel.rows * N, Value(0));
      for (int s = panel.firstStrip; s < panel.lastStrip; ++s) {
        const PanelStrip& strip = data.strips[s];
        addStripTwice(strip, sums + strip.row * N, rows + (static_cast<std::ptrdiff_t>(panel.output) + strip.row) * N,
                      part + firstColumn[s] * N);
      }
      Value* const out = product.output + static_cast<std::ptrdiff_t>(panel.output) * N;
      for (int i = 0; i < panel.rows * N; ++i) {
        out[i] = data.scaled(sums[i], panel.output + i / N);
      }
    }
  }

  void addStripTwice(const PanelStrip& strip, Value* sums, const Value* x, Value* out) const {
    const PanelData<Value>& data = product.data;
    if (const auto kernel = product.kernels.both[static_cast<int>(strip.format)]) {
      kernel(data.values + strip.firstByte, data.values + strip.lowerByte, strip.rows, data.runs + strip.firstRun,
             strip.lastRun - strip.firstRun, product.input, sums, x, out);
      return;
    }
    const bool isWhole = strip.format == ValueFormat::Whole;
    const int width = isWhole ? static_cast<int>(sizeof(Value)) : upperBytes(strip.format);
    const int most = std::clamp(mostBytes / (strip.rows * (width + lowerBytes(strip.format))), 1, mostColumns);
    // That of one vector looks at runs behind those that it is given.
    const auto kernel = N == 1 ? nullptr : product.kernels.product[static_cast<int>(strip.format)];
    if (kernel == nullptr) {
      product.addProduct(strip, sums);
    }
    PanelRun cut[mostColumns];
    RunCutter cutter(data.runs + strip.firstRun, strip.lastRun - strip.firstRun);
    int numRuns = 0, column = 0;
    while (const int columns = cutter.next(most, cut, numRuns)) {
      if (kernel != nullptr) {
        const std::ptrdiff_t index = static_cast<std::ptrdiff_t>(column) * strip.rows;
        kernel(data.values + strip.firstByte + index * width,
               data.values + strip.lowerByte + index * lowerBytes(strip.format), strip.rows, cut, numRuns,
               product.input, sums);
      }
      dotColumns(data, product.kernels, strip, column, columns, N, x, out);
      if (!isWhole) {
        scaleRuns(cut, numRuns, out);
      }
      column += columns;
      out += static_cast<std::ptrdiff_t>(columns) * N;
    }
  }

  static void scaleRuns(const PanelRun* runs, int numRuns, Value* out) {
    for (int k = 0; k < numRuns; ++k) {
      const auto scale = static_cast<typename RealPart<Value>::type>(runs[k].scale);
      for (int i = 0; i < runs[k].columns * N; ++i) {
        *out++ *= scale;
      }
    }
  }
};

/// What transposed products need, beside PanelData.
template <class Value>
struct TransposedData {
  PanelData<Value> data;
  const std::int64_t* firstPiece;
  const ColumnPiece* pieces;
  int numInputs, numVectors;
  const Value* input;
  Value* output;
  bool add;
};

/// A thread has a group of places.
template <class Value, class ExecutionSpace>
struct ThreadTransposed {
  static constexpr int together = Panels<Value, ExecutionSpace>::columnsTogether;

  TransposedData<Value> t;
  StripKernels<Value> kernels;

  void operator()(int group) const {
    Value sums[together * Panels<Value, ExecutionSpace>::mostVectors], part[std::size(sums)];
    const int n = t.numVectors, begin = group * together, places = std::min(together, t.numInputs - begin);
    Value* const out = t.output + static_cast<std::ptrdiff_t>(begin) * n;
    for (int i = 0; i < places * n; ++i) {
      sums[i] = t.add ? out[i] : Value(0);
    }
    for (std::int64_t k = t.firstPiece[group]; k < t.firstPiece[group + 1]; ++k) {
      const ColumnPiece& piece = t.pieces[k];
      dotColumns(t.data, kernels, t.data.strips[piece.strip], piece.column, piece.columns, n,
                 t.input + static_cast<std::ptrdiff_t>(piece.output) * n, part);
      const auto scale = static_cast<typename RealPart<Value>::type>(piece.scale);
      for (int i = 0; i < piece.columns * n; ++i) {
        sums[piece.place * n + i] += part[i] * scale;
      }
    }
    std::copy_n(sums, places * n, out);
  }
};

template <class Value, class ExecutionSpace>
auto Panels<Value, ExecutionSpace>::allocate(const std::string& label, const PanelLayout& layout) -> byte_view {
  const auto length = static_cast<std::size_t>(layout.numBytes());
  const byte_view bytes(Kokkos::view_alloc(label, Kokkos::WithoutInitializing), length + stripOverrun);
  Kokkos::deep_copy(Kokkos::subview(bytes, std::make_pair(length, length + stripOverrun)), 0);
  return bytes;
}

/// And those behind the last one that a StripKernel looks at.
inline std::vector<PanelRun> runsAndOverrun(const PanelLayout& layout) {
  std::vector<PanelRun> runs = layout.runs();
  runs.resize(runs.size() + runOverrun, PanelRun{0, 1, 1});
  return runs;
}

template <class Value, class ExecutionSpace>
Panels<Value, ExecutionSpace>::Panels(const PanelLayout& layout, byte_view values, scale_view outputScale)
    : numBytes_(layout.bytesOfValues()),
      values_(std::move(values)),
      outputScale_(std::move(outputScale)),
      panels_(deviceList<memory_space>("Komvos::Panels::panels", layout.panels())),
      strips_(deviceList<memory_space>("Komvos::Panels::strips", layout.strips())),
      runs_(deviceList<memory_space>("Komvos::Panels::runs", runsAndOverrun(layout))) {
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
  if (!runsOnHost<ExecutionSpace>()) {
    prepareTeams(layout);
  }
}

template <class Value, class ExecutionSpace>
void Panels<Value, ExecutionSpace>::prepareTeams(const PanelLayout& layout) {
  const TeamPlan plan(layout);
  numPartials_ = plan.numPartials();
  parts_ = deviceList<memory_space>("Komvos::Panels::parts", plan.parts());
  tasks_ = deviceList<memory_space>("Komvos::Panels::tasks", plan.tasks());
  sharedPanels_ = deviceList<memory_space>("Komvos::Panels::sharedPanels", plan.sharedPanels());
  places_ = deviceList<memory_space>("Komvos::Panels::places", plan.places());
  scales_ = deviceList<memory_space>("Komvos::Panels::scales", plan.scales());
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
                   const Kokkos::View<int*, typename BufferSpace<ExecutionSpace>::type>& share,
                   const TeamData<Value>& teams, const Value* input, Value* output, bool add) {
  if (kernel == PanelKernel::Threads) {
    const int pieces = static_cast<int>(share.extent(0)) - 1;
    using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::Schedule<Kokkos::Dynamic>>;
    Kokkos::parallel_for("Komvos::Panels::multiply", Policy(space, 0, pieces).set_chunk_size(1),
                         ThreadProduct<N, Value, ExecutionSpace>{data, StripKernels<Value>(unit, N), share.data(),
                                                                 input, output, add});
    return;
  }
  multiplyByTeams<N>(space, data, teams, input, output, add);
}

template <class Value, class ExecutionSpace>
TeamData<Value> Panels<Value, ExecutionSpace>::teamData() const {
  return {static_cast<int>(tasks_.extent(0)),
          static_cast<int>(sharedPanels_.extent(0)),
          parts_.data(),
          tasks_.data(),
          sharedPanels_.data(),
          places_.data(),
          scales_.data(),
          partials_.data()};
}

template <class Value, class ExecutionSpace>
void Panels<Value, ExecutionSpace>::multiply(const ExecutionSpace& space, PanelKernel kernel, int numVectors,
                                             const Value* input, Value* output, bool add) const {
  if (panels_.extent(0) == 0) {
    return;
  }
  const std::size_t partials = static_cast<std::size_t>(numPartials_) * PanelLayout::mostRows * numVectors;
  if (kernel == PanelKernel::Teams && partials_.extent(0) < partials) {
    partials_ = {};
    partials_ = Kokkos::View<Value*, memory_space>(
        Kokkos::view_alloc("Komvos::Panels::partials", Kokkos::WithoutInitializing), partials);
  }
  const TeamData<Value> teams = teamData();
  const PanelData<Value> data{values_.data(), panels_.data(), strips_.data(), runs_.data(), outputScale_.data()};
  switch (numVectors) {
    case 1:
      return launchProduct<1>(space, kernel, vectorUnit_, data, share_, teams, input, output, add);
    case 2:
      return launchProduct<2>(space, kernel, vectorUnit_, data, share_, teams, input, output, add);
    case 4:
      return launchProduct<4>(space, kernel, vectorUnit_, data, share_, teams, input, output, add);
    case 8:
      return launchProduct<8>(space, kernel, vectorUnit_, data, share_, teams, input, output, add);
    default:
      if constexpr (mostVectors == 16) {
        launchProduct<16>(space, kernel, vectorUnit_, data, share_, teams, input, output, add);
      }
  }
}

template <class Value, class ExecutionSpace>
void Panels<Value, ExecutionSpace>::multiplyBoth(const ExecutionSpace& space, int numVectors, const Value* input,
                                                 Value* output, const Value* rows, Value* part) const {
  static_assert(canMultiplyBoth);
  const PanelData<Value> data{values_.data(), panels_.data(), strips_.data(), runs_.data(), outputScale_.data()};
  const auto launch = [&](auto n) {
    constexpr int N = decltype(n)::value;
    using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::Schedule<Kokkos::Dynamic>>;
    const ThreadProduct<N, Value, ExecutionSpace> product{data,  StripKernels<Value>(vectorUnit_, N), share_.data(),
                                                          input, output, false};
    Kokkos::parallel_for("Komvos::Panels::multiplyBoth",
                         Policy(space, 0, static_cast<int>(share_.extent(0)) - 1).set_chunk_size(1),
                         ThreadProductOfBoth<N, Value, ExecutionSpace>{product, firstColumn_.data(), rows, part});
  };
  if (panels_.extent(0) == 0) {
    return;
  }
  switch (numVectors) {
    case 1:
      return launch(std::integral_constant<int, 1>());
    case 2:
      return launch(std::integral_constant<int, 2>());
    case 4:
      return launch(std::integral_constant<int, 4>());
    case 8:
      return launch(std::integral_constant<int, 8>());
    default:
      if constexpr (mostVectors == 16) {
        launch(std::integral_constant<int, 16>());
      }
  }
}

template <class Value, class ExecutionSpace>
void Panels<Value, ExecutionSpace>::prepareTransposed(const PanelLayout& layout, PanelKernel kernel, int inputs,
                                                      const std::vector<std::int64_t>& leftOut) {
  numInputs_ = inputs;
  if (runsOnHost<ExecutionSpace>() && kernel == PanelKernel::Threads) {
    listPieces(layout, leftOut);
    return;
  }
  std::vector<int> places = inputsOf(layout);
  for (const std::int64_t column : leftOut) {
    places[column] = -1;
  }
  const PartLists lists(inputs, places);
  columnOffset_ = deviceList<memory_space>("Komvos::Panels::columnOffset", lists.offset);
  columns_ = deviceList<memory_space>("Komvos::Panels::columns", lists.part);
}

template <class Value, class ExecutionSpace>
void Panels<Value, ExecutionSpace>::listPieces(const PanelLayout& layout, const std::vector<std::int64_t>& leftOut) {
  const int groups = (numInputs_ + columnsTogether - 1) / columnsTogether;
  // f(group, piece) for each piece of each run
  const auto forPieces = [&](const auto& f) {
    std::int64_t column = 0;  // of all strips
    auto skip = leftOut.begin();
    for (const Panel& panel : layout.panels()) {
      for (int s = panel.firstStrip; s < panel.lastStrip; ++s) {
        const PanelStrip& strip = layout.strips()[s];
        const std::int64_t first = column;
        for (int r = strip.firstRun; r < strip.lastRun; column += layout.runs()[r++].columns) {
          const PanelRun& run = layout.runs()[r];
          for (int c = 0; c < run.columns;) {
            const int group = (run.input + c) / columnsTogether, place = run.input + c - group * columnsTogether;
            int count = std::min(run.columns - c, columnsTogether - place);
            if (skip != leftOut.end()) {
              count = static_cast<int>(std::min<std::int64_t>(count, *skip - (column + c)));
            }
            if (count == 0) {
              ++skip;
              ++c;
              continue;
            }
            f(group, ColumnPiece{s, static_cast<int>(column - first) + c, count, panel.output + strip.row, place,
                                 run.scale});
            c += count;
          }
        }
      }
    }
  };
  std::vector<std::int64_t> firstPiece(static_cast<std::size_t>(groups) + 1);
  forPieces([&](int group, const ColumnPiece&) { ++firstPiece[group + 1]; });
  std::partial_sum(firstPiece.begin(), firstPiece.end(), firstPiece.begin());
  std::vector<ColumnPiece> pieces(static_cast<std::size_t>(firstPiece.back()));
  std::vector<std::int64_t> next(firstPiece.begin(), firstPiece.end() - 1);
  forPieces([&](int group, const ColumnPiece& piece) { pieces[next[group]++] = piece; });
  firstPiece_ = deviceList<memory_space>("Komvos::Panels::firstPiece", firstPiece);
  pieces_ = deviceList<memory_space>("Komvos::Panels::pieces", pieces);
}

template <class Value, class ExecutionSpace>
void Panels<Value, ExecutionSpace>::multiplyTransposed(const ExecutionSpace& space, PanelKernel kernel, int numVectors,
                                                       const Value* input, Value* output, bool add) const {
  if (!runsOnHost<ExecutionSpace>() || kernel == PanelKernel::Teams) {
    for (int first = 0; first < numVectors;) {  // a few at a time: memory for what each column gives
      const int left = numVectors - first;
      if (left >= 4) {
        transposeByTeams<4>(space, numVectors, input + first, output + first, add);
      } else if (left >= 2) {
        transposeByTeams<2>(space, numVectors, input + first, output + first, add);
      } else {
        transposeByTeams<1>(space, numVectors, input + first, output + first, add);
      }
      first += left >= 4 ? 4 : left >= 2 ? 2 : 1;
    }
    return;
  }
  if constexpr (runsOnHost<ExecutionSpace>()) {
    const int groups = (numInputs_ + columnsTogether - 1) / columnsTogether;
    const PanelData<Value> data{values_.data(), panels_.data(), strips_.data(), runs_.data(), outputScale_.data()};
    const TransposedData<Value> transposed{
        data, firstPiece_.data(), pieces_.data(), numInputs_, numVectors, input, output, add};
    using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::Schedule<Kokkos::Dynamic>>;
    Kokkos::parallel_for(
        "Komvos::Panels::multiplyTransposed", Policy(space, 0, groups).set_chunk_size(1),
        ThreadTransposed<Value, ExecutionSpace>{transposed, StripKernels<Value>(vectorUnit_, numVectors)});
  }
}

template <class Value, class ExecutionSpace>
template <int N>
void Panels<Value, ExecutionSpace>::transposeByTeams(const ExecutionSpace& space, int numVectors, const Value* input,
                                                     Value* output, bool add) const {
  const std::size_t length = static_cast<std::size_t>(numColumns_) * N;
  if (ofColumns_.extent(0) < length) {
    ofColumns_ = {};
    ofColumns_ = Kokkos::View<Value*, memory_space>(
        Kokkos::view_alloc("Komvos::Panels::ofColumns", Kokkos::WithoutInitializing), length);
  }
  const PanelData<Value> data{values_.data(), panels_.data(), strips_.data(), runs_.data(), outputScale_.data()};
  const TeamData<Value> teams = teamData();
  if (teams.numTasks > 0) {
    launchTeams(space, "Komvos::Panels::multiplyTransposed", teams.numTasks,
                TeamColumns<N, Value, ExecutionSpace>{data, teams, input, numVectors, ofColumns_.data()});
  }
  Kokkos::parallel_for(
      "Komvos::Panels::multiplyTransposed: sums", range(space, 0, numInputs_),
      AddColumns<N, Value>{columnOffset_.data(), columns_.data(), ofColumns_.data(), numVectors, output, add});
}

}  // namespace Komvos::Impl
