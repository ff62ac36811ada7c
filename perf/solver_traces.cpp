// What does an iteration of BiCGStab ask of MPI, in which order with its work?
//
// Solves the same system with the same Jacobi preconditioner by Belos' BICGSTAB and by PipelinedBiCGStab, merged and
// pipelined, and records one iteration: each call of MPI, which goes through the functions below first, and each kernel,
// which Kokkos tells. Ranks are put on nodes of four, ghosts take the standard route by messages, reductions go through
// MPI among all ranks, rows are multiplied when all ghosts are there, nothing is tuned. What is repeated while a rank
// waits is written once. A non-blocking reduction arrives here when it is waited for and never before, so that each look
// at it is seen: traces of the same partition are the same. (The partitioner of the graph may give a rank some rows more
// in another run.)
// simulate_solvers.py runs it, and makes traces of many ranks from it.
#include <BelosLinearProblem.hpp>
#include <BelosSolverFactory_Tpetra.hpp>
#include <BelosTpetraAdapter.hpp>
#include <CLI/CLI.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>
#include <vector>

#include "Komvos_BelosSolvers.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "Komvos_ProductInput.hpp"
#include "commit.hpp"
#include "jacobi.hpp"
#include "problem/partition.hpp"
#include "problem/problem.hpp"
#include "problem/problem_options.hpp"

namespace {

using namespace Komvos;
using namespace Komvos::Program;
using Json = nlohmann::ordered_json;
using Teuchos::RCP;
using Teuchos::rcp;
using Operator = Tpetra::Operator<>;

// Events:
//   precondition     the preconditioner is applied
//   rows, kernel     a kernel of our products; any other
//   exchange-start   messages are sent or received
//   exchange-wait    what others send is waited for, or looked at
//   sum N            a reduction of N numbers is started
//   look             whether it has arrived
//   sum-wait
//   allreduce N      a blocking reduction
//   other            a call that no iteration should make
const char* const exchangeStart = "exchange-start";
const char* const exchangeWait = "exchange-wait";
const char* const look = "look";

class Recorder {
 public:
  void start() {
    events_.clear();
    isOn_ = true;
  }
  std::vector<std::string> stop() {
    isOn_ = false;
    return std::move(events_);
  }

  void add(const std::string& event) {
    if (isOn_ && !isRepeated(event)) {
      events_.push_back(event);
    }
  }

  void created(MPI_Request request, bool isSend) {
    if (isSend) {
      sends_.insert(request);
    } else {
      sends_.erase(request);
    }
  }
  /// What this rank has sent is on its way; whether it looks at that again is chance.
  void waits(int count, const MPI_Request* requests) {
    if (std::any_of(requests, requests + count,
                    [this](MPI_Request one) { return one != MPI_REQUEST_NULL && sends_.count(one) == 0; })) {
      add(exchangeWait);
    }
  }

  MPI_Request sum = MPI_REQUEST_NULL;  ///< of the reduction that is under way

 private:
  /// Whoever waits for messages looks at these and at the reduction in turn.
  bool isRepeated(const std::string& event) const {
    const std::size_t size = events_.size();
    if (size > 0 && event == events_[size - 1] && (event == exchangeStart || event == exchangeWait)) {
      return true;
    }
    const bool waits = event == exchangeWait || event == look;
    return waits && size > 1 && event == events_[size - 2] &&
           (events_[size - 1] == exchangeWait || events_[size - 1] == look) && events_[size - 1] != event;
  }

  bool isOn_ = false;
  std::vector<std::string> events_;
  std::unordered_set<MPI_Request> sends_;
};

Recorder recorder;

}  // namespace

// --- MPI -------------------------------------------------------------------------------------------------------------

extern "C" {

#define KOMVOS_SEND(name)                                                                            \
  int MPI_##name(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) { \
    recorder.add(exchangeStart);                                                                     \
    return PMPI_##name(data, count, type, peer, tag, comm);                                          \
  }
KOMVOS_SEND(Send)
KOMVOS_SEND(Rsend)
KOMVOS_SEND(Ssend)

