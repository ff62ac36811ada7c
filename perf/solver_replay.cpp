// How long do iterations take that perf_solver_traces recorded, on ranks that are not at hand?
//
// Not built with the rest: simulate_solvers.py compiles it with SimGrid's smpicxx, and smpirun runs it with as many ranks
// as the halo has, in one process that they share. Every rank goes through the same events:
//
//   exchange-start       its messages of the halo are sent, its receives posted
//   exchange-wait [look] what others send is waited for; with "look", reductions travel on meanwhile
//   work SECONDS
//   sum N                a reduction of N numbers is started
//   look                 it travels on if it can: by its next message, or the next part within the node
//   sum-wait
//
// A reduction among all ranks goes by recursive doubling. One that is node-aware is Komvos' (NonBlockingSum): ranks lay
// down numbers in the memory of their node, its first rank adds them up when it looks, takes part in a reduction among
// first ranks and announces the result, which the others find when they look.
//
//     solver_replay HALO EVENTS ITERATIONS RANKS_PER_NODE node-aware|flat
//
// HALO: a line "rank isend|irecv peer tag bytes" for each message, others are not read. Prints seconds of an iteration.
#include <mpi.h>
#include <smpi/smpi.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <simgrid/s4u.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace {

// Seconds of a processor. The platform charges for sends by smpi/ois, and smpi/test for looks at messages.
constexpr double secondsPerReceive = 350e-9, secondsPerReceivedByte = 20e-12;
constexpr double secondsPerFlag = 100e-9;   // written by one core of a node, and read by another
constexpr double secondsPerNumbers = 50e-9;  // that another rank has laid down: a cache line
constexpr int haloTag = 1, firstSumTag = 10;

struct Message {
  bool isSend;
  int peer, bytes;
};

struct Event {
  enum Kind { exchangeStart, exchangeWait, work, sum, look, sumWait } kind;
  double number;  // seconds of work, numbers of a sum, whether a wait looks
};

struct Node {
  int laidDown = 0;    // ranks that have laid down their numbers of the sum that is under way
  long announced = 0;  // the last sum whose result is there
};

// All ranks share these: they are threads of one process, of which one runs at a time.
std::vector<std::vector<Message>> halo;
std::vector<Event> events;
std::vector<Node> nodes;
std::vector<char> buffer(1 << 20);  // nobody looks at what is sent

void fail(const std::string& what) {
  std::fprintf(stderr, "solver_replay: %s\n", what.c_str());
  std::exit(1);
}

void readInput(const char* haloFile, const char* eventFile, int numRanks, int ranksPerNode) {
  if (!nodes.empty()) {
    return;  // another rank did
  }
  nodes.resize((numRanks + ranksPerNode - 1) / ranksPerNode);
  halo.resize(numRanks);
  std::ifstream messages(haloFile);
  for (std::string line; std::getline(messages, line);) {
    std::istringstream words(line);
    int rank = 0, peer = 0, tag = 0, bytes = 0;
    std::string kind;
    words >> rank >> kind;
    if (kind == "isend" || kind == "irecv") {
      words >> peer >> tag >> bytes;
      if (!words || rank < 0 || rank >= numRanks || bytes > static_cast<int>(buffer.size())) {
        fail(std::string(haloFile) + ": cannot use '" + line + "'");
      }
      halo[rank].push_back({kind == "isend", peer, bytes});
    }
  }
  std::ifstream list(eventFile);
  for (std::string line; std::getline(list, line);) {
    std::istringstream words(line);
    std::string kind, more;
    words >> kind >> more;
    if (kind == "exchange-start") {
      events.push_back({Event::exchangeStart, 0});
    } else if (kind == "exchange-wait") {
      events.push_back({Event::exchangeWait, more == "look" ? 1.0 : 0.0});
    } else if (kind == "work") {
      events.push_back({Event::work, std::stod(more)});
    } else if (kind == "sum") {
      events.push_back({Event::sum, std::stod(more)});
    } else if (kind == "look") {
      events.push_back({Event::look, 0});
    } else if (kind == "sum-wait") {
      events.push_back({Event::sumWait, 0});
    } else {
      fail(std::string(eventFile) + ": no event '" + line + "'");
    }
  }
  if (events.empty()) {
    fail(std::string("no events in ") + eventFile);
  }
}

void spend(double seconds) { simgrid::s4u::this_actor::sleep_for(seconds); }

/// The reductions of one rank, one after the other.
class Sum {
 public:
  Sum(int rank, int numRanks, int ranksPerNode, bool nodeAware)
      : rank_(rank),
        numRanks_(numRanks),
        ranksPerNode_(ranksPerNode),
        nodeAware_(nodeAware),
        node_(nodes[rank / ranksPerNode]) {}

  void start(int numbers) {
    if (state_ != State::arrived) {
      fail("a sum is started while another one is under way");
    }
    bytes_ = 8 * numbers;
    ++number_;
    if (nodeAware_) {
      spend(secondsPerFlag);
      ++node_.laidDown;
      state_ = rank_ % ranksPerNode_ == 0 ? State::gathering : State::awaitingResult;
    } else {
      startRounds(1);
    }
  }

