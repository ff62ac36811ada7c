/// \file Komvos_TeamProduct.hpp
/// Products of panels on GPUs, and transposed ones.
///
/// How it works: a team has a task of a TeamPlan: some columns of the strips of one panel. It brings their values into
/// shared memory as they are stored, some columns at a time, 16 bytes by each thread and several loads under way: so
/// many bytes are on their way whatever the format is. From there each of the `lanes` decodes the values of one row,
/// and every so many-th column; the input is in shared memory, too. The lanes of a row are summed in their order; where
/// a panel has several tasks, a second kernel adds these in their order.
///
/// Transposed, some lanes share a column. What each column gives is written down, and a second kernel adds, for each
/// place, what its columns gave, in their order. No sum depends on the device, or on when a team runs.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <cstdint>

#include "Komvos_KokkosShim.hpp"
#include "Komvos_PanelData.hpp"
#include "Komvos_TeamPlan.hpp"

namespace Komvos::Impl {

/// A TeamPlan, for kernels.
template <class Value>
struct TeamData {
  int numTasks, numSharedPanels;
  const StripPart* parts;
  const TeamTask* tasks;
  const SharedPanel* sharedPanels;
  const int* places;
  const double* scales;
  Value* partials;  ///< [partials x PanelLayout::mostRows x vectors]

  /// Of column `column` of a part, in the input.
  KOKKOS_INLINE_FUNCTION int placeOf(const StripPart& part, int column) const {
    return part.place >= 0 ? part.place + column : places[part.firstColumn + column];
  }
  KOKKOS_INLINE_FUNCTION double scaleOf(const StripPart& part, int column) const {
    return part.firstScale >= 0 ? scales[part.firstScale + column] : part.scale;
  }
};

constexpr int teamLanes = 2 * PanelLayout::mostRows;

/// Some columns of a strip in shared memory.
template <class Value>
class StagedColumns {
 public:
  static constexpr int bytes = 8 * 1024;       ///< of values, where a column has not more
  static constexpr int room = bytes + 4 * 16;  ///< both planes begin and end in the middle of 16 bytes

  /// \return how many columns of a strip fit
  KOKKOS_INLINE_FUNCTION static int columnsOf(const PanelStrip& strip) {
    const int most = bytes / (strip.rows * bytesOf<Value>(strip.format));
    return most > 0 ? most : 1;
  }
  /// \param buffer `room` bytes, at a multiple of 16
  KOKKOS_INLINE_FUNCTION StagedColumns(const PanelData<Value>& data, const PanelStrip& strip, int column, int columns,
                                       unsigned char* buffer) {
    const bool isWhole = strip.format == ValueFormat::Whole;
    const int high = isWhole ? static_cast<int>(sizeof(Value)) : upperBytes(strip.format),
              low = isWhole ? 0 : lowerBytes(strip.format);
    const std::int64_t first = static_cast<std::int64_t>(column) * strip.rows;
    const int values = columns * strip.rows;
    const int upperLength =
        place(data.values, strip.firstByte + high * first, high * values, buffer, upperFrom_, upper_);
    upperChunks_ = upperLength;
    to_ = reinterpret_cast<Chunk*>(buffer);
    lowerChunks_ = low == 0 ? 0
                            : place(data.values, strip.lowerByte + low * first, low * values,
                                    buffer + 16 * static_cast<std::ptrdiff_t>(upperLength), lowerFrom_, lower_);
  }

  /// The part of one lane. Afterwards the team has to wait for all.
  KOKKOS_INLINE_FUNCTION void bring(int lane) const {
    bringPlane(upperFrom_, upperChunks_, to_, lane);
    bringPlane(lowerFrom_, lowerChunks_, to_ + upperChunks_, lane);
  }

  /// \param index of the value, from the first column on
  template <ValueFormat Format>
  KOKKOS_INLINE_FUNCTION Value valueAt(int index) const {
    if constexpr (Format == ValueFormat::Whole) {
      return reinterpret_cast<const Value*>(upper_)[index];
    } else if constexpr (std::is_floating_point_v<Value>) {
      return integerAt<Value>(Format, upper_, lower_, index);
    } else {
      return Value(0);  // complex values are whole
    }
  }

