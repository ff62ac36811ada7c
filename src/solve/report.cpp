#include "solve/report.hpp"

#include <algorithm>

#include "support/text_format.hpp"
#include "support/traffic_json.hpp"

namespace Komvos::Program {

namespace {

const char* const haloHead =
    "  halo              route       neighbours    between nodes: messages, bytes              on nodes: messages, "
    "bytes\n"
    "                                       max       max     total         max       total      max     total         "
    "max       total\n";

std::string haloRow(const std::string& name, const std::string& route, const Traffic& t) {
  return format("  %-17s %-11s %10ld %9ld %9ld %11ld %11ld %8ld %9ld %11ld %11ld\n", name.c_str(), route.c_str(),
                t.max.neighbours, t.max.interNodeMessages, t.total.interNodeMessages, bytes(t.max.interNodeValues),
                bytes(t.total.interNodeValues), t.max.onNodeMessages, t.total.onNodeMessages, bytes(t.max.onNodeValues),
                bytes(t.total.onNodeValues));
}

std::string haloTable(const std::vector<HaloEntry>& halos, bool used) {
  std::string text;
  for (const HaloEntry& halo : halos) {
    if (halo.used == used) {
      text += haloRow(halo.name, "standard", halo.report.standard);
      if (halo.report.route != "standard") {
        text += haloRow("", halo.report.route, halo.report.chosen);
      }
    }
  }
  return text.empty() ? text : haloHead + text;
}

std::string times(const HaloReport& r) {
  return r.standardSeconds > 0 ? format(" One exchange took %.0f us by standard and messages, %.0f us as chosen.",
                                        1e6 * r.standardSeconds, 1e6 * r.chosenSeconds)
                               : "";
}

/// Else it was broken off.
bool wasCompared(const HaloTrial& trial) { return trial.seconds > 0; }

/// Why a halo in use keeps the standard route.
std::string whyStandard(const HaloReport& r, const SolveReport& solve) {
  if (r.fromTuningCache) {
    return "as in the tuning cache";
  }
  if (solve.route != "auto") {
    return "as asked for";
  }
  if (solve.tuning == "off") {
    return "as tuning is off";
  }
  if (r.online) {
    const auto compared = std::count_if(r.trials.begin(), r.trials.end(), wasCompared);
    const auto others = std::count_if(r.trials.begin(), r.trials.end(), [&](const HaloTrial& one) {
      return wasCompared(one) && (toString(one.route) != r.route || one.intraNode != r.intraNode);
    });
    if (compared > 0) {
      return others > 0 ? format("none of %ld others that were tried is faster", static_cast<long>(others))
                        : "faster than what was in use before";
    }
    return r.settledAt > 0 ? "no other variant has enough to gain"
                           : format("no other variant was worth a trial in %ld uses", r.uses);
  }
  const auto measured = std::count_if(r.candidates.begin(), r.candidates.end(), [&](const HaloCandidate& one) {
    return one.measuredSeconds > 0 && (toString(one.route) != r.route || one.intraNode != r.intraNode);
  });
  return measured == 0 ? "no other variant was worth measuring"
                       : format("none of %ld others that were measured is clearly faster", static_cast<long>(measured));
}

/// What the route of this halo gained, as a sentence.
std::string gain(const HaloEntry& halo, const SolveReport& solve) {
  const HaloReport& r = halo.report;
  const RankTraffic& before = r.standard.total;
  const RankTraffic& after = r.chosen.total;
  if (before.interNodeMessages == 0) {
    return halo.name + ": nothing crosses between nodes.";
  }
  if (r.route == "standard") {
    return halo.name + ": the standard route, by " + toString(r.intraNode) + " on nodes, " + whyStandard(r, solve) +
           "." + times(r);
  }
  if (after.interNodeMessages == before.interNodeMessages) {
    return halo.name + ": " + r.route +
           format(" sends as many messages between nodes as standard, %ld.", before.interNodeMessages) + times(r);
  }
  return halo.name + ": " + r.route +
         format(" sends %ld instead of %ld messages between nodes, and %ld instead of %ld bytes.",
                after.interNodeMessages, before.interNodeMessages, bytes(after.interNodeValues),
                bytes(before.interNodeValues)) +
         times(r);
}

/// How much faster the exchange in use is than the one at the beginning, as it was measured; 0 if it was not.
double gainOf(const HaloReport& r) {
  if (r.chosenSeconds > 0) {
    return r.standardSeconds / r.chosenSeconds;
  }
  double first = 0, last = 0;  // not the product of the gains of all trials, each of which won by chance, too
  for (const HaloTrial& one : r.trials) {
    if (one.outcome == "faster" && one.columns == 1 && one.seconds > 0) {
      first = first > 0 ? first : one.secondsInUse;
      last = one.seconds;
    }
  }
  return last > 0 ? first / last : std::any_of(r.trials.begin(), r.trials.end(), wasCompared) ? 1 : 0;
}

std::string variantName(const std::string& route, IntraNode intraNode) {
  return route + (intraNode == IntraNode::sharedMemory ? ", shared memory" : ", messages");
}

/// What was tried or measured, each route once.
std::string tried(const HaloReport& r) {
  std::vector<std::string> names;
  const auto add = [&names](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  };
  for (const HaloTrial& one : r.trials) {
    if (!wasCompared(one)) {
      continue;
    }
    add(one.route == RouteChoice::standard ? variantName("standard", one.intraNode) : toString(one.route));
  }
  for (const HaloCandidate& one : r.candidates) {
    if (one.measuredSeconds > 0) {
      add(toString(one.route));
    }
  }
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : "; ") + name;
  }
  return text.empty() ? "nothing" : text;
}

