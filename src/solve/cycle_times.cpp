#include "solve/cycle_times.hpp"

#include <Kokkos_Core.hpp>
#include <MueLu_Hierarchy.hpp>
#include <MueLu_TpetraOperator.hpp>
#include <Teuchos_TimeMonitor.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <algorithm>
#include <cstdlib>

#include "Komvos_Error.hpp"
#include "Komvos_Statistics.hpp"
#include "Komvos_TpetraShim.hpp"
#include "support/exchange_regions.hpp"
#include "support/gnuplot.hpp"
#include "support/text_format.hpp"

// How this works. MueLu has a timer for each level, which stops while the cycle is on a coarser one. An
// exchange counts for the level whose timer runs. What is left of a level's time is work.
namespace Komvos::Program {

namespace {

using Preconditioner = MueLu::TpetraOperator<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;
using Teuchos::RCP;
using Teuchos::Time;
using Teuchos::TimeMonitor;

/// Sums up what happens in exchanges while it lives.
class ExchangeClock {
 public:
  explicit ExchangeClock(int levels) : seconds_(levels), regions_([this](double seconds) { add(seconds); }) {
    for (int level = 0; level < levels; ++level) {
      timers_.push_back(TimeMonitor::getNewCounter("MueLu: Hierarchy: Solve (level=" + std::to_string(level) + ")"));
      timers_.back()->reset();
    }
  }

  LevelTime of(int level) const {
    const double exchange = seconds_[level];
    return {timers_[level]->totalElapsedTime() - exchange, exchange};
  }

 private:
  void add(double seconds) {
    for (std::size_t level = 0; level < timers_.size(); ++level) {
      seconds_[level] += timers_[level]->isRunning() ? seconds : 0;
    }
  }

  std::vector<RCP<Time>> timers_;
  std::vector<double> seconds_;
  ExchangeRegions regions_;
};

/// A sample: seconds of one cycle, on each level. \note Collective.
std::vector<LevelTime> sample(Preconditioner& preconditioner, const MultiVector& b, MultiVector& x, int cycles) {
  auto& hierarchy = *preconditioner.GetHierarchy();
  const int levels = hierarchy.GetGlobalNumLevels();
  const MPI_Comm comm = Tpetra::Details::extractMpiCommFromTeuchos(*b.getMap()->getComm());
  const auto verbosity = hierarchy.GetVerbLevel();
  hierarchy.SetVerbLevel(MueLu::Timings0);
  mpiCheck(MPI_Barrier(comm), "MPI_Barrier");
  std::vector<LevelTime> times(levels);
  {
    const ExchangeClock clock(levels);
    for (int cycle = 0; cycle < cycles; ++cycle) {
      preconditioner.apply(b, x);
    }
    for (int level = 0; level < levels; ++level) {
      times[level] = clock.of(level);
    }
  }
  hierarchy.SetVerbLevel(verbosity);
  static_assert(sizeof(LevelTime) == 2 * sizeof(double), "two numbers a level");
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, times.data(), 2 * levels, MPI_DOUBLE, MPI_SUM, comm), "MPI_Allreduce");
  const double parts = static_cast<double>(b.getMap()->getComm()->getSize()) * cycles;
  for (LevelTime& time : times) {
    time = {time.work / parts, time.exchange / parts};
  }
  return times;
}

std::vector<LevelTime> medians(const std::vector<std::vector<LevelTime>>& samples) {
  std::vector<LevelTime> result(samples.front().size());
  for (std::size_t level = 0; level < result.size(); ++level) {
    std::vector<double> work, exchange;
    for (const auto& one : samples) {
      work.push_back(one[level].work);
      exchange.push_back(one[level].exchange);
    }
    result[level] = {Impl::median(work), Impl::median(exchange)};
  }
  return result;
}

LevelTime sum(const std::vector<LevelTime>& levels) {
  LevelTime total;
  for (const LevelTime& one : levels) {
    total.work += one.work;
    total.exchange += one.exchange;
  }
  return total;
}

std::string row(const std::string& name, const LevelTime& before, const LevelTime& after) {
  return format("  %-6s %9.3f %9.3f %9.3f   ", name.c_str(), 1e3 * before.work, 1e3 * before.exchange,
                1e3 * before.total()) +
         format("%9.3f %9.3f %9.3f %6.2f\n", 1e3 * after.work, 1e3 * after.exchange, 1e3 * after.total(),
                before.total() / after.total());
}

}  // namespace