 private:
#ifdef __GNUC__
  struct __attribute__((may_alias, aligned(16))) Chunk {
#else
  struct alignas(16) Chunk {
#endif
    std::uint32_t words[4];
  };

  /// \return the number of chunks of a plane, from its first to its last byte
  KOKKOS_INLINE_FUNCTION static int place(const unsigned char* values, std::int64_t firstByte, int count,
                                          unsigned char* buffer, const Chunk*& from, const unsigned char*& first) {
    const int before = static_cast<int>(firstByte % 16);  // allocations begin at a multiple of 16
    from = reinterpret_cast<const Chunk*>(values + (firstByte - before));
    first = buffer + before;
    return (before + count + 15) / 16;
  }
  KOKKOS_INLINE_FUNCTION static void bringPlane(const Chunk* from, int chunks, Chunk* to, int lane) {
    constexpr int ahead = 4;  // loads before the first store
    for (int i = lane; i < chunks; i += ahead * teamLanes) {
      Chunk some[ahead];
      for (int k = 0; k < ahead; ++k) {
        if (i + k * teamLanes < chunks) {
          some[k] = from[i + k * teamLanes];
        }
      }
      for (int k = 0; k < ahead; ++k) {
        if (i + k * teamLanes < chunks) {
          to[i + k * teamLanes] = some[k];
        }
      }
    }
  }

  const Chunk *upperFrom_ = nullptr, *lowerFrom_ = nullptr;
  Chunk* to_ = nullptr;
  const unsigned char *upper_ = nullptr, *lower_ = nullptr;  ///< the first values, in the buffer
  int upperChunks_ = 0, lowerChunks_ = 0;
};

/// f.template as<Format>(arguments...)
template <class Function, class... Arguments>
KOKKOS_INLINE_FUNCTION void withFormat(ValueFormat format, const Function& f, const Arguments&... arguments) {
  switch (format) {
    case ValueFormat::Bytes1:
      return f.template as<ValueFormat::Bytes1>(arguments...);
    case ValueFormat::Bytes2:
      return f.template as<ValueFormat::Bytes2>(arguments...);
    case ValueFormat::Bytes3:
      return f.template as<ValueFormat::Bytes3>(arguments...);
    case ValueFormat::Bytes4:
      return f.template as<ValueFormat::Bytes4>(arguments...);
    case ValueFormat::Bytes5:
      return f.template as<ValueFormat::Bytes5>(arguments...);
    case ValueFormat::Bytes6:
      return f.template as<ValueFormat::Bytes6>(arguments...);
    case ValueFormat::Whole:
      return f.template as<ValueFormat::Whole>(arguments...);
  }
}

/// Shared memory of a team: bytes of values, then arrays of Value.
template <class Value, class ExecutionSpace>
class TeamMemory {
 public:
  using bytes_type =
      Kokkos::View<unsigned char*, typename ExecutionSpace::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  static std::size_t size(int values) {
    return bytes_type::shmem_size(16 + StagedColumns<Value>::room + values * sizeof(Value));
  }

  template <class Member>
  KOKKOS_INLINE_FUNCTION TeamMemory(const Member& member, int values)
      : view_(member.team_scratch(0), 16 + StagedColumns<Value>::room + values * sizeof(Value)) {
    const auto address = reinterpret_cast<std::uintptr_t>(view_.data());
    bytes = view_.data() + (16 - address % 16) % 16;
    array = reinterpret_cast<Value*>(bytes + StagedColumns<Value>::room);
  }
  unsigned char* bytes;
  Value* array;

 private:
  bytes_type view_;
};

template <int N, class Value, class ExecutionSpace>
struct TeamProduct {
  using team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using memory = TeamMemory<Value, ExecutionSpace>;
  static constexpr int columnsAtOnce = N == 1 ? 512 : N <= 4 ? 256 : 64;  ///< whose input is in shared memory
  static constexpr int values = (columnsAtOnce + teamLanes + PanelLayout::mostRows) * N;