#define KOMVOS_REQUEST(name, data_type, isSend)                                                  \
  int MPI_##name(data_type data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, \
                 MPI_Request* request) {                                                         \
    if (std::strstr(#name, "_init") == nullptr) {                                                \
      recorder.add(exchangeStart);                                                               \
    }                                                                                            \
    const int code = PMPI_##name(data, count, type, peer, tag, comm, request);                   \
    recorder.created(*request, isSend);                                                          \
    return code;                                                                                 \
  }
KOMVOS_REQUEST(Isend, const void*, true)
KOMVOS_REQUEST(Irsend, const void*, true)
KOMVOS_REQUEST(Issend, const void*, true)
KOMVOS_REQUEST(Send_init, const void*, true)
KOMVOS_REQUEST(Rsend_init, const void*, true)
KOMVOS_REQUEST(Ssend_init, const void*, true)
KOMVOS_REQUEST(Irecv, void*, false)
KOMVOS_REQUEST(Recv_init, void*, false)

int MPI_Start(MPI_Request* request) {
  recorder.add(exchangeStart);
  return PMPI_Start(request);
}

int MPI_Startall(int count, MPI_Request* requests) {
  recorder.add(exchangeStart);
  return PMPI_Startall(count, requests);
}

int MPI_Recv(void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status* status) {
  recorder.add(exchangeWait);
  return PMPI_Recv(data, count, type, peer, tag, comm, status);
}

#define KOMVOS_WAIT(name, parameters, arguments) \
  int MPI_##name parameters {                    \
    recorder.waits(count, requests);             \
    return PMPI_##name arguments;                \
  }
KOMVOS_WAIT(Waitall, (int count, MPI_Request* requests, MPI_Status* statuses), (count, requests, statuses))
KOMVOS_WAIT(Waitany, (int count, MPI_Request* requests, int* index, MPI_Status* status),
            (count, requests, index, status))
KOMVOS_WAIT(Waitsome, (int count, MPI_Request* requests, int* found, int* indices, MPI_Status* statuses),
            (count, requests, found, indices, statuses))
KOMVOS_WAIT(Testall, (int count, MPI_Request* requests, int* flag, MPI_Status* statuses),
            (count, requests, flag, statuses))
KOMVOS_WAIT(Testany, (int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status),
            (count, requests, index, flag, status))
KOMVOS_WAIT(Testsome, (int count, MPI_Request* requests, int* found, int* indices, MPI_Status* statuses),
            (count, requests, found, indices, statuses))

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (*request != MPI_REQUEST_NULL && *request == recorder.sum) {
    recorder.add(look);
    *flag = 0;
    return MPI_SUCCESS;
  }
  recorder.waits(1, request);
  return PMPI_Test(request, flag, status);
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  if (*request != MPI_REQUEST_NULL && *request == recorder.sum) {
    recorder.add("sum-wait");
    recorder.sum = MPI_REQUEST_NULL;
  } else {
    recorder.waits(1, request);
  }
  return PMPI_Wait(request, status);
}

int MPI_Iallreduce(const void* data, void* result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  recorder.add("sum " + std::to_string(count));
  const int code = PMPI_Iallreduce(data, result, count, type, op, comm, request);
  recorder.sum = *request;
  return code;
}

int MPI_Allreduce(const void* data, void* result, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  recorder.add("allreduce " + std::to_string(count));
  return PMPI_Allreduce(data, result, count, type, op, comm);
}

#define KOMVOS_OTHER(name, parameters, arguments) \
  int MPI_##name parameters {                     \
    recorder.add("other " #name);                 \
    return PMPI_##name arguments;                 \
  }
KOMVOS_OTHER(Barrier, (MPI_Comm comm), (comm))
KOMVOS_OTHER(Bcast, (void* data, int count, MPI_Datatype type, int root, MPI_Comm comm),
             (data, count, type, root, comm))
KOMVOS_OTHER(Reduce,
             (const void* data, void* result, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
             (data, result, count, type, op, root, comm))
KOMVOS_OTHER(Allgather,
             (const void* data, int count, MPI_Datatype type, void* result, int counts, MPI_Datatype to, MPI_Comm comm),
             (data, count, type, result, counts, to, comm))
KOMVOS_OTHER(Ibarrier, (MPI_Comm comm, MPI_Request* request), (comm, request))
}

// --- Kernels and solves ----------------------------------------------------------------------------------------------

