#include "solve/halo_entry.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "Komvos_Broadcast.hpp"
#include "Komvos_Error.hpp"

// How this works. A halo's report is the same on all ranks that have a part in it. So the lowest rank that has halos
// that rank 0 lacks tells them to all, as JSON without names, of which nobody but unpack() needs to know; and so on,
// until no rank has more.
namespace Komvos::Program {

namespace {

using Json = nlohmann::json;
using Counts = std::array<long, 5>;
using Texts = std::array<std::string, 3>;  // route, pairing or outcome, on the node

Counts countsOf(const RankTraffic& t) {
  return {t.neighbours, t.interNodeMessages, t.interNodeValues, t.onNodeMessages, t.onNodeValues};
}
RankTraffic trafficOf(const Counts& c) { return {c[0], c[1], c[2], c[3], c[4]}; }

Json pack(const Traffic& traffic) { return {countsOf(traffic.max), countsOf(traffic.total)}; }
Traffic unpackTraffic(const Json& json) {
  return {trafficOf(json.at(0).get<Counts>()), trafficOf(json.at(1).get<Counts>())};
}

Json pack(const HaloTrial& one) {
  return {Texts{toString(one.route), one.outcome, toString(one.intraNode)},
          one.columns,
          one.firstUse,
          one.lastUse,
          one.seconds,
          one.secondsInUse};
}
HaloTrial unpackTrial(const Json& json) {
  const auto [texts, columns, first, last, seconds, inUse] =
      json.get<std::tuple<Texts, int, long, long, double, double>>();
  return {parseRoute(texts[0]), parseIntraNode(texts[2]), columns, first, last, seconds, inUse, texts[1]};
}

Json pack(const HaloCandidate& one) {
  return {Texts{toString(one.route), one.rejectionReason, toString(one.intraNode)},
          pack(one.traffic),
          one.buildSeconds,
          one.buildMessages,
          one.planBytes,
          one.modelledSeconds,
          one.measuredSeconds};
}
HaloCandidate unpackCandidate(const Json& json) {
  const auto [texts, traffic, build, messages, bytes, modelled, measured] =
      json.get<std::tuple<Texts, Json, double, long, long, double, double>>();
  return {parseRoute(texts[0]),
          parseIntraNode(texts[2]),
          unpackTraffic(traffic),
          build,
          messages,
          bytes,
          modelled,
          measured,
          texts[1]};
}

Json pack(const HaloEntry& halo) {
  const HaloReport& r = halo.report;
  Json trials = Json::array(), candidates = Json::array();
  for (const HaloTrial& one : r.trials) {
    trials.push_back(pack(one));
  }
  for (const HaloCandidate& one : r.candidates) {
    candidates.push_back(pack(one));
  }
  return {halo.name,
          halo.level,
          halo.used,
          Texts{r.route, toString(r.pairing), toString(r.intraNode)},
          r.reverseRoute,
          r.tuningCacheNote,
          pack(r.standard),
          pack(r.chosen),
          std::array<double, 4>{r.setupSeconds, r.standardSeconds, r.chosenSeconds, r.tuningSeconds},
          std::array<bool, 5>{r.decisionReused, r.beganAsSimilar, r.beganAsForecast, r.fromTuningCache, r.online},
          std::array<long, 2>{r.uses, r.settledAt},
          trials,
          candidates};
}

Json pack(const std::string& sentence) { return sentence; }

template <class Entry>
Entry unpack(const Json& json);

template <>
std::string unpack(const Json& json) {
  return json.get<std::string>();
}

template <>
HaloEntry unpack(const Json& json) {
  HaloEntry halo;
  HaloReport& r = halo.report;
  halo.name = json.at(0).get<std::string>();
  halo.level = json.at(1).get<int>();
  halo.used = json.at(2).get<bool>();
  const auto texts = json.at(3).get<Texts>();
  r.route = texts[0];
  r.pairing = parsePairing(texts[1]);
  r.intraNode = parseIntraNode(texts[2]);
  r.reverseRoute = json.at(4).get<std::string>();
  r.tuningCacheNote = json.at(5).get<std::string>();
  r.standard = unpackTraffic(json.at(6));
  r.chosen = unpackTraffic(json.at(7));
  const auto seconds = json.at(8).get<std::array<double, 4>>();
  r.setupSeconds = seconds[0];
  r.standardSeconds = seconds[1];
  r.chosenSeconds = seconds[2];
  r.tuningSeconds = seconds[3];
  const auto flags = json.at(9).get<std::array<bool, 5>>();
  r.decisionReused = flags[0];
  r.beganAsSimilar = flags[1];
  r.beganAsForecast = flags[2];
  r.fromTuningCache = flags[3];
  r.online = flags[4];
  const auto uses = json.at(10).get<std::array<long, 2>>();
  r.uses = uses[0];
  r.settledAt = uses[1];
  for (const Json& one : json.at(11)) {
    r.trials.push_back(unpackTrial(one));
  }
  for (const Json& one : json.at(12)) {
    r.candidates.push_back(unpackCandidate(one));
  }
  return halo;
}

/// What all ranks have. Of equal entries there is one, that of the lowest rank. \note Collective on `comm`.
template <class Entry, class Same>
std::vector<Entry> unionOf(const std::vector<Entry>& entries, const Same& same, MPI_Comm comm) {
  int rank = 0, size = 0;
  mpiCheck(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  mpiCheck(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  std::vector<Entry> all;
  for (;;) {  // the lowest rank that knows more tells it
    Json more = Json::array();
    for (const Entry& one : entries) {
      if (std::none_of(all.begin(), all.end(), [&](const Entry& other) { return same(one, other); })) {
        more.push_back(pack(one));
      }
    }
    int teller = more.empty() ? size : rank;
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &teller, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
    if (teller == size) {
      return all;
    }
    const std::string text = rank == teller ? more.dump() : std::string();
    for (const Json& one : Json::parse(Impl::broadcast(comm, text, teller))) {
      all.push_back(unpack<Entry>(one));
    }
  }
}

}  // namespace

void addOfAllRanks(std::vector<HaloEntry>& halos, MPI_Comm comm) {
  halos = unionOf(
      halos, [](const HaloEntry& a, const HaloEntry& b) { return a.name == b.name; }, comm);
  const auto place = [](const HaloEntry& halo) {
    const std::string kinds[] = {"A", "P", "R", "Pbar", "Importer"};
    const std::string kind = halo.name.substr(halo.name.find_last_of(' ') + 1);
    return std::pair(halo.level, std::find(std::begin(kinds), std::end(kinds), kind) - std::begin(kinds));
  };
  std::stable_sort(halos.begin(), halos.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
}

void addOfAllRanks(std::vector<std::string>& sentences, MPI_Comm comm) {
  const auto isOfTheSame = [](const std::string& a, const std::string& b) {  // the rest may differ from rank to rank
    return a.substr(0, a.find(": ")) == b.substr(0, b.find(": "));
  };
  sentences = unionOf(sentences, isOfTheSame, comm);
  const auto level = [](const std::string& sentence) { return std::stoi(sentence.substr(std::strlen("level "))); };
  std::stable_sort(sentences.begin(), sentences.end(),
                   [&](const auto& a, const auto& b) { return level(a) < level(b); });
}

}  // namespace Komvos::Program
