// What one apply asks of MPI and of the heap: exactly the planned messages, and nothing else.
#include <gtest/gtest.h>
#include <mpi.h>

#include <Tpetra_Details_DefaultTypes.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "Komvos_Exchange.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_HaloPlanner.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "Komvos_Settings.hpp"
#include "support/matrix_support.hpp"
#include "support/mpi_counter.hpp"

namespace {

using namespace KomvosTest;
using Komvos::IntraNode;
using Komvos::NodeAwareCrsMatrix;
using Komvos::RouteChoice;
using Device = Tpetra::Details::DefaultTypes::node_type::device_type;

/// A matrix with a halo between most ranks, along both routes, on two sorts of nodes.
template <class Work>
void onSamples(const Work& work, GO rowsPerRank = 60) {
  const auto comm = Tpetra::getDefaultComm();
  const int size = comm->getSize();
  const GO n = rowsPerRank * size;
  const auto rows = rowsOf(n, true, false, 3, comm);
  const auto matrix = rcp(new Matrix(rows, 12));
  fillRows(*matrix, randomEntries(n, 5));
  matrix->fillComplete();
  for (const int ppn : {1, 2, 3}) {
    for (const RouteChoice& route : {RouteChoice::standard, RouteChoice::threeStep}) {
      for (const IntraNode onNode : {IntraNode::messages, IntraNode::sharedMemory}) {
        const NamedTopology where{std::to_string(ppn) + " per node", Komvos::NodeTopology::uniform(size, ppn)};
        SCOPED_TRACE(where.name + ", " + toString(route) + ", " + toString(onNode));
        const NodeAwareCrsMatrix<> nodeAware(*matrix, optionsFor(where, route, onNode));
        work(*matrix, nodeAware);
      }
    }
  }
}

std::vector<SentMessage> planned(const NodeAwareCrsMatrix<>& matrix, std::size_t columns, bool reverse) {
  std::vector<SentMessage> messages;
  if (matrix.importHalo() != nullptr) {
    const auto& plan = matrix.importHalo()->plan();
    const bool shared = matrix.importHalo()->report().intraNode == IntraNode::sharedMemory && columns <= 8;
    for (const auto& message : reverse ? plan.receives : plan.sends) {
      if (shared && message.onNode) {
        continue;
      }
      messages.push_back({message.peer, static_cast<long>(message.count * columns * sizeof(double)), true});
    }
  }
  std::sort(messages.begin(), messages.end());
  return messages;
}

std::vector<SentMessage> sorted(std::vector<SentMessage> messages) {
  std::sort(messages.begin(), messages.end());
  return messages;
}

TEST(MpiCounter, SeesMessagesOfEverySort) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int next = (rank + 1) % size;
  const int previous = (rank + size - 1) % size;
  double out[3] = {1, 2, 3};
  double in[3];
  MPI_Request requests[2];
  startCounting();
  MPI_Isend(out, 3, MPI_DOUBLE, next, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(in, 3, MPI_DOUBLE, previous, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Send_init(out, 2, MPI_DOUBLE, next, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(in, 2, MPI_DOUBLE, previous, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Startall(2, requests);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  MPI_Barrier(MPI_COMM_WORLD);
  delete[] new char[100];
  const Counts counts = stopCounting();
  EXPECT_EQ((std::vector<SentMessage>{{next, 24, false}, {next, 16, true}}), counts.sent);
  EXPECT_EQ(2, counts.receivesPosted);
  EXPECT_EQ(4, counts.requestsCreated);
  EXPECT_EQ(2, counts.requestsFreed);
  EXPECT_EQ(1, counts.collectives);
  startCounting(true);
  std::vector<char>* volatile kept = new std::vector<char>(1000);
  const Counts heap = stopCounting();
  delete kept;
  if (allocationsAreCounted()) {
    EXPECT_EQ(2, heap.allocations);
    EXPECT_EQ(2u, heap.allocatedBy.size());
  }
}

/// Whoever imports to the same vector again gets values in place, where messages allow that: new requests are made for
/// it once.
TEST(Traffic, ImportsToTheSameVectorMakeRequestsTwiceAndThenNoMore) {
  const auto comm = Tpetra::getDefaultComm();
  const GO n = 20 * comm->getSize();
  const auto matrix = laplace(20, comm->getSize(), 1, 0, rowsOf(n, false, false, 1, comm));
  const NamedTopology pairs{"pairs", Komvos::NodeTopology::uniform(comm->getSize(), 2)};
  const NodeAwareCrsMatrix<> nodeAware(*matrix, optionsFor(pairs, RouteChoice::standard));
  const auto* const halo = nodeAware.importHalo();
  if (halo == nullptr) {
    return;
  }
  Vector x(matrix->getDomainMap(), 1), first(matrix->getColMap(), 1), second(matrix->getColMap(), 1);
  halo->exchange<double>();
  const auto requestsFor = [&](Vector& target) {
    startCounting();
    halo->doImport(x, target, Tpetra::INSERT);
    return stopCounting().requestsCreated;
  };
  const bool inPlace = !Komvos::stagingForced();
  const auto all = static_cast<long>(halo->plan().sends.size() + halo->plan().receives.size());
  EXPECT_GT(all, 0);
  EXPECT_EQ(all, requestsFor(first)) << "into the buffer";
  EXPECT_EQ(inPlace ? all : 0, requestsFor(first)) << "in place";
  EXPECT_EQ(0, requestsFor(first));
  EXPECT_EQ(0, requestsFor(second)) << "into the buffer";
  EXPECT_EQ(0, requestsFor(first)) << "into the buffer";
  EXPECT_EQ(0, requestsFor(first)) << "in place, as before";
}

TEST(Traffic, TpetrasApplySendsByCallsThatAreCounted) {
  onSamples([](const Matrix& matrix, const NodeAwareCrsMatrix<>& nodeAware) {
    Vector x(matrix.getDomainMap(), 1);
    Vector y(matrix.getRangeMap(), 1);
    fill(x, 1);
    matrix.apply(x, y);
    startCounting();
    matrix.apply(x, y);
    const Counts counts = stopCounting();
    // Else an apply of ours that sent by Tpetra would not be noticed.
    const bool sends = nodeAware.importHalo() != nullptr && nodeAware.importHalo()->plan().sends.size() > 0 &&
                       nodeAware.importHalo()->plan().route == "standard";
    if (sends) {
      EXPECT_EQ(nodeAware.importHalo()->plan().sends.size(), counts.sent.size());
    }
  });
}

TEST(Traffic, AnApplySendsThePlannedMessagesAndNothingElse) {
  onSamples([](const Matrix& matrix, const NodeAwareCrsMatrix<>& nodeAware) {
    for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
      for (const std::size_t columns : {1, 3, 9}) {
        Vector x(matrix.getDomainMap(), columns);
        Vector y(matrix.getRangeMap(), columns);
        fill(x, 1);
        for (int warmUp = 0; warmUp < 2; ++warmUp) {
          nodeAware.apply(x, y, mode);
        }
        startCounting();
        nodeAware.apply(x, y, mode);
        const Counts counts = stopCounting();
        const bool reverse = mode != Teuchos::NO_TRANS;
        EXPECT_EQ(planned(nodeAware, columns, reverse), sorted(counts.sent))
            << columns << " columns, transposed " << reverse;
        EXPECT_EQ(planned(nodeAware, columns, !reverse).size(), static_cast<std::size_t>(counts.receivesPosted));
        EXPECT_EQ(0, counts.requestsCreated);
        EXPECT_EQ(0, counts.requestsFreed);
        EXPECT_EQ(0, counts.communicators);
        EXPECT_EQ(0, counts.datatypes);
        EXPECT_EQ(0, counts.collectives + counts.gathers);
        if (nodeAware.importHalo() == nullptr || nodeAware.importHalo()->report().intraNode == IntraNode::messages) {
          EXPECT_EQ(0, counts.probes);  // who waits for shared memory probes to let MPI make progress
        }
      }
    }
  });
}

TEST(Traffic, AnotherNumberOfColumnsMayMakeRequestsOnceOnly) {
  onSamples([](const Matrix& matrix, const NodeAwareCrsMatrix<>& nodeAware) {
    for (const std::size_t columns : {1, 9, 2, 9}) {  // 9 is the most: buffers stay after that
      Vector x(matrix.getDomainMap(), columns);
      Vector y(matrix.getRangeMap(), columns);
      nodeAware.apply(x, y);
    }
    startCounting();
    std::vector<Vector> xs, ys;
    for (const std::size_t columns : {9, 2, 9, 2}) {
      xs.emplace_back(matrix.getDomainMap(), columns);
      ys.emplace_back(matrix.getRangeMap(), columns);
      nodeAware.apply(xs.back(), ys.back());
    }
    const Counts counts = stopCounting();
    EXPECT_EQ(0, counts.requestsCreated);
    EXPECT_EQ(0, counts.datatypes);
  });
}

TEST(Traffic, ASteadyApplyAllocatesNothing) {
  if (!allocationsAreCounted()) {
    GTEST_SKIP() << "malloc cannot be counted here";
  }
  if (!Komvos::Impl::hostCanAccessBuffers<Device::execution_space>()) {
    GTEST_SKIP() << "the driver of a device allocates when a kernel starts";
  }
  const auto check = [](const Matrix& matrix, const NodeAwareCrsMatrix<>& nodeAware) {
    for (const std::size_t columns : {1, 3}) {
      Vector x(matrix.getDomainMap(), columns);
      Vector y(matrix.getRangeMap(), columns);
      fill(x, 1);
      for (int warmUp = 0; warmUp < 2; ++warmUp) {
        nodeAware.apply(x, y);
      }
      startCounting(true);
      nodeAware.apply(x, y);
      const Counts counts = stopCounting();
      std::string stacks;
      for (const std::string& stack : counts.allocatedBy) {
        stacks += stack + "\n";
      }
      EXPECT_EQ(0, counts.allocations) << counts.allocatedBytes << " bytes, " << columns << " columns, by\n" << stacks;
    }
  };
  onSamples(check);
  onSamples(check, 6000);  // lists so long that they are packed by a kernel launch
}

/// Every rank needs two values of the next one.
Komvos::Pattern ring(int rank, int size) {
  Komvos::Pattern pattern;
  pattern.rank = rank;
  pattern.numOwned = 2;
  pattern.numTarget = size > 1 ? 2 : 0;
  for (int i = 0; i < pattern.numTarget; ++i) {
    pattern.sends.push_back({(rank + size - 1) % size, i});
    pattern.receives.push_back({{(rank + 1) % size, i}, i});
  }
  return pattern;
}

/// What it takes to plan a ring, once the communicator has been used before. \param report what was planned, if wanted
Counts countsOfSetUp(MPI_Comm comm, const Komvos::ExchangeOptions& options, Komvos::HaloReport* report = nullptr) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  Komvos::planHalo(comm, ring(rank, size), options);
  startCounting();
  const Komvos::PlannedHalo halo = Komvos::planHalo(comm, ring(rank, size), options);
  const Counts counts = stopCounting();
  if (report != nullptr) {
    *report = halo.report;
  }
  return counts;
}

Komvos::ExchangeOptions pairsAlong(int size, const RouteChoice& route) {
  Komvos::ExchangeOptions options = optionsFor({"two on a node", Komvos::NodeTopology::uniform(size, 2)}, route);
  options.sockets = std::make_shared<const Komvos::NodeTopology>(Komvos::NodeTopology::uniform(size, 1));
  return options;
}

TEST(Traffic, SeveralHalosTakeTheMessagesOfOne) {
  const auto comm = Tpetra::getDefaultComm();
  const auto owned = Teuchos::rcp(new const Map(3 * comm->getSize(), 3, 0, comm));
  std::vector<GO> needed;
  for (const GO entry : {-1, 0, 1, 2, 3, 5}) {
    needed.push_back((3 * comm->getRank() + entry + 3 * comm->getSize()) % (3 * comm->getSize()));
  }
  std::sort(needed.begin(), needed.end());
  needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
  const auto overlapping = Teuchos::rcp(new const Map(Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid(),
                                                      Teuchos::arrayViewFromVector(needed), 0, comm));
  const Tpetra::Import<> importer(owned, overlapping);
  const auto countsOf = [&](std::size_t halos) {
    const std::vector<const Komvos::NodeAwareImport<>::transfer_type*> transfers(halos, &importer);
    Komvos::NodeAwareImport<>::several(MPI_COMM_WORLD, transfers, {});
    startCounting();
    Komvos::NodeAwareImport<>::several(MPI_COMM_WORLD, transfers, {});
    return stopCounting();
  };
  const Counts one = countsOf(1);
  const Counts many = countsOf(20);
  EXPECT_EQ(2, one.collectives);  // on the options, and on the patterns
  EXPECT_EQ(2, many.collectives);
  EXPECT_EQ(0, one.reductionsStarted + many.reductionsStarted + one.gathers + many.gathers);
  EXPECT_EQ(one.sent.size(), many.sent.size());
}

TEST(Traffic, SetUpSendsToWhomItMustAndAsManyCollectivesOnAnyNumberOfRanks) {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  // A rank has one neighbour on each side. Each stage tells the next hop what comes; where a route is agreed on, a rank
  // asks and answers for one node; a collector writes to the others on its axes. One message more to each of 7 others
  // would show.
  struct Most {
    RouteChoice route;
    std::size_t messages;
    long collectives;
  };
  const std::vector<Most> most{{RouteChoice::standard, 0, 2},  {RouteChoice::twoStep, 3, 5},
                               {RouteChoice::threeStep, 7, 4}, {RouteChoice::split, 7, 4},
                               {RouteChoice::axis, 7, 4},      {RouteChoice::sockets, 7, 11}};
  for (const auto& [route, messages, collectives] : most) {
    SCOPED_TRACE(toString(route));
    Komvos::HaloReport report;
    const Counts counts = countsOfSetUp(MPI_COMM_WORLD, pairsAlong(size, route), &report);
    EXPECT_LE(counts.sent.size(), messages);
    EXPECT_LE(counts.collectives + counts.reductionsStarted, collectives);
    EXPECT_EQ(0, counts.gathers);
    EXPECT_EQ(0, counts.communicators);
    EXPECT_LE(report.candidates.back().buildMessages, static_cast<long>(messages));
  }
}

TEST(Traffic, SetUpLooksForNodesAndSocketsOnce) {
  Komvos::ExchangeOptions open;
  open.route = RouteChoice::threeStep;
  const Counts counts = countsOfSetUp(MPI_COMM_WORLD, open);
  EXPECT_EQ(0, counts.gathers);
  EXPECT_EQ(0, counts.communicators);
}

/// Rank 0 sends 3 * values to the next rank, the others send `values`.
Komvos::Pattern unevenRing(int rank, int size, int values) {
  const auto sentBy = [values](int sender) { return sender == 0 ? 3 * values : values; };
  const int before = (rank + size - 1) % size;
  Komvos::Pattern pattern;
  pattern.rank = rank;
  pattern.numOwned = sentBy(rank);
  pattern.numTarget = sentBy(before);
  for (int i = 0; i < sentBy(rank); ++i) {
    pattern.sends.push_back({(rank + 1) % size, i});
  }
  for (int i = 0; i < sentBy(before); ++i) {
    pattern.receives.push_back({{before, i}, i});
  }
  return pattern;
}

TEST(Traffic, SharedMemoryHasRoomForAsManyColumnsAsCostLittle) {
  using View = Kokkos::View<double**, Kokkos::LayoutLeft, Device>;
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1 || !Komvos::Exchange<double, Device>::canShareMemory()) {
    GTEST_SKIP() << "nobody to share memory with";
  }
  Komvos::ExchangeOptions options;
  options.topology = std::make_shared<Komvos::NodeTopology>(Komvos::NodeTopology::uniform(size, size));
  options.route = RouteChoice::standard;
  options.intraNode = IntraNode::sharedMemory;
  struct Case {
    int values;
    std::size_t room;  // 2^20 bytes / (4 * values * 8 bytes)
  };
  for (const Case& one : {Case{10, 8}, Case{9000, 3}, Case{50000, 1}}) {
    const auto halo = Komvos::planHalo(MPI_COMM_WORLD, unevenRing(rank, size, one.values), options);
    Komvos::Exchange<double, Device> exchange(MPI_COMM_WORLD, halo.plan, halo.columns, halo.intraNode);
    for (const std::size_t columns : {1, 2, 3, 4, 8, 9}) {
      const View owned("owned", halo.plan->numOwned, columns), ghosts("ghosts", halo.plan->numTarget, columns);
      Kokkos::deep_copy(owned, 1.5);
      startCounting();
      exchange.forward(Device::execution_space(), owned, ghosts);
      EXPECT_EQ(columns > one.room ? 1u : 0u, stopCounting().sent.size()) << one.values << " values, " << columns;
      const auto arrived = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), ghosts);
      EXPECT_EQ(1.5, arrived(halo.plan->numTarget - 1, columns - 1));
    }
  }
}

