/// \file Komvos_TeamProduct.hpp
/// Products of panels on GPUs.
///
/// How it works: a team has a task of a TeamPlan: some columns of the strips of one panel. It brings the input of these
/// columns into shared memory, times the scale of their run, some columns at a time. Then its `lanes` go through the
/// values: each has one row, and every so many-th column, so that neighbouring lanes read neighbouring values, and
/// several loads are under way at once. The lanes of a row are summed in their order; where a panel has several tasks,
/// a second kernel adds these in their order. No sum depends on the device, or on when a team runs.
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
  const int *runOfColumn, *firstColumnOfRun;
  Value* partials;  ///< [partials x PanelLayout::mostRows x vectors]
};

template <int N, class Value, class ExecutionSpace>
struct TeamProduct {
  using team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using scratch = Kokkos::View<Value*, typename ExecutionSpace::scratch_memory_space, Kokkos::MemoryUnmanaged>;
  static constexpr int lanes = 2 * PanelLayout::mostRows;
  static constexpr int columnsAtOnce = N < 16 ? 1024 / N : 64;
  static constexpr int ahead = N <= 4 ? 8 : 4;  ///< values that a lane loads before it uses the first

  PanelData<Value> data;
  TeamData<Value> teams;
  const Value* input;
  Value* output;
  bool add;

  static std::size_t scratchBytes() { return scratch::shmem_size((columnsAtOnce + lanes + PanelLayout::mostRows) * N); }