namespace {

void kernelBegins(const char* name, uint32_t /*device*/, uint64_t* /*kernel*/) {
  recorder.add(name == Impl::multiplyRowsLabel ? "rows" : "kernel");
}

class RecordedJacobi : public Jacobi {
 public:
  using Jacobi::Jacobi;
  void apply(const MultiVector& x, MultiVector& y, Teuchos::ETransp mode, double alpha, double beta) const override {
    recorder.add("precondition");
    Jacobi::apply(x, y, mode, alpha, beta);
  }
};

/// The events of an iteration, from one to the next but one application of the preconditioner.
/// \throws Error if the last iterations are not alike
Json steadyIteration(const std::vector<std::string>& events) {
  std::vector<std::size_t> marks;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i] == "precondition") {
      marks.push_back(i);
    }
  }
  constexpr std::size_t atTheEnd = 4;  // applications that may belong to what follows the last iteration
  if (marks.size() < 12) {
    throw Error("only " + std::to_string(marks.size()) + " applications of the preconditioner");
  }
  const std::size_t from = (marks.size() - atTheEnd) / 2 * 2 - 6;
  const auto between = [&](std::size_t a) {
    return std::vector<std::string>(events.begin() + static_cast<std::ptrdiff_t>(marks[a]),
                                    events.begin() + static_cast<std::ptrdiff_t>(marks[a + 2]));
  };
  const std::vector<std::string> iteration = between(from);
  for (const std::size_t other : {from + 2, from + 4}) {
    if (between(other) != iteration) {
      throw Error("iterations are not alike: " + Json(iteration).dump() + " and " + Json(between(other)).dump());
    }
  }
  return iteration;
}

struct Options {
  ProblemOptions problem;
  std::string partition = "graph";
  std::string json = "-";
};

Json record(const std::string& solverName, const std::string& variant, const RCP<const Operator>& A,
            const RCP<const Operator>& preconditioner, const RCP<MultiVector>& rhs) {
  const auto parameters = rcp(new Teuchos::ParameterList);
  parameters->set("Convergence Tolerance", 1e-300);
  parameters->set("Maximum Iterations", 12);
  if (!variant.empty()) {
    parameters->set("Variant", variant);
    parameters->set("Node-Aware Reductions", false);
  }
  Belos::SolverFactory<double, MultiVector, Operator> factory;
  const auto solver = factory.create(solverName, parameters);
  const auto x = rcp(new MultiVector(A->getDomainMap(), 1));
  const auto system = rcp(new Belos::LinearProblem<double, MultiVector, Operator>(A, x, rhs));
  system->setRightPrec(preconditioner);
  system->setProblem();
  solver->setProblem(system);
  recorder.start();
  solver->solve();
  return steadyIteration(recorder.stop());
}

void run(const Options& options) {
  const auto comm = Tpetra::getDefaultComm();
  Problem problem = loadProblem(options.problem, comm);
  partition(problem, options.partition);
  ExchangeOptions exchange;
  exchange.route = RouteChoice::standard;
  exchange.intraNode = IntraNode::messages;
  exchange.overlap = Overlap::none;
  exchange.tuning = Tuning::off;
  exchange.topology = std::make_shared<const NodeTopology>(NodeTopology::uniform(comm->getSize(), 4));
  const RCP<const Operator> plain = problem.matrix, nodeAware = makeNodeAware(problem.matrix, exchange);
  const RCP<const Operator> jacobi = rcp(new RecordedJacobi(*problem.matrix));
  registerBelosSolvers();
  Kokkos::Tools::Experimental::set_begin_parallel_for_callback(kernelBegins);
  Kokkos::Tools::Experimental::set_begin_parallel_reduce_callback(kernelBegins);
  Json report{{"problem", problem.name},
              {"rows", problem.matrix->getGlobalNumRows()},
              {"ranks", comm->getSize()},
              {"commit", KOMVOS_COMMIT},
              {"Belos", record("BICGSTAB", "", plain, jacobi, problem.rhs)}};
  for (const std::string variant : {"merged", "pipelined"}) {
    report[variant] = record("PIPELINED BICGSTAB", variant, nodeAware, jacobi, problem.rhs);
  }
  Kokkos::Tools::Experimental::set_begin_parallel_for_callback(nullptr);
  Kokkos::Tools::Experimental::set_begin_parallel_reduce_callback(nullptr);
  if (comm->getRank() == 0) {
    if (options.json == "-") {
      std::cout << report.dump(1) << std::endl;
    } else {
      std::ofstream file(options.json);
      file << report.dump(1) << "\n" << std::flush;
      throwOnAllIfAny(MPI_COMM_SELF, file.good() ? "" : "cannot write " + options.json);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Tpetra::ScopeGuard scope(&argc, &argv);
  Options options;
  CLI::App app("Records an iteration of BiCGStab");
  addProblemOptions(app, options.problem);
  app.add_option("--partition", options.partition, "contiguous, strided or graph");
  app.add_option("--json", options.json, "file to write, of rank 0's events");
  CLI11_PARSE(app, argc, argv);
  try {
    checkProblemOptions(app, options.problem);
    run(options);
  } catch (const std::exception& error) {
    std::cerr << "solver_traces: " << error.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 0;
}
