#include "Komvos_TuningCache.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "Komvos_Broadcast.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_HaloUse.hpp"
#include "Komvos_Hash.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_Pattern.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_SystemInfo.hpp"

// How this works. A decision belongs to a HaloKey: makeHaloKey() makes it from all ranks' patterns, the nodes and the
// machine. load() reads the file on rank 0 and broadcasts its text, so that parse() has the same outcome on all ranks;
// save() writes beside the file and renames, so that a run that breaks off leaves the old one.
//
// Online tuning decides for each width class of vectors by itself, so there may be an entry for each.
//
// Where no key fits, the nearest one is a first guess: difference() compares what the forecast of routes rests on.
namespace Komvos {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* format = "komvos-tuning-cache";
constexpr int version = 3;

std::string hex(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

std::uint64_t fromHex(const std::string& text) {
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw BadInput("'" + text + "' is not a number of 16 hexadecimal digits");
  }
  return std::stoull(text, nullptr, 16);
}

/// The names of counts in a file.
constexpr std::pair<const char*, long HaloCounts::*> countNames[] = {
    {"ranks_off_node", &HaloCounts::ranksOffNode}, {"values_off_node", &HaloCounts::valuesOffNode},
    {"other_nodes", &HaloCounts::nodes},           {"values_of_nodes", &HaloCounts::valuesOfNodes},
    {"ranks_on_node", &HaloCounts::ranksOnNode},   {"values_on_node", &HaloCounts::valuesOnNode}};

/// \throws BadInput if it is negative
template <class Number>
Number readNumber(const Json& json, const char* name) {
  const auto number = json.at(name).get<Number>();
  if (number < 0) {
    throw BadInput(std::string(name) + " is " + std::to_string(number));
  }
  return number;
}

HaloKey readKey(const Json& json, int itsVersion) {
  HaloKey key;
  key.pattern = fromHex(json.at("pattern").get<std::string>());
  key.topology = fromHex(json.at("topology").get<std::string>());
  key.topologyText = json.at("topology_text").get<std::string>();
  key.machine = json.at("machine").get<std::string>();
  if (itsVersion > 1) {
    key.numRanks = readNumber<int>(json, "ranks");
    key.numNodes = readNumber<int>(json, "nodes");
    for (const auto& [name, count] : countNames) {
      key.counts.*count = readNumber<long>(json.at("counts"), name);
    }
  }
  return key;
}

bool isWidthClass(int columnsFrom) {
  return columnsFrom > 0 && Impl::columnsOfClass(Impl::widthClass(columnsFrom)) == columnsFrom;
}

TuningDecision readDecision(const Json& json) {
  TuningDecision decision;
  decision.route = parseRoute(json.at("route").get<std::string>());
  decision.pairing = parsePairing(json.at("pairing").get<std::string>());
  decision.intraNode = parseIntraNode(json.at("on_node").get<std::string>());
  decision.settled = json.value("settled", true);
  decision.columnsFrom = json.value("columns_from", 0);
  if (decision.columnsFrom != 0 && !isWidthClass(decision.columnsFrom)) {
    throw BadInput("columns_from is " + std::to_string(decision.columnsFrom) + ", not 1, 2 or 4");
  }
  if (decision.route.kind == RouteChoice::Kind::automatic || decision.intraNode == IntraNode::automatic) {
    throw BadInput("a decision for auto decides nothing");
  }
  return decision;
}

struct MachineName {
  std::string text;  // as rank 0 sees it
};

/// \note Collective the first time.
const std::string& machineOf(Impl::PrivateComm& comm) {
  const auto make = [&] {
    const std::string mine = comm.rank() == 0 ? Impl::processorName() + ", " + Impl::mpiLibraryName() : "";
    return std::make_shared<MachineName>(MachineName{Impl::broadcast(comm.get(), mine)});
  };
  return comm.attached<MachineName>(make).text;
}

}  // namespace

