// What does a run with MueLu send, by part, and how long is it inside MPI?
//
// Sets up a hierarchy, makes it node-aware, and applies V-cycles, with Tpetra's exchanges and with ours. MPI's calls
// are wrapped here, through its profiling interface, and each counts for the part that MueLu is at: in set-up the
// factory, in a cycle the level. MueLu's own timers tell: those of factories exclude one another, so that one of them
// runs at a time, and so do those of levels. What no timer covers is "other". run_multigrid_traffic.py runs it.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <MueLu_Hierarchy.hpp>
#include <MueLu_TpetraOperator.hpp>
#include <Teuchos_TimeMonitor.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_NodeAwareHierarchy.hpp"
#include "Komvos_SystemInfo.hpp"
#include "commit.hpp"
#include "problem/preconditioner.hpp"
#include "problem/problem.hpp"

namespace {

/// Of one part, on this rank.
struct Part {
  double messages = 0, bytes = 0, collectives = 0, mpiSeconds = 0, seconds = 0;
};

/// Where calls count while it is set.
struct Counting {
  bool active = false;
  bool inside = false;  // a call of MPI's that another one made
  std::map<std::string, Part> parts;
  std::vector<std::pair<std::string, const Teuchos::Time*>> timers;  // part, and what runs while it is at work
  std::string fallback;
};
Counting counting;
std::map<MPI_Request, double> persistentSends;  // bytes

Part& currentPart() {
  for (const auto& [name, timer] : counting.timers) {
    if (timer->isRunning()) {
      return counting.parts[name];
    }
  }
  return counting.parts[counting.fallback];
}

double bytesOf(int count, MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  return static_cast<double>(count) * size;
}

/// One call of MPI's; counts if the program made it.
class Call {
 public:
  Call(double messages, double bytes, double collectives)
      : counts_(counting.active && !counting.inside), begin_(counts_ ? PMPI_Wtime() : 0) {
    if (counts_) {
      counting.inside = true;
      Part& part = currentPart();
      part.messages += messages;
      part.bytes += bytes;
      part.collectives += collectives;
    }
  }
  ~Call() {
    if (counts_) {
      counting.inside = false;
      currentPart().mpiSeconds += PMPI_Wtime() - begin_;
    }
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  bool counts_;
  double begin_;
};

}  // namespace

#define KOMVOS_SEND(Name)                                                                                \
  int MPI_##Name(const void* buffer, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm) { \
    const Call call(1, bytesOf(count, type), 0);                                                         \
    return PMPI_##Name(buffer, count, type, target, tag, comm);                                          \
  }
#define KOMVOS_ISEND(Name)                                                                             \
  int MPI_##Name(const void* buffer, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm, \
                 MPI_Request* request) {                                                               \
    const Call call(1, bytesOf(count, type), 0);                                                       \
    return PMPI_##Name(buffer, count, type, target, tag, comm, request);                               \
  }