void prepareToTimeCycles() { setenv("TPETRA_USE_KOKKOS_PROFILING", "1", 0); }

CycleTimes timeCycles(const RCP<Tpetra::Operator<>>& before, const RCP<Tpetra::Operator<>>& after,
                      const MultiVector& b) {
  constexpr int samples = 15;
  constexpr int cycles = 3;
  const auto stock = Teuchos::rcp_dynamic_cast<Preconditioner>(before, true);
  const auto ours = Teuchos::rcp_dynamic_cast<Preconditioner>(after, true);
  MultiVector x(b.getMap(), b.getNumVectors());
  std::vector<std::vector<LevelTime>> timesBefore, timesAfter;
  const std::size_t stockLevels = sample(*stock, b, x, cycles).size();  // only warms up
  const std::size_t ourLevels = sample(*ours, b, x, cycles).size();
  if (stockLevels != ourLevels) {
    throw BadInput("--cycle-times: MueLu has made " + std::to_string(ourLevels) + " levels, and then, of the same " +
                   "matrix, " + std::to_string(stockLevels) + ": with threads aggregates may differ; use one thread");
  }
  for (int i = 0; i < samples; ++i) {
    timesBefore.push_back(sample(*stock, b, x, cycles));
    timesAfter.push_back(sample(*ours, b, x, cycles));
  }
  return {samples, cycles, medians(timesBefore), medians(timesAfter)};
}

std::string toText(const CycleTimes& times) {
  std::string text =
      format("a cycle in ms, means over ranks, medians of %d samples; waiting counts as exchange\n", times.samples);
  text +=
      "         with Tpetra's exchanges          with Komvos\n"
      "  level       work  exchange     total        work  exchange     total   gain\n";
  for (std::size_t level = 0; level < times.before.size(); ++level) {
    text += row(std::to_string(level), times.before[level], times.after[level]);
  }
  return text + row("all", sum(times.before), sum(times.after));
}

void drawPlot(const std::string& path, const CycleTimes& times, const std::string& problem, const std::string& ranks) {
  std::string script = "$times << END\n";
  double most = 0;
  for (std::size_t level = 0; level < times.before.size(); ++level) {
    for (const auto& [name, time] :
         {std::pair("Tpetra", times.before[level]), std::pair("Komvos", times.after[level])}) {
      script += format("\"%s\" %.6g %.6g\n", name, 1e3 * time.work, 1e3 * time.exchange);
      most = std::max(most, 1e3 * time.total());
    }
    script += level + 1 < times.before.size() ? "\"\" NaN NaN\n" : "";
  }
  script += "END\n";
  const int bars = 3 * static_cast<int>(times.before.size()) - 1;
  script +=
      "set style data histograms\nset style histogram rowstacked\nset style fill solid 1 noborder\n"
      "set boxwidth 0.8\nset border 3 linecolor rgb '#606060'\n"
      "set grid ytics back linecolor rgb '#d8d8d8' linewidth 1\nset xtics nomirror scale 0\nset ytics nomirror\n"
      "set key outside right top Left reverse invert samplen 1.5 spacing 1.2\nset bmargin 5\n"
      "set ylabel 'milliseconds, mean over ranks (shorter is better)'\n";
  script += format("set xrange [-0.8:%.1f]\nset yrange [0:%.6g]\n", bars - 0.2, 1.15 * most);
  script += "set title " + Gnuplot::quoted("Time of a V-cycle by level: " + problem + ", " + ranks) + "\n";
  for (std::size_t level = 0; level < times.before.size(); ++level) {
    const double gain = times.before[level].total() / times.after[level].total();
    script += format("set label %d 'level %d: %.1f times' at %.1f,graph -0.15 center\n", static_cast<int>(level) + 1,
                     static_cast<int>(level), gain, 3.0 * static_cast<double>(level) + 0.5);
  }
  script +=
      "plot $times using 2:xtic(1) title 'work' linecolor rgb '#999999', '' using 3 title 'exchange' "
      "linecolor rgb '#d55e00'\n";
  Gnuplot::drawSvg(path, std::max(640, 60 * bars + 220), 420, script);
}

}  // namespace Komvos::Program