std::uint64_t hashOf(const Pattern& pattern) {
  // Two numbers at a time, sends and receives by themselves: the processor works on both at once.
  const auto pair = [](int high, int low) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(high)) << 32 | static_cast<std::uint32_t>(low);
  };
  std::uint64_t ofSends = Impl::mix(pattern.rank, pattern.numOwned), ofReceives = 1, ofTargets = 2;
  for (const Pattern::Send& send : pattern.sends) {
    ofSends = Impl::mix(ofSends, pair(send.destination, send.local));
  }
  for (const Pattern::Receive& receive : pattern.receives) {
    ofReceives = Impl::mix(ofReceives, pair(receive.value.owner, receive.value.local));
    ofTargets = Impl::mix(ofTargets, static_cast<std::uint64_t>(receive.target));
  }
  return Impl::mix(Impl::mix(ofSends, ofReceives), ofTargets);
}

HaloKey makeHaloKey(MPI_Comm comm, std::uint64_t patterns, const HaloCounts& counts, const NodeTopology& topology) {
  return {patterns,
          topology.fingerprint(),
          topology.describe(),
          machineOf(*Impl::PrivateComm::of(comm)),
          topology.numRanks(),
          topology.numNodes(),
          counts};
}

std::optional<double> difference(const HaloKey& a, const HaloKey& b) {
  if (a.machine != b.machine) {
    return std::nullopt;
  }
  std::vector<std::pair<long, long>> numbers{{a.numRanks, b.numRanks}, {a.numNodes, b.numNodes}};
  for (const auto& one : countNames) {
    numbers.emplace_back(a.counts.*one.second, b.counts.*one.second);
  }
  double sum = 0;
  for (const auto& [x, y] : numbers) {
    if ((x == 0) != (y == 0)) {
      return std::nullopt;
    }
    if (x > 2 * y || y > 2 * x) {
      return std::nullopt;
    }
    // Rounded: ranks compare these sums, and processors differ in the last bit of a logarithm.
    const double powers = x == y ? 0 : std::abs(std::log2(static_cast<double>(x) / static_cast<double>(y)));
    sum += std::round(1024 * powers) / 1024;
  }
  return sum;
}

TuningCache TuningCache::load(MPI_Comm comm, const std::string& file) {
  const std::string text = Impl::broadcastFile(comm, file, "cannot read tuning cache '" + file + "'");
  return parse(text, file);  // the same text, hence the same outcome, everywhere
}

TuningCache TuningCache::parse(const std::string& text, const std::string& name) {
  TuningCache cache;
  cache.name_ = name;
  try {
    const Json json = Json::parse(text);
    const Json &itsFormat = json.at("format"), &itsVersion = json.at("version");
    const bool isKnown = itsVersion == 1 || itsVersion == 2 || itsVersion == version;
    if (itsFormat != format || !isKnown) {
      throw BadInput("format is not " + std::string(format) + ", version 1 to " + std::to_string(version));
    }
    if (!json.at("decisions").is_array()) {
      throw BadInput("\"decisions\" is not a list");
    }
    for (const Json& one : json.at("decisions")) {
      cache.entries_.push_back({readKey(one, itsVersion.get<int>()), readDecision(one)});
    }
  } catch (const nlohmann::json::exception& error) {
    throw BadInput("tuning cache " + name + ": damaged, or not such a file: " + error.what());
  } catch (const BadInput& error) {
    throw BadInput("tuning cache " + name + ": " + error.what());
  }
  return cache;
}

std::string TuningCache::toText() const {
  Json json{{"format", format}, {"version", version}, {"decisions", Json::array()}};
  for (const Entry& entry : entries_) {
    Json counts;
    for (const auto& [name, count] : countNames) {
      counts[name] = entry.halo.counts.*count;
    }
    Json& one = json["decisions"].emplace_back();
    one = {{"pattern", hex(entry.halo.pattern)},
           {"topology", hex(entry.halo.topology)},
           {"topology_text", entry.halo.topologyText},
           {"machine", entry.halo.machine},
           {"ranks", entry.halo.numRanks},
           {"nodes", entry.halo.numNodes},
           {"counts", counts},
           {"route", toString(entry.decision.route)},
           {"pairing", toString(entry.decision.pairing)},
           {"on_node", toString(entry.decision.intraNode)}};
    if (!entry.decision.settled) {
      one["settled"] = false;
    }
    if (entry.decision.columnsFrom != 0) {
      one["columns_from"] = entry.decision.columnsFrom;
    }
  }
  return json.dump(1) + "\n";
}