extern "C" {
KOMVOS_SEND(Send)
KOMVOS_SEND(Ssend)
KOMVOS_SEND(Rsend)
KOMVOS_ISEND(Isend)
KOMVOS_ISEND(Issend)
KOMVOS_ISEND(Irsend)
int MPI_Send_init(const void* buffer, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
                  MPI_Request* request) {
  const int code = PMPI_Send_init(buffer, count, type, target, tag, comm, request);
  persistentSends[*request] = bytesOf(count, type);
  return code;
}
int MPI_Request_free(MPI_Request* request) {
  persistentSends.erase(*request);
  return PMPI_Request_free(request);
}
int MPI_Start(MPI_Request* request) {
  const auto send = persistentSends.find(*request);
  const bool sends = send != persistentSends.end();
  const Call call(sends ? 1 : 0, sends ? send->second : 0, 0);
  return PMPI_Start(request);
}
int MPI_Startall(int count, MPI_Request requests[]) {
  double messages = 0, bytes = 0;
  for (int i = 0; i < count; ++i) {
    if (const auto send = persistentSends.find(requests[i]); send != persistentSends.end()) {
      messages += 1;
      bytes += send->second;
    }
  }
  const Call call(messages, bytes, 0);
  return PMPI_Startall(count, requests);
}
int MPI_Recv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status) {
  const Call call(0, 0, 0);
  return PMPI_Recv(buffer, count, type, source, tag, comm, status);
}
int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  const Call call(0, 0, 0);
  return PMPI_Probe(source, tag, comm, status);
}
int MPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  const Call call(0, 0, 0);
  return PMPI_Iprobe(source, tag, comm, flag, status);
}
int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  const Call call(0, 0, 0);
  return PMPI_Wait(request, status);
}
int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  const Call call(0, 0, 0);
  return PMPI_Waitall(count, requests, statuses);
}
int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  const Call call(0, 0, 0);
  return PMPI_Waitany(count, requests, index, status);
}
int MPI_Waitsome(int count, MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]) {
  const Call call(0, 0, 0);
  return PMPI_Waitsome(count, requests, done, indices, statuses);
}
int MPI_Testsome(int count, MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]) {
  const Call call(0, 0, 0);
  return PMPI_Testsome(count, requests, done, indices, statuses);
}
int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  const Call call(0, 0, 0);
  return PMPI_Test(request, flag, status);
}
int MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  const Call call(0, 0, 0);
  return PMPI_Testall(count, requests, flag, statuses);
}
int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const Call call(0, 0, 1);
  return PMPI_Allreduce(in, out, count, type, op, comm);
}
int MPI_Reduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  const Call call(0, 0, 1);
  return PMPI_Reduce(in, out, count, type, op, root, comm);
}
int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  const Call call(0, 0, 1);
  return PMPI_Bcast(buffer, count, type, root, comm);
}
int MPI_Barrier(MPI_Comm comm) {
  const Call call(0, 0, 1);
  return PMPI_Barrier(comm);
}
int MPI_Scan(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const Call call(0, 0, 1);
  return PMPI_Scan(in, out, count, type, op, comm);
}
int MPI_Exscan(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const Call call(0, 0, 1);
  return PMPI_Exscan(in, out, count, type, op, comm);
}
int MPI_Allgather(const void* in, int inCount, MPI_Datatype inType, void* out, int outCount, MPI_Datatype outType,
                  MPI_Comm comm) {
  const Call call(0, 0, 1);
  return PMPI_Allgather(in, inCount, inType, out, outCount, outType, comm);
}
int MPI_Allgatherv(const void* in, int inCount, MPI_Datatype inType, void* out, const int outCounts[],
                   const int places[], MPI_Datatype outType, MPI_Comm comm) {
  const Call call(0, 0, 1);
  return PMPI_Allgatherv(in, inCount, inType, out, outCounts, places, outType, comm);
}
int MPI_Gather(const void* in, int inCount, MPI_Datatype inType, void* out, int outCount, MPI_Datatype outType,
               int root, MPI_Comm comm) {
  const Call call(0, 0, 1);
  return PMPI_Gather(in, inCount, inType, out, outCount, outType, root, comm);
}
int MPI_Alltoall(const void* in, int inCount, MPI_Datatype inType, void* out, int outCount, MPI_Datatype outType,
                 MPI_Comm comm) {
  const Call call(0, 0, 1);
  return PMPI_Alltoall(in, inCount, inType, out, outCount, outType, comm);
}
int MPI_Reduce_scatter(const void* in, void* out, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const Call call(0, 0, 1);
  return PMPI_Reduce_scatter(in, out, counts, type, op, comm);
}
int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  const Call call(0, 0, 1);
  return PMPI_Ibarrier(comm, request);
}
int MPI_Iallreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  const Call call(0, 0, 1);
  return PMPI_Iallreduce(in, out, count, type, op, comm, request);
}
int MPI_Comm_split(MPI_Comm comm, int colour, int key, MPI_Comm* made) {
  const Call call(0, 0, 1);
  return PMPI_Comm_split(comm, colour, key, made);
}
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  const Call call(0, 0, 1);
  return PMPI_Comm_dup(comm, made);
}
}
#undef KOMVOS_SEND
#undef KOMVOS_ISEND

