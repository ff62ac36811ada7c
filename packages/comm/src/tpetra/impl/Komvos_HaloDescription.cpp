#include "Komvos_HaloDescription.hpp"

#include <sstream>
#include <vector>

namespace Komvos::Impl {

namespace {

void describeTraffic(std::ostream& out, const char* name, const RankTraffic& traffic) {
  out << name << ": " << traffic.neighbours << " neighbours, " << traffic.interNodeMessages
      << " messages between nodes with " << traffic.interNodeValues << " values, " << traffic.onNodeMessages
      << " on nodes with " << traffic.onNodeValues << "\n";
}

void describeMessages(std::ostream& out, const char* name, const std::vector<PlanMessage>& messages) {
  for (const PlanMessage& one : messages) {
    out << "    stage " << one.stage << " " << name << " rank " << one.peer << ": " << one.count << " values"
        << (one.onNode ? ", on this node" : "") << "\n";
  }
}

}  // namespace

std::string haloInOneLine(const HaloReport& report) {
  const RankTraffic& total = report.chosen.total;
  std::ostringstream out;
  out << "route " << report.route << ", on node " << toString(report.intraNode) << ", " << total.interNodeMessages
      << " messages between nodes with " << total.interNodeValues << " values, " << total.onNodeMessages
      << " on nodes with " << total.onNodeValues;
  return out.str();
}

std::string haloOfAllRanks(const HaloReport& report, Teuchos::EVerbosityLevel level) {
  std::ostringstream out;
  out << "Route: " << report.route << "\nOn node: " << toString(report.intraNode)
      << "\nPairing of nodes: " << toString(report.pairing) << "\nOne exchange of one column:\n";
  describeTraffic(out, "  all ranks", report.chosen.total);
  describeTraffic(out, "  most on any rank", report.chosen.max);
  describeTraffic(out, "  all ranks, standard route", report.standard.total);
  out << "Set-up: " << report.setupSeconds << " s\n";
  if (report.chosenSeconds > 0) {
    out << "Measured: " << report.chosenSeconds << " s, standard route by messages " << report.standardSeconds
        << " s\n";
  }
  if (level >= Teuchos::VERB_MEDIUM && !report.candidates.empty()) {
    out << "Considered:\n" << describe(report);
  }
  return out.str();
}

std::string haloOfRank(const ExchangePlan& plan, std::size_t memoryBytes, Teuchos::EVerbosityLevel level) {
  std::ostringstream out;
  out << "  rank " << plan.rank << ": " << plan.numOwned << " owned, " << plan.numTarget << " ghosts, sends "
      << plan.sends.size() << " messages with " << plan.sendLength() << " values, receives " << plan.receives.size()
      << " with " << plan.receiveLength() << ", " << memoryBytes << " bytes\n";
  if (level >= Teuchos::VERB_EXTREME) {
    describeMessages(out, "to", plan.sends);
    describeMessages(out, "from", plan.receives);
  }
  return out.str();
}

}  // namespace Komvos::Impl