  KOKKOS_INLINE_FUNCTION void operator()(const team& member) const {
    const TeamTask task = teams.tasks[member.league_rank()];
    const Panel panel = data.panels[task.panel];
    const scratch memory(member.team_scratch(0), (columnsAtOnce + lanes + PanelLayout::mostRows) * N);
    Value *const z = memory.data(), *const ofLanes = z + columnsAtOnce * N, *const sums = ofLanes + lanes * N;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, panel.rows * N), [&](int i) { sums[i] = Value(0); });
    for (int p = task.firstPart; p < task.lastPart; ++p) {
      addPart(member, teams.parts[p], z, ofLanes, sums);
    }
    member.team_barrier();
    Value* const out = output + static_cast<std::ptrdiff_t>(panel.output) * N;
    Value* const partial = teams.partials + static_cast<std::ptrdiff_t>(task.partial) * PanelLayout::mostRows * N;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(member, panel.rows * N), [&](int i) {
      if (task.partial >= 0) {
        partial[i] = sums[i];
      } else {
        const Value sum = add ? out[i] + sums[i] : sums[i];
        out[i] = data.scaled(sum, panel.output + i / N);
      }
    });
  }

  KOKKOS_INLINE_FUNCTION void addPart(const team& member, const StripPart& part, Value* z, Value* ofLanes,
                                      Value* sums) const {
    const PanelStrip strip = data.strips[part.strip];
    const int perRow = lanes / strip.rows;
    for (int done = 0; done < part.columns; done += columnsAtOnce) {
      const int left = part.columns - done, columns = left < columnsAtOnce ? left : columnsAtOnce;
      member.team_barrier();  // everyone is done with z and ofLanes
      Kokkos::parallel_for(Kokkos::TeamThreadRange(member, columns),
                           [&](int c) { bringInput(part, done + c, z + c * N); });
      member.team_barrier();
      Kokkos::parallel_for(Kokkos::TeamThreadRange(member, perRow * strip.rows), [&](int lane) {
        multiply(strip, part.column + done, columns, lane % strip.rows, lane / strip.rows, perRow, z,
                 ofLanes + lane * N);
      });
      member.team_barrier();
      Kokkos::parallel_for(Kokkos::TeamThreadRange(member, strip.rows * N), [&](int i) {
        Value sum = sums[strip.row * N + i];
        for (int k = 0; k < perRow; ++k) {
          sum += ofLanes[k * strip.rows * N + i];
        }
        sums[strip.row * N + i] = sum;
      });
    }
  }

  /// \param column of the part
  KOKKOS_INLINE_FUNCTION void bringInput(const StripPart& part, int column, Value* z) const {
    const int k = part.run >= 0 ? part.run : teams.runOfColumn[part.firstColumn + column];
    const PanelRun run = data.runs[k];
    const int place = run.input + part.column + column - teams.firstColumnOfRun[k];
    const auto scale = static_cast<typename RealPart<Value>::type>(run.scale);
    for (int q = 0; q < N; ++q) {
      z[q] = input[static_cast<std::ptrdiff_t>(place) * N + q] * scale;
    }
  }

  KOKKOS_INLINE_FUNCTION void multiply(const PanelStrip& strip, int column, int columns, int row, int first, int step,
                                       const Value* z, Value* out) const {
    switch (strip.format) {
      case ValueFormat::Bytes1:
        return multiplyAs<ValueFormat::Bytes1>(strip, column, columns, row, first, step, z, out);
      case ValueFormat::Bytes2:
        return multiplyAs<ValueFormat::Bytes2>(strip, column, columns, row, first, step, z, out);
      case ValueFormat::Bytes3:
        return multiplyAs<ValueFormat::Bytes3>(strip, column, columns, row, first, step, z, out);
      case ValueFormat::Bytes4:
        return multiplyAs<ValueFormat::Bytes4>(strip, column, columns, row, first, step, z, out);
      case ValueFormat::Bytes5:
        return multiplyAs<ValueFormat::Bytes5>(strip, column, columns, row, first, step, z, out);
      case ValueFormat::Bytes6:
        return multiplyAs<ValueFormat::Bytes6>(strip, column, columns, row, first, step, z, out);
      case ValueFormat::Whole:
        return multiplyAs<ValueFormat::Whole>(strip, column, columns, row, first, step, z, out);
    }
  }

  /// A row of the strip, by columns `first`, `first + step`, ... of those in z. \param column the first one in z
  template <ValueFormat Format>
  KOKKOS_INLINE_FUNCTION void multiplyAs(const PanelStrip& strip, int column, int columns, int row, int first, int step,
                                         const Value* z, Value* out) const {
    const auto stride = static_cast<std::ptrdiff_t>(step) * strip.rows;
    std::ptrdiff_t index = static_cast<std::ptrdiff_t>(column + first) * strip.rows + row;
    Value sum[N];
    for (int q = 0; q < N; ++q) {
      sum[q] = Value(0);
    }
    int c = first;
    for (; c + (ahead - 1) * step < columns; c += ahead * step, index += ahead * stride) {
      Value values[ahead];
      for (int k = 0; k < ahead; ++k) {
        values[k] = data.template valueAs<Format>(strip, index + k * stride);
      }
      for (int k = 0; k < ahead; ++k) {
        for (int q = 0; q < N; ++q) {
          sum[q] += values[k] * z[(c + k * step) * N + q];
        }
      }
    }
    for (; c < columns; c += step, index += stride) {
      const Value value = data.template valueAs<Format>(strip, index);
      for (int q = 0; q < N; ++q) {
        sum[q] += value * z[c * N + q];
      }
    }
    for (int q = 0; q < N; ++q) {
      out[q] = sum[q];
    }
  }
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

template <int N, class Value, class ExecutionSpace>
void launchTeams(const ExecutionSpace& space, const PanelData<Value>& data, const TeamData<Value>& teams,
                 const Value* input, Value* output, bool add) {
  using Teams = TeamProduct<N, Value, ExecutionSpace>;
  const int teamSize = runsOnHost<ExecutionSpace>() ? 1 : static_cast<int>(Teams::lanes);
  Kokkos::parallel_for("Komvos::Panels::multiply",
                       Kokkos::TeamPolicy<ExecutionSpace>(space, teams.numTasks, teamSize)
                           .set_scratch_size(0, Kokkos::PerTeam(Teams::scratchBytes())),
                       Teams{data, teams, input, output, add});
  if (teams.numSharedPanels > 0) {
    Kokkos::parallel_for("Komvos::Panels::multiply: partials",
                         range(space, 0, teams.numSharedPanels * AddPartials<N, Value>::values),
                         AddPartials<N, Value>{data, teams, output, add});
  }
}

}  // namespace Komvos::Impl