/// A line for each halo in use: what was decided, and what it brought.
std::string decisionTable(const SolveReport& report) {
  std::string text =
      "decisions; gain: the time of the product or import as it began over the time now, where tried online\n";
  text += format("  %-17s %10s %6s %6s  %-28s %s\n", "halo", "neighbours", "uses", "gain", "in use", "tried");
  for (const HaloEntry& halo : report.halos) {
    if (halo.used) {
      const HaloReport& r = halo.report;
      const double gain = gainOf(r);
      text += format("  %-17s %10ld %6s %6s  %-28s %s\n", halo.name.c_str(), r.standard.max.neighbours,
                     r.online ? std::to_string(r.uses).c_str() : "-",  // uses are counted online only
                     gain > 0 ? format("%.2f", gain).c_str() : "-", variantName(r.route, r.intraNode).c_str(),
                     tried(r).c_str());
    }
  }
  return text;
}

/// Of the table of halos in use.
std::string headOfUsed(const SolveReport& r) {
  const auto isFirstWithNote = [](const HaloEntry& one) { return one.used && !one.report.tuningCacheNote.empty(); };
  const auto without = std::find_if(r.halos.begin(), r.halos.end(), isFirstWithNote);
  if (without == r.halos.end()) {
    return r.fromTuningCache ? "halos in use, as in the tuning cache"
                             : "halos in use, route " + r.route + ", pairing " + r.pairing;
  }
  const auto used = std::count_if(r.halos.begin(), r.halos.end(), [](const HaloEntry& one) { return one.used; });
  const auto count = std::count_if(r.halos.begin(), r.halos.end(), isFirstWithNote);
  return format("note           tuned in this run: %ld of %ld halos in use. For %s, ", static_cast<long>(count),
                static_cast<long>(used), without->name.c_str()) +
         without->report.tuningCacheNote + "\nhalos in use";
}

std::string plural(int count, const char* word) { return std::to_string(count) + " " + word + (count == 1 ? "" : "s"); }

std::string directText(const SolveReport& r) {
  const DirectReport& direct = *r.direct;
  std::string text =
      format("factors        %lld entries, %.1f times those of A, %.0f MB on the rank that needs most\n",
             direct.factorEntries, static_cast<double>(direct.factorEntries) / static_cast<double>(r.entries),
             static_cast<double>(direct.largestMemory) / 1e6);
  text += format("factorization  %.2f billion operations in %.3f s, after an analysis of %.3f s\n",
                 direct.operations / 1e9, direct.factorSeconds, direct.analysisSeconds);
  text += "solves         " + std::to_string(r.iterations) +
          (r.iterations > 1 ? " (the first with b, the others with residuals)" : "") +
          (r.converged ? ", converged" : ", NOT converged") + "\n";
  return text + format("residual       %.3e true, tolerance %.1e\n", r.trueResidual, r.tolerance);
}