void TuningCache::save(const std::string& file) const {
  const std::string temporary = file + "." + std::to_string(getpid()) + ".tmp";
  std::ofstream out(temporary, std::ios::binary);
  out << toText();
  out.close();
  if (!out || std::rename(temporary.c_str(), file.c_str()) != 0) {
    std::remove(temporary.c_str());
    throw Error("cannot write tuning cache " + file);
  }
}

bool TuningCache::Entry::isFor(const HaloKey& other) const {
  return halo.pattern == other.pattern && halo.topology == other.topology && halo.machine == other.machine;
}

void TuningCache::add(const HaloKey& halo, const TuningDecision& decision) {
  const auto isSuperseded = [&](const Entry& entry) {
    const bool isGuessForAll = entry.decision.columnsFrom == 0 && !entry.decision.settled;
    return entry.isFor(halo) && entry.decision.columnsFrom != decision.columnsFrom &&
           (decision.columnsFrom == 0 || isGuessForAll);
  };
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(), isSuperseded), entries_.end());
  const auto same = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.isFor(halo) && entry.decision.columnsFrom == decision.columnsFrom;
  });
  if (same != entries_.end()) {
    *same = {halo, decision};
  } else {
    entries_.push_back({halo, decision});
  }
}

void TuningCache::add(const TuningCache& newer) {
  for (const Entry& entry : newer.entries_) {
    add(entry.halo, entry.decision);
  }
}

void TuningCache::addOfAllRanks(MPI_Comm comm) {
  int rank = 0, size = 0;
  mpiCheck(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  mpiCheck(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  TuningCache all;
  all.name_ = name_;
  for (;;) {  // the lowest rank that knows more tells it
    TuningCache more;
    for (const Entry& entry : entries_) {
      if (all.findExactly(entry.halo, entry.decision.columnsFrom) == nullptr) {
        more.entries_.push_back(entry);
      }
    }
    int teller = more.size() > 0 ? rank : size;
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &teller, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
    if (teller == size) {
      break;
    }
    const TuningCache told = parse(Impl::broadcast(comm, more.toText(), teller), name_);
    all.entries_.insert(all.entries_.end(), told.entries_.begin(), told.entries_.end());
  }
  *this = std::move(all);
}

const TuningDecision* TuningCache::findExactly(const HaloKey& halo, int columnsFrom) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.isFor(halo) && entry.decision.columnsFrom == columnsFrom;
  });
  return found != entries_.end() ? &found->decision : nullptr;
}

const TuningDecision* TuningCache::find(const HaloKey& halo, int columns) const {
  const TuningDecision* const ofClass = findExactly(halo, Impl::columnsOfClass(Impl::widthClass(columns)));
  return ofClass != nullptr ? ofClass : findExactly(halo, 0);
}

const TuningDecision* TuningCache::find(const HaloKey& halo) const {
  for (int i = 0; i < Impl::numWidthClasses; ++i) {
    if (const TuningDecision* const found = find(halo, Impl::columnsOfClass(i))) {
      return found;
    }
  }
  return nullptr;
}

std::size_t TuningCache::numGuesses() const {
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const Entry& one) { return !one.decision.settled; }));
}

std::string TuningCache::whyNone(const HaloKey& halo) const {
  std::string reason = "none of its " + std::to_string(entries_.size()) + " decisions is for this pattern";
  for (const Entry& entry : entries_) {
    if (entry.halo.pattern == halo.pattern && entry.halo.topology != halo.topology) {
      reason = "made for other nodes: " + entry.halo.topologyText + "; here: " + halo.topologyText;
    } else if (entry.halo.pattern == halo.pattern) {
      reason = "made on another machine: " + entry.halo.machine + "; here: " + halo.machine;
    }
  }
  return "tuning cache " + name_ + " does not fit this halo: " + reason;
}

const TuningDecision* TuningCache::findSimilar(const HaloKey& halo, int columns) const {
  const TuningDecision* nearest = nullptr;
  double least = HUGE_VAL;
  const int columnsFrom = Impl::columnsOfClass(Impl::widthClass(columns));
  for (const Entry& entry : entries_) {
    const std::optional<double> here = difference(entry.halo, halo);
    const bool suitsBetter = entry.decision.columnsFrom == columnsFrom;
    if (here && entry.decision.settled && (*here < least || (*here == least && suitsBetter))) {
      least = *here;
      nearest = &entry.decision;
    }
  }
  return nearest;
}

}  // namespace Komvos