namespace {

using namespace Komvos;
using namespace Komvos::Program;
using Json = nlohmann::ordered_json;
using Operator = MueLu::TpetraOperator<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;

struct Options {
  ProblemOptions problem;
  bool repartition = false;
  int cycles = 100;
  std::string network = "unknown";
  std::string json = "-";
};

/// All of Teuchos' timers.
struct Timers : Teuchos::TimeMonitor {
  static const auto& all() { return counters(); }
};

/// "MueLu: RAPFactory: Computing Ac (level=2)" is of RAPFactory, and excludes others; timers with "total" or "sub" do
/// not.
std::string factoryOf(const std::string& timer) {
  const std::string prefix = "MueLu: ";
  const auto end = timer.find(':', prefix.size());
  const bool isPart = timer.compare(0, prefix.size(), prefix) == 0 && end != std::string::npos &&
                      timer.find("total") == std::string::npos && timer.find("sub,") == std::string::npos &&
                      timer.find("(level=") != std::string::npos;
  return isPart ? timer.substr(prefix.size(), end - prefix.size()) : "";
}

std::vector<std::pair<std::string, const Teuchos::Time*>> factoryTimers() {
  std::vector<std::pair<std::string, const Teuchos::Time*>> timers;
  for (const auto& [name, timer] : Timers::all()) {
    if (const std::string factory = factoryOf(name); !factory.empty()) {
      timers.emplace_back(factory, timer.get());
    }
  }
  return timers;
}

std::vector<std::pair<std::string, const Teuchos::Time*>> levelTimers(int levels) {
  std::vector<std::pair<std::string, const Teuchos::Time*>> timers;
  for (int level = 0; level < levels; ++level) {
    const std::string number = std::to_string(level);
    timers.emplace_back("level " + number,
                        Teuchos::TimeMonitor::getNewCounter("MueLu: Hierarchy: Solve (level=" + number + ")").get());
  }
  return timers;
}

void begin(const std::string& fallback, std::vector<std::pair<std::string, const Teuchos::Time*>> timers) {
  PMPI_Barrier(MPI_COMM_WORLD);
  counting.parts.clear();
  counting.fallback = fallback;
  counting.timers = std::move(timers);
  for (const auto& [name, timer] : counting.timers) {
    const_cast<Teuchos::Time*>(timer)->reset();
    counting.parts[name];
  }
  counting.active = true;
}

/// Of parts on any rank: after rebalancing, some ranks have no part in coarse levels. \note Collective.
std::set<std::string> namesOfAll() {
  std::string mine;
  for (const auto& [part, counted] : counting.parts) {
    mine += part + "\n";
  }
  int ranks = 0;
  mpiCheck(PMPI_Comm_size(MPI_COMM_WORLD, &ranks), "MPI_Comm_size");
  std::vector<int> lengths(ranks), places(ranks + 1);
  const int length = static_cast<int>(mine.size());
  mpiCheck(PMPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD), "MPI_Allgather");
  std::partial_sum(lengths.begin(), lengths.end(), places.begin() + 1);
  std::string all(places.back(), ' ');
  mpiCheck(PMPI_Allgatherv(mine.data(), length, MPI_CHAR, all.data(), lengths.data(), places.data(), MPI_CHAR,
                           MPI_COMM_WORLD),
           "MPI_Allgatherv");
  std::set<std::string> names;
  std::istringstream lines(all);
  for (std::string line; std::getline(lines, line);) {
    names.insert(line);
  }
  return names;
}

/// Means over ranks of messages and seconds, divided by `runs`; collectives of the busiest rank. \note Collective.
Json end(const std::string& name, double seconds, int runs) {
  counting.active = false;
  for (const auto& [part, timer] : counting.timers) {
    counting.parts[part].seconds += timer->totalElapsedTime();
    seconds -= timer->totalElapsedTime();
  }
  counting.parts[counting.fallback].seconds += seconds;
  Json parts = Json::array();
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (const std::string& part : namesOfAll()) {
    Part& mine = counting.parts[part];
    double sums[] = {mine.messages, mine.bytes, mine.mpiSeconds, mine.seconds};
    double most[] = {mine.messages, mine.collectives};
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, sums, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD), "MPI_Allreduce");
    const double parted = static_cast<double>(ranks) * runs;
    if (sums[0] > 0 || most[1] > 0 || sums[3] / parted > 1e-5) {
      parts.push_back({{"part", part},
                       {"messages", sums[0] / parted},
                       {"messages_max", most[0] / runs},
                       {"bytes", sums[1] / parted},
                       {"collectives", most[1] / runs},
                       {"mpi_seconds", sums[2] / parted},
                       {"seconds", sums[3] / parted}});
    }
  }
  return {{"phase", name}, {"parts", parts}};
}