std::string belosText(const SolveReport& r) {
  std::string text =
      format("iterations     %d, %s%s\n", r.iterations, r.converged ? "converged" : "NOT converged",
             r.restarts > 0 ? (", restarted " + plural(r.restarts, "time") + " from the true residual").c_str() : "");
  const std::string byBelos = r.belosResidual >= 0 ? format("%.3e by Belos", r.belosResidual) : "none by Belos";
  return text + format("residual       %.3e true, %s, tolerance %.1e\n", r.trueResidual, byBelos.c_str(), r.tolerance);
}

std::string outcomeText(const SolveReport& r) {
  std::string text = r.direct ? directText(r) : belosText(r);
  if (r.exactKnown) {
    text += format("error          %.3e against the known solution\n", r.relativeError);
  }
  text += format("time           %.3f s reading or generating, %.3f s set-up, %.3f s solve\n", r.readSeconds,
                 r.setupSeconds, r.solveSeconds);
  return text;
}

}  // namespace

std::string toText(const SolveReport& r) {
  std::string text =
      "problem        " + r.problem +
      format(": %lld rows, %lld entries, %s\n", r.rows, r.entries, r.symmetric ? "symmetric" : "not symmetric");
  text += "ranks          " + r.topology + (r.topologyGiven ? ", as given" : ", as MPI says") + "; rows " +
          r.partition + "\n";
  text += r.direct ? "solver         " + r.direct->library + "\n"
                   : "solver         " + r.solver + ", preconditioner " + r.preconditioner + "\n";
  text += outcomeText(r);
  const std::string used = haloTable(r.halos, true);
  if (used.empty()) {
    return text + (r.direct ? "" : "halos          none, no rank needs values of another\n");
  }
  text += headOfUsed(r) + "\n" + used;
  for (const HaloEntry& halo : r.halos) {
    const bool isFinest = &halo == &r.halos.front();  // in detail; of the levels of MueLu, what came out
    if (isFinest && halo.used && halo.report.chosenSeconds > 0) {
      text += "variants considered for " + halo.name + ", * chosen:\n" + describe(halo.report);
    } else if (isFinest && halo.used && !halo.report.trials.empty()) {
      text += "routes planned for " + halo.name + ", * in use at the end:\n" + describe(halo.report);
    }
    text += halo.used && isFinest ? gain(halo, r) + "\n" : "";
  }
  if (std::count_if(r.halos.begin(), r.halos.end(), [](const HaloEntry& one) { return one.used; }) > 1) {
    text += decisionTable(r);
  }
  if (r.cycles) {
    text += toText(*r.cycles);
  }
  if (r.savedGuesses > 0) {
    text += format(
        "tuning cache   %zu of %zu decisions rest on too few uses: the next run begins where this one ended, "
        "and goes on tuning\n",
        r.savedGuesses, r.savedDecisions);
  }
  for (const std::string& kept : r.keptByMueLu) {
    text += "exchanges as without Komvos: " + kept + "\n";
  }
  const std::string planned = haloTable(r.halos, false);
  if (!planned.empty()) {
    text += "halos of the coarse levels, planned for comparison; MueLu exchanges them by itself\n" + planned;
  }
  return text;
}

std::string whyNotConverged(const SolveReport& r) {
  if (r.converged) {
    return "";
  }
  std::string text = format("not converged: the true residual is %.3e after %d %s, tolerance %.1e", r.trueResidual,
                            r.iterations, r.direct ? "solves" : "iterations", r.tolerance);
  if (r.belosConverged) {
    text += format("; Belos claims %.3e, its recurrence has drifted", r.belosResidual);
  }
  return text + (r.failureReason.empty() ? "" : "; " + r.failureReason);
}

}  // namespace Komvos::Program