TEST(Traffic, TuningAndTheExchangesAfterItShareOneCommunicator) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm fresh = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
  Komvos::ExchangeOptions open = pairsAlong(size, RouteChoice::standard);
  open.route = RouteChoice::automatic;
  open.intraNode = Komvos::IntraNode::automatic;
  open.tuning = Komvos::Tuning::exhaustive;
  startCounting();
  const Komvos::PlannedHalo halo = Komvos::planHalo(fresh, ring(rank, size), open);
  EXPECT_LE(stopCounting().communicators, 2) << "a duplicate, and the ranks that share memory";
  if (Komvos::Exchange<double, Device>::canShareMemory() && size > 1) {
    startCounting();
    const Komvos::Exchange<double, Device> exchange(fresh, halo.plan, 1, Komvos::IntraNode::sharedMemory);
    EXPECT_EQ(0, stopCounting().communicators);
  }
  MPI_Comm_free(&fresh);
}

TEST(Traffic, SetUpTakesTheSameMemoryAndCollectivesOn4And8Ranks) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 8) {
    GTEST_SKIP() << "compares 4 ranks with 8";
  }
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank / 4, rank, &half);
  countsOfSetUp(MPI_COMM_WORLD, pairsAlong(size, RouteChoice::standard));  // frees what tests before have left
  for (const char* const route : {"standard", "two-step", "three-step", "split", "axis", "sockets"}) {
    const auto most = [&](MPI_Comm comm, int ranks) {
      const bool axis = std::string(route) == "axis";  // a row of groups: a grid has more directions with 8 ranks
      const RouteChoice choice =
          Komvos::parseRoute(axis ? "axis:1," + std::to_string(ranks) + ",1,1" : std::string(route));
      const Counts counts = countsOfSetUp(comm, pairsAlong(ranks, choice));
      std::array<long, 3> most{counts.allocatedBytes, counts.collectives, counts.gathers};
      MPI_Allreduce(MPI_IN_PLACE, most.data(), 3, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
      return most;
    };
    const auto of4 = most(half, 4);
    const auto of8 = most(MPI_COMM_WORLD, 8);
    const int moreCollectors = std::string(route) == "axis" ? 4 : 0;
    EXPECT_LE(of8[0], of4[0] + 256 * moreCollectors) << route << ": bytes";
    EXPECT_EQ(of4[1], of8[1]) << route << ": collectives";
    EXPECT_EQ(of4[2], of8[2]) << route << ": gathers";
    EXPECT_TRUE(of8[0] > 0 || !allocationsAreCounted()) << route;
  }
  MPI_Comm_free(&half);
}

}  // namespace