Teuchos::ParameterList parametersOf(const Options& options) {
  Teuchos::ParameterList muelu;
  muelu.set("coarse: max size", 100);
  muelu.set("verbosity", "timings");  // timers, and no text
  if (options.repartition) {
    muelu.set("repartition: enable", true);
    muelu.set("repartition: partitioner", "zoltan2");
    muelu.set("repartition: start level", 1);
    muelu.set("repartition: min rows per proc", 500);
    muelu.sublist("repartition: params").set("algorithm", "multijagged");
  }
  return muelu;
}

Preconditioner setUp(const Options& options, const Problem& problem, const MatrixTraits& traits) {
  Teuchos::ParameterList muelu = parametersOf(options);
  return makePreconditioner("muelu", problem, traits, problem.matrix, muelu, {});
}

Json cycles(const std::string& name, const Options& options, const Problem& problem, const Preconditioner& made) {
  const auto preconditioner = Teuchos::rcp_dynamic_cast<Operator>(made.op, true);
  auto& hierarchy = *preconditioner->GetHierarchy();
  MultiVector b(problem.matrix->getRangeMap(), 1), x(problem.matrix->getDomainMap(), 1);
  b.randomize();
  for (int i = 0; i < options.cycles; ++i) {  // tuned, if it is
    preconditioner->apply(b, x);
  }
  begin("other", levelTimers(hierarchy.GetGlobalNumLevels()));
  const double start = MPI_Wtime();
  for (int i = 0; i < options.cycles; ++i) {
    preconditioner->apply(b, x);
  }
  return end(name, MPI_Wtime() - start, options.cycles);
}

Json run(const Options& options) {
  const Problem problem = loadProblem(options.problem, Tpetra::getDefaultComm());
  const MatrixTraits traits = examine(*problem.matrix);
  setUp(options, problem, traits);  // makes the timers
  Json phases = Json::array();
  begin("other", factoryTimers());
  double start = MPI_Wtime();
  const Preconditioner made = setUp(options, problem, traits);
  phases.push_back(end("set-up", MPI_Wtime() - start, 1));
  phases.push_back(cycles("cycle, Tpetra's exchanges", options, problem, made));
  begin("makeNodeAware", {});
  start = MPI_Wtime();
  makeNodeAware(*Teuchos::rcp_dynamic_cast<Operator>(made.op, true));
  phases.push_back(end("makeNodeAware", MPI_Wtime() - start, 1));
  phases.push_back(cycles("cycle, Komvos", options, problem, made));
  return {{"benchmark", "what MueLu sends"},
          {"commit", KOMVOS_COMMIT},
          {"problem", problem.name},
          {"rows", problem.matrix->getGlobalNumRows()},
          {"ranks", problem.matrix->getComm()->getSize()},
          {"repartition", options.repartition},
          {"network", options.network},
          {"processor", Impl::processorName()},
          {"phases", phases}};
}

}  // namespace

int main(int argc, char** argv) {
  Tpetra::ScopeGuard scope(&argc, &argv);
  Options options;
  CLI::App app("Counts what MueLu sends, by part");
  addProblemOptions(app, options.problem);
  app.add_flag("--repartition", options.repartition, "coarse levels onto fewer ranks");
  app.add_option("--cycles", options.cycles)->check(CLI::PositiveNumber);
  app.add_option("--network", options.network, "for the report");
  app.add_option("--json", options.json, "file to write");
  CLI11_PARSE(app, argc, argv);
  try {
    checkProblemOptions(app, options.problem);
    const Json report = run(options);
    if (Tpetra::getDefaultComm()->getRank() == 0) {
      if (options.json == "-") {
        std::cout << report.dump(1) << "\n" << std::flush;
      } else {
        std::ofstream file(options.json);
        file << report.dump(1) << "\n" << std::flush;
        throwOnAllIfAny(MPI_COMM_SELF, file.good() ? "" : "cannot write " + options.json);
      }
    }
  } catch (const std::exception& error) {
    std::cerr << "multigrid_traffic: " << error.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 0;
}