  PanelData<Value> data;
  TeamData<Value> teams;
  const Value* input;
  Value* output;
  bool add;

  KOKKOS_INLINE_FUNCTION void operator()(const team& member) const {
    const TeamTask task = teams.tasks[member.league_rank()];
    const Panel panel = data.panels[task.panel];
    const memory shared(member, values);
    Value *const z = shared.array, *const ofLanes = z + columnsAtOnce * N, *const sums = ofLanes + teamLanes * N;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, panel.rows * N), [&](int i) { sums[i] = Value(0); });
    for (int p = task.firstPart; p < task.lastPart; ++p) {
      addPart(member, teams.parts[p], shared.bytes, z, ofLanes, sums);
    }
    member.team_barrier();
    Value* const out = output + static_cast<std::ptrdiff_t>(panel.output) * N;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, panel.rows * N), [&](int i) {
      if (task.partial >= 0) {
        teams.partials[static_cast<std::ptrdiff_t>(task.partial) * PanelLayout::mostRows * N + i] = sums[i];
      } else {
        const Value sum = add ? out[i] + sums[i] : sums[i];
        out[i] = data.scaled(sum, panel.output + i / N);
      }
    });
  }

  KOKKOS_INLINE_FUNCTION void addPart(const team& member, const StripPart& part, unsigned char* bytes, Value* z,
                                      Value* ofLanes, Value* sums) const {
    const PanelStrip strip = data.strips[part.strip];
    const int perRow = teamLanes / strip.rows, staged = StagedColumns<Value>::columnsOf(strip);
    const int together = staged < columnsAtOnce ? columnsAtOnce / staged * staged : columnsAtOnce;
    for (int done = 0; done < part.columns; done += staged < columnsAtOnce ? staged : columnsAtOnce) {
      const int left = part.columns - done, most = staged < columnsAtOnce ? staged : columnsAtOnce;
      const int columns = left < most ? left : most, inZ = done % together;
      const StagedColumns<Value> stage(data, strip, part.column + done, columns, bytes);
      member.team_barrier();  // everyone is done with what is in shared memory
      Kokkos::parallel_for(Kokkos::TeamThreadRange(member, teamLanes), [&](int lane) {
        stage.bring(lane);
        if (inZ == 0) {
          const int ofZ = left < together ? left : together;
          for (int c = lane; c < ofZ; c += teamLanes) {
            bringInput(part, done + c, z + c * N);
          }
        }
      });
      member.team_barrier();
      Kokkos::parallel_for(Kokkos::TeamThreadRange(member, perRow * strip.rows), [&](int lane) {
        const Lane work{*this, lane % strip.rows, lane / strip.rows, perRow, strip.rows, columns, done == 0, lane};
        withFormat(strip.format, work, stage, z + inZ * N, ofLanes);
      });
    }
    member.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, strip.rows * N), [&](int i) {
      const int row = i / N, q = i % N;
      Value sum = sums[strip.row * N + i];
      for (int k = 0; k < perRow; ++k) {
        sum += ofLanes[q * teamLanes + k * strip.rows + row];
      }
      sums[strip.row * N + i] = sum;
    });
  }

  /// \param column of the part
  KOKKOS_INLINE_FUNCTION void bringInput(const StripPart& part, int column, Value* z) const {
    const Value* const x = input + static_cast<std::ptrdiff_t>(teams.placeOf(part, column)) * N;
    const auto scale = static_cast<typename RealPart<Value>::type>(teams.scaleOf(part, column));
    for (int q = 0; q < N; ++q) {
      z[q] = x[q] * scale;
    }
  }

  /// A row of what is staged, by every so many-th column.
  struct Lane {
    const TeamProduct& product;
    int row, first, step, rows, columns;
    bool isFirst;  ///< nothing is in the sums yet
    int lane;

    /// \param z of the first column that is staged \param ofLanes [N x lanes]
    template <ValueFormat Format>
    KOKKOS_INLINE_FUNCTION void as(const StagedColumns<Value>& stage, const Value* z, Value* ofLanes) const {
      Value sum[N];
      for (int q = 0; q < N; ++q) {
        sum[q] = isFirst ? Value(0) : ofLanes[q * teamLanes + lane];
      }
      constexpr int ahead = 4;
      int c = first, index = first * rows + row;
      for (; c + (ahead - 1) * step < columns; c += ahead * step, index += ahead * step * rows) {
        Value some[ahead];
        for (int k = 0; k < ahead; ++k) {
          some[k] = stage.template valueAt<Format>(index + k * step * rows);
        }
        for (int k = 0; k < ahead; ++k) {
          for (int q = 0; q < N; ++q) {
            sum[q] += some[k] * z[(c + k * step) * N + q];
          }
        }
      }
      for (; c < columns; c += step, index += step * rows) {
        const Value value = stage.template valueAt<Format>(index);
        for (int q = 0; q < N; ++q) {
          sum[q] += value * z[c * N + q];
        }
      }
      for (int q = 0; q < N; ++q) {
        ofLanes[q * teamLanes + lane] = sum[q];
      }
    }
  };
};