  void look() {
    if (state_ == State::gathering) {
      gatherIfAllAreThere();
    } else if (state_ == State::rounds) {
      int done = 0;
      MPI_Testall(2, requests_, &done, MPI_STATUSES_IGNORE);
      if (done != 0) {
        endRound();
      }
    } else if (state_ == State::awaitingResult) {
      spend(secondsPerFlag);
      state_ = node_.announced >= number_ ? State::arrived : state_;
    }
  }

  void wait() {
    while (state_ != State::arrived) {
      if (state_ == State::rounds) {
        MPI_Waitall(2, requests_, MPI_STATUSES_IGNORE);
        endRound();
      } else {
        look();
      }
    }
  }

 private:
  enum class State { gathering, rounds, awaitingResult, arrived };

  void gatherIfAllAreThere() {
    spend(secondsPerFlag);
    if (node_.laidDown == ranksPerNode_) {
      node_.laidDown = 0;  // nobody lays down more before this sum is announced
      spend(secondsPerNumbers * ranksPerNode_);
      startRounds(ranksPerNode_);
    }
  }
  void startRounds(int stride) {
    state_ = State::rounds;
    step_ = stride;
    startRound();
  }
  void startRound() {
    if (step_ >= numRanks_) {
      if (nodeAware_) {
        spend(secondsPerFlag);
        node_.announced = number_;
      }
      state_ = State::arrived;
      return;
    }
    const int peer = rank_ ^ step_;
    const int tag = firstSumTag + static_cast<int>(number_ % 1000);
    MPI_Irecv(buffer.data(), bytes_, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests_[0]);
    MPI_Isend(buffer.data(), bytes_, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests_[1]);
  }
  void endRound() {
    spend(secondsPerReceive + secondsPerReceivedByte * bytes_);
    step_ *= 2;
    startRound();
  }

  const int rank_, numRanks_, ranksPerNode_;
  const bool nodeAware_;
  Node& node_;
  State state_ = State::arrived;
  int bytes_ = 0, step_ = 0;
  long number_ = 0;
  MPI_Request requests_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

/// The messages of one rank, in each product the same.
class Exchange {
 public:
  explicit Exchange(int rank) : messages_(halo[rank]) {}

  void start() {
    for (const bool isSend : {false, true}) {
      for (const Message& one : messages_) {
        if (one.isSend != isSend) {
          continue;
        }
        std::vector<MPI_Request>& requests = isSend ? sends_ : receives_;
        requests.push_back(MPI_REQUEST_NULL);
        if (isSend) {
          MPI_Isend(buffer.data(), one.bytes, MPI_BYTE, one.peer, haloTag, MPI_COMM_WORLD, &requests.back());
        } else {
          MPI_Irecv(buffer.data(), one.bytes, MPI_BYTE, one.peer, haloTag, MPI_COMM_WORLD, &requests.back());
          toUnpack_ += secondsPerReceive + secondsPerReceivedByte * one.bytes;
        }
      }
    }
  }

  void wait(Sum* sum) {
    int done = sum == nullptr ? 1 : 0;
    while (done == 0) {
      MPI_Testall(static_cast<int>(receives_.size()), receives_.data(), &done, MPI_STATUSES_IGNORE);
      sum->look();
    }
    MPI_Waitall(static_cast<int>(receives_.size()), receives_.data(), MPI_STATUSES_IGNORE);
    spend(toUnpack_);
    MPI_Waitall(static_cast<int>(sends_.size()), sends_.data(), MPI_STATUSES_IGNORE);
    receives_.clear();
    sends_.clear();
    toUnpack_ = 0;
  }

 private:
  const std::vector<Message>& messages_;
  std::vector<MPI_Request> receives_, sends_;
  double toUnpack_ = 0;
};

void iterate(Exchange& exchange, Sum& sum) {
  for (const Event& event : events) {
    switch (event.kind) {
      case Event::exchangeStart:
        exchange.start();
        break;
      case Event::exchangeWait:
        exchange.wait(event.number > 0 ? &sum : nullptr);
        break;
      case Event::work:
        spend(event.number);
        break;
      case Event::sum:
        sum.start(static_cast<int>(event.number));
        break;
      case Event::look:
        sum.look();
        break;
      case Event::sumWait:
        sum.wait();
        break;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 6) {
    fail("wants HALO EVENTS ITERATIONS RANKS_PER_NODE node-aware|flat");
  }
  const int iterations = std::atoi(argv[3]), ranksPerNode = std::atoi(argv[4]);
  if (iterations < 1 || ranksPerNode < 1 || size % ranksPerNode != 0 || (size & (size - 1)) != 0) {
    fail("wants some iterations, and ranks that are a power of two and fill nodes");
  }
  readInput(argv[1], argv[2], size, ranksPerNode);
  Exchange exchange(rank);
  Sum sum(rank, size, ranksPerNode, std::string(argv[5]) == "node-aware");
  iterate(exchange, sum);  // ranks are as late to each other afterwards as they always are
  const double start = MPI_Wtime();
  for (int i = 0; i < iterations; ++i) {
    iterate(exchange, sum);
  }
  sum.wait();
  if (rank == 0) {
    std::printf("seconds of an iteration: %.9e\n", (MPI_Wtime() - start) / iterations);
  }
  MPI_Finalize();
  return 0;
}
