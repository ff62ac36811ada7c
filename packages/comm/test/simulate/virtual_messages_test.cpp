// Halos of virtual ranks and their messages, against patterns and plans that are built in full.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_ReplayTrace.hpp"
#include "Komvos_RouteChoice.hpp"
#include "Komvos_SetupTransport.hpp"
#include "Komvos_VirtualHalo.hpp"
#include "Komvos_VirtualMessages.hpp"
#include "support/test_patterns.hpp"

namespace {

using namespace KomvosTest;
using Komvos::BadInput;
using Komvos::CsrStructure;
using Komvos::ExchangePlan;
using Komvos::InMemorySetupTransport;
using Komvos::NodeTopology;
using Komvos::Pattern;
using Komvos::Route;
using Komvos::Traffic;
using Komvos::VirtualHalo;
using Komvos::VirtualMessage;

/// A matrix whose product has the halo: rank r owns row r, which names all that r needs, in that order.
VirtualHalo haloOf(const Needs& needs) {
  std::vector<std::size_t> offset{0};
  std::vector<int> column;
  std::vector<int> rowOwner;
  for (std::size_t rank = 0; rank < needs.needs.size(); ++rank) {
    column.insert(column.end(), needs.needs[rank].begin(), needs.needs[rank].end());
    offset.push_back(column.size());
    rowOwner.push_back(static_cast<int>(rank));
  }
  return VirtualHalo::ofProduct(static_cast<int>(rowOwner.size()), {rowOwner.size(), offset.data(), column.data()},
                                rowOwner, needs.owner);
}

std::vector<std::unique_ptr<Route>> allRoutes(const NodeTopology& topology) {
  std::vector<int> socket;  // two on each node, where it has two ranks
  for (int rank = 0; rank < topology.numRanks(); ++rank) {
    socket.push_back(2 * topology.nodeOf(rank) + topology.localRankOf(rank) % 2);
  }
  const NodeTopology sockets = NodeTopology::fromMap(socket);
  std::vector<std::unique_ptr<Route>> routes;
  for (const char* const text : {"standard", "two-step", "three-step", "split:2", "axis", "sockets"}) {
    for (const Komvos::Pairing pairing : allPairings()) {
      routes.push_back(makeRoute(Komvos::parseRoute(text), topology, pairing, &sockets));
    }
  }
  return routes;
}

using MessageSizes = std::map<std::tuple<int, int, int>, long>;  // (from, to, stage)

MessageSizes messagesOf(const std::vector<ExchangePlan>& plans) {
  MessageSizes sizes;
  for (const ExchangePlan& plan : plans) {
    for (const Komvos::PlanMessage& send : plan.sends) {
      sizes[{plan.rank, send.peer, send.stage}] = send.count;
    }
  }
  return sizes;
}

std::string text(const Traffic& traffic) {
  std::string all;
  for (const Komvos::RankTraffic& t : {traffic.max, traffic.total}) {
    for (const long number : {t.neighbours, t.interNodeMessages, t.interNodeValues, t.onNodeMessages, t.onNodeValues}) {
      all += std::to_string(number) + ' ';
    }
  }
  return all;
}

/// What ranks receive, by the plans' own lists of receives.
Traffic receivedBy(std::vector<ExchangePlan> plans) {
  for (ExchangePlan& plan : plans) {
    plan.sends = plan.receives;
  }
  return trafficOf(plans);
}

void compareWithPlans(const Needs& needs, const NodeTopology& topology, Route& route) {
  const VirtualHalo halo = haloOf(needs);
  InMemorySetupTransport transport(topology.numRanks());
  const std::vector<ExchangePlan> plans = buildPlans(transport, topology, route, halo.patterns());
  MessageSizes counted;
  std::tuple<int, int, int> last{-1, -1, -1};
  Komvos::TrafficCounter counter(topology);
  visitMessages(halo, route, [&](const VirtualMessage& m) {
    EXPECT_LT(last, std::make_tuple(m.from, m.to, m.stage));
    last = {m.from, m.to, m.stage};
    counted[last] = m.values;
    counter.add(m);
  });
  EXPECT_EQ(counted, messagesOf(plans));
  EXPECT_EQ(text(counter.sent()), text(trafficOf(plans)));
  EXPECT_EQ(text(counter.received()), text(receivedBy(plans)));
}

TEST(VirtualHalo, HasThePatternsOfItsNeeds) {
  for (const int numRanks : {1, 2, 7, 13}) {
    for (unsigned seed = 0; seed < 5; ++seed) {
      const Needs needs = randomNeeds(numRanks, 9, 20, seed);
      // The text-book patterns keep a target for each mention; a product needs a value once.
      std::vector<Pattern> expected = KomvosTest::patternsFromNeeds(needs.owner, needs.needs);
      const std::vector<Pattern> patterns = haloOf(needs).patterns();
      ASSERT_EQ(patterns.size(), expected.size());
      for (int rank = 0; rank < numRanks; ++rank) {
        std::vector<std::pair<int, int>> sends[2];
        std::vector<Komvos::ValueId> received[2];
        const Pattern* const both[2] = {&patterns[rank], &expected[rank]};
        for (int k = 0; k < 2; ++k) {
          for (const Pattern::Send& send : both[k]->sends) {
            sends[k].emplace_back(send.destination, send.local);
          }
          for (const Pattern::Receive& receive : both[k]->receives) {
            if (received[k].empty() || received[k].back() != receive.value) {
              received[k].push_back(receive.value);
            }
          }
        }
        patterns[rank].check(numRanks);
        EXPECT_EQ(sends[0], sends[1]);
        EXPECT_EQ(received[0], received[1]);
        EXPECT_EQ(patterns[rank].rank, rank);
        EXPECT_EQ(patterns[rank].numOwned, expected[rank].numOwned);
        EXPECT_EQ(patterns[rank].numTarget, static_cast<int>(received[0].size()));
      }
    }
  }
}

TEST(VirtualHalo, OfATridiagonalMatrixHasTwoNeighbours) {
  const int rows = 12;
  std::vector<std::size_t> offset{0};
  std::vector<int> column;
  std::vector<int> owner;
  for (int row = 0; row < rows; ++row) {
    for (int j = std::max(0, row - 1); j <= std::min(rows - 1, row + 1); ++j) {
      column.push_back(j);
    }
    offset.push_back(column.size());
    owner.push_back(row / 3);
  }
  const VirtualHalo halo = VirtualHalo::ofProduct(4, {rows, offset.data(), column.data()}, owner, owner);
  EXPECT_EQ(halo.numNeeds(), 6);
  EXPECT_EQ(halo.numValuesOf(1), 3);
  EXPECT_EQ(std::vector<int>(halo.destinationsOf(1, 0).begin(), halo.destinationsOf(1, 0).end()), std::vector<int>{0});
  EXPECT_EQ(halo.destinationsOf(1, 1).size(), 0U);
  EXPECT_EQ(std::vector<int>(halo.destinationsOf(1, 2).begin(), halo.destinationsOf(1, 2).end()), std::vector<int>{2});
  Komvos::TrafficCounter counter(NodeTopology::uniform(4, 2));
  visitMessages(halo, Komvos::StandardRoute(), [&](const VirtualMessage& message) { counter.add(message); });
  EXPECT_EQ(text(counter.sent()), "2 1 1 1 1 6 2 2 4 4 ");
}

TEST(VirtualHalo, RefusesWhatDoesNotFit) {
  const std::size_t offset[] = {0, 1, 2};
  const int column[] = {1, 2};
  const CsrStructure matrix{2, offset, column};
  const auto errorOf = [&](const std::vector<int>& rows, const std::vector<int>& columns) -> std::string {
    try {
      VirtualHalo::ofProduct(2, matrix, rows, columns);
    } catch (const BadInput& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(errorOf({0, 1}, {0, 1, 1}), "none");
  EXPECT_EQ(errorOf({0}, {0, 1, 1}), "VirtualHalo: 2 rows, owners for 1");
  EXPECT_EQ(errorOf({0, 1}, {0, 1}), "VirtualHalo: column 2 of 2");
  EXPECT_EQ(errorOf({0, 2}, {0, 1, 1}), "VirtualHalo: a row belongs to rank 2 of 2");
  EXPECT_EQ(errorOf({0, 1}, {0, 1, -1}), "VirtualHalo: a column belongs to rank -1 of 2");
}

TEST(VirtualMessages, EqualThoseOfPlansForEveryRoute) {
  for (const int numRanks : {1, 2, 5, 7, 10, 11}) {
    for (const NamedTopology& named : topologiesFor(numRanks)) {
      for (const std::unique_ptr<Route>& route : allRoutes(named.topology)) {
        SCOPED_TRACE(std::to_string(numRanks) + " ranks, " + named.name + ", " + route->name());
        compareWithPlans(randomNeeds(numRanks, 12, 8, 3), named.topology, *route);
        compareWithPlans(randomNeeds(numRanks, 6, 50, 4), named.topology, *route);
        compareWithPlans(allToAll(numRanks, 3), named.topology, *route);
      }
    }
  }
}

TEST(VirtualMessages, ARouteThatLosesValuesIsFound) {
  struct Lost : Route {
    explicit Lost(int stages) : stages(stages) {}
    std::string name() const override { return "lost"; }
    int numStages() const override { return stages; }
    int hop(int, int here, int, int) const override { return here; }
    int stages;
  };
  const VirtualHalo halo = haloOf(allToAll(3, 1));
  EXPECT_THROW(visitMessages(halo, Lost(1), [](const VirtualMessage&) {}), Komvos::Error);
  EXPECT_THROW(visitMessages(halo, Lost(2), [](const VirtualMessage&) {}), Komvos::Error);
}

TEST(ReplayTrace, NamesActiveRanksAndTheirNodes) {
  // Ranks 0, 1 | 2, 3 | 4, 5; rank 0 and 3 have nothing to do.
  const std::vector<VirtualMessage> messages{{0, 1, 2, 3}, {1, 2, 5, 3}, {1, 2, 1, 1}, {0, 4, 2, 2}};
  const Komvos::ReplayTrace trace(NodeTopology::uniform(6, 2), messages, 8);
  EXPECT_EQ(trace.numActive(), 4);
  std::ostringstream actions;
  trace.writeActions(actions, {100, 0.5});
  EXPECT_EQ(actions.str(),
            "0 init\n0 isend 1 0 24\n0 wait 0 1 0\n0 irecv 1 1 8\n0 wait 1 0 1\n0 compute 104\n0 finalize\n"
            "1 init\n1 irecv 0 0 24\n1 irecv 2 0 16\n1 wait 0 1 0\n1 wait 2 1 0\n1 compute 220\n"
            "1 isend 0 1 8\n1 isend 3 1 24\n1 wait 1 0 1\n1 wait 1 3 1\n1 finalize\n"
            "2 init\n2 isend 1 0 16\n2 wait 2 1 0\n2 finalize\n"
            "3 init\n3 irecv 1 1 24\n3 wait 1 3 1\n3 compute 112\n3 finalize\n");
  std::ostringstream hosts;
  trace.writeHosts(hosts);
  std::ostringstream free;
  trace.writeActions(free, {});
  EXPECT_EQ(free.str().find("compute"), std::string::npos);
  EXPECT_EQ(hosts.str(), "n0\nn1\nn2\nn2\n");
}

TEST(ReplayTrace, KeepsFewSendsUnderWay) {
  const int numRanks = 12;
  const int maxConcurrentSends = 3;
  std::vector<VirtualMessage> messages;
  for (int from = 0; from < numRanks; ++from) {
    for (int to = 0; to < numRanks; ++to) {
      if (to != from) {
        messages.push_back({0, from, to, 1});
      }
    }
  }
  const Komvos::ReplayTrace trace(NodeTopology::uniform(numRanks, 4), messages, 8);
  std::stringstream actions;
  trace.writeActions(actions, {}, maxConcurrentSends);
  std::vector<std::vector<int>> order(numRanks);  // of the receivers of each rank
  std::vector<std::set<int>> sending(numRanks), receiving(numRanks);
  std::string line;
  while (std::getline(actions, line)) {
    std::istringstream words(line);
    int rank = 0;
    int a = 0;
    int b = 0;
    std::string what;
    words >> rank >> what >> a >> b;
    if (what == "isend") {
      order[rank].push_back(a);
      sending[rank].insert(a);
      EXPECT_LE(sending[rank].size(), static_cast<std::size_t>(maxConcurrentSends)) << rank;
    } else if (what == "irecv") {
      EXPECT_TRUE(order[rank].empty()) << line;
      receiving[rank].insert(a);
    } else if (what == "wait") {
      EXPECT_EQ(a == rank ? sending[rank].erase(b) : receiving[rank].erase(a), 1U) << line;
    }
  }
  std::set<std::vector<int>> orders;
  for (int rank = 0; rank < numRanks; ++rank) {
    EXPECT_TRUE(sending[rank].empty() && receiving[rank].empty()) << rank;
    EXPECT_FALSE(std::is_sorted(order[rank].begin(), order[rank].end())) << rank;
    orders.insert(order[rank]);
    std::sort(order[rank].begin(), order[rank].end());
    EXPECT_EQ(order[rank].size(), static_cast<std::size_t>(numRanks - 1));
    EXPECT_EQ(std::adjacent_find(order[rank].begin(), order[rank].end()), order[rank].end()) << rank;
  }
  EXPECT_EQ(orders.size(), static_cast<std::size_t>(numRanks));
  std::ostringstream again;
  trace.writeActions(again, {}, maxConcurrentSends);
  EXPECT_EQ(again.str(), actions.str());
}

}  // namespace