/// Sums of the tasks of a panel, in their order. A thread has a value of the output.
template <int N, class Value>
struct AddPartials {
  static constexpr int values = PanelLayout::mostRows * N;  ///< of a partial

  PanelData<Value> data;
  TeamData<Value> teams;
  Value* output;
  bool add;

  KOKKOS_INLINE_FUNCTION void operator()(int i) const {
    const SharedPanel shared = teams.sharedPanels[i / values];
    const Panel panel = data.panels[shared.panel];
    const int at = i % values;
    if (at >= panel.rows * N) {
      return;
    }
    Value& out = output[static_cast<std::ptrdiff_t>(panel.output) * N + at];
    Value sum = add ? out : Value(0);
    for (int p = shared.firstPartial; p < shared.lastPartial; ++p) {
      sum += teams.partials[static_cast<std::ptrdiff_t>(p) * values + at];
    }
    out = data.scaled(sum, panel.output + at / N);
  }
};

/// N of `numVectors` vectors of a transposed product: what each column gives.
template <int N, class Value, class ExecutionSpace>
struct TeamColumns {
  using team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using memory = TeamMemory<Value, ExecutionSpace>;
  static constexpr int values = (PanelLayout::mostRows + teamLanes) * N;

  PanelData<Value> data;
  TeamData<Value> teams;
  const Value* input;  ///< of the first of these vectors
  int numVectors;
  Value* ofColumns;  ///< [columns of all strips x N]

  KOKKOS_INLINE_FUNCTION void operator()(const team& member) const {
    const TeamTask task = teams.tasks[member.league_rank()];
    const Panel panel = data.panels[task.panel];
    const memory shared(member, values);
    Value *const x = shared.array, *const ofLanes = x + PanelLayout::mostRows * N;
    const Value* const from = input + static_cast<std::ptrdiff_t>(panel.output) * numVectors;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, panel.rows * N),
                         [&](int i) { x[i] = from[static_cast<std::ptrdiff_t>(i / N) * numVectors + i % N]; });
    for (int p = task.firstPart; p < task.lastPart; ++p) {
      const StripPart part = teams.parts[p];
      const PanelStrip strip = data.strips[part.strip];
      const int fit = StagedColumns<Value>::columnsOf(strip), staged = fit < teamLanes ? fit : teamLanes;
      for (int done = 0; done < part.columns; done += staged) {
        const int left = part.columns - done;
        multiplyStaged(member, part, strip, done, left < staged ? left : staged, shared.bytes, x + strip.row * N,
                       ofLanes);
      }
    }
  }

  KOKKOS_INLINE_FUNCTION void multiplyStaged(const team& member, const StripPart& part, const PanelStrip& strip,
                                             int done, int columns, unsigned char* bytes, const Value* x,
                                             Value* ofLanes) const {
    const StagedColumns<Value> stage(data, strip, part.column + done, columns, bytes);
    const int perColumn = teamLanes / columns < strip.rows ? teamLanes / columns : strip.rows;
    member.team_barrier();  // everyone is done with what is in shared memory
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, teamLanes), [&](int lane) { stage.bring(lane); });
    member.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, perColumn * columns), [&](int lane) {
      withFormat(strip.format, Lane{lane % columns, lane / columns, perColumn, strip.rows, lane}, stage, x, ofLanes);
    });
    member.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, columns), [&](int c) {
      const auto scale = static_cast<typename RealPart<Value>::type>(teams.scaleOf(part, done + c));
      Value* const to = ofColumns + (part.firstColumn + done + c) * N;
      for (int q = 0; q < N; ++q) {
        Value sum = Value(0);
        for (int k = 0; k < perColumn; ++k) {
          sum += ofLanes[q * teamLanes + k * columns + c];
        }
        to[q] = sum * scale;
      }
    });
  }

  /// Every so many-th row of a column. Columns begin with different rows, so that lanes read different banks.
  struct Lane {
    int column, first, step, rows, lane;

    template <ValueFormat Format>
    KOKKOS_INLINE_FUNCTION void as(const StagedColumns<Value>& stage, const Value* x, Value* ofLanes) const {
      Value sum[N];
      for (int q = 0; q < N; ++q) {
        sum[q] = Value(0);
      }
      const int shift = column % rows;
      for (int i = first; i < rows; i += step) {
        const int row = i + shift < rows ? i + shift : i + shift - rows;
        const Value value = stage.template valueAt<Format>(column * rows + row);
        for (int q = 0; q < N; ++q) {
          sum[q] += value * x[row * N + q];
        }
      }
      for (int q = 0; q < N; ++q) {
        ofLanes[q * teamLanes + lane] = sum[q];
      }
    }
  };
};

/// For each place of the input of the product that is not transposed: what its columns gave.
template <int N, class Value>
struct AddColumns {
  const std::int64_t *offset, *column;  ///< PartLists
  const Value* ofColumns;
  int numVectors;
  Value* output;  ///< of the first of N vectors
  bool add;

  KOKKOS_INLINE_FUNCTION void operator()(int place) const {
    Value* const out = output + static_cast<std::ptrdiff_t>(place) * numVectors;
    Value sum[N];
    for (int q = 0; q < N; ++q) {
      sum[q] = add ? out[q] : Value(0);
    }
    for (std::int64_t k = offset[place]; k < offset[place + 1]; ++k) {
      for (int q = 0; q < N; ++q) {
        sum[q] += ofColumns[column[k] * N + q];
      }
    }
    for (int q = 0; q < N; ++q) {
      out[q] = sum[q];
    }
  }
};

template <class Kernel, class ExecutionSpace>
void launchTeams(const ExecutionSpace& space, const char* label, int numTasks, const Kernel& kernel) {
  const int teamSize = runsOnHost<ExecutionSpace>() ? 1 : teamLanes;
  Kokkos::parallel_for(label,
                       Kokkos::TeamPolicy<ExecutionSpace>(space, numTasks, teamSize)
                           .set_scratch_size(0, Kokkos::PerTeam(Kernel::memory::size(Kernel::values))),
                       kernel);
}

template <int N, class Value, class ExecutionSpace>
void multiplyByTeams(const ExecutionSpace& space, const PanelData<Value>& data, const TeamData<Value>& teams,
                     const Value* input, Value* output, bool add) {
  launchTeams(space, "Komvos::Panels::multiply", teams.numTasks,
              TeamProduct<N, Value, ExecutionSpace>{data, teams, input, output, add});
  if (teams.numSharedPanels > 0) {
    Kokkos::parallel_for("Komvos::Panels::multiply: partials",
                         range(space, 0, teams.numSharedPanels * AddPartials<N, Value>::values),
                         AddPartials<N, Value>{data, teams, output, add});
  }
}

}  // namespace Komvos::Impl
