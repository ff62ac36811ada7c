// Does the time of a factorization depend on how much MPI buffers, and what does looking ahead gain?
//
// MUMPS or SuperLU_DIST factors a matrix, and again with the same values, as often as samples are wanted; only the
// numerical factorization counts, of the slowest rank. run_factorizations.py repeats this for eager limits of Open MPI.
// The questions are those of P. Amestoy, I. Duff, J.-Y. L'Excellent, X. Li, "Impact of the implementation of MPI
// point-to-point communications on the performance of two general sparse solvers", INRIA RR-4372, Tables 3 and 6 to 9.
//
// MPI's blocking calls are wrapped here, through its profiling interface, and so is SuperLU_DIST's function that
// factors: of its last call it is written down which share of each of so many equal slices of time a rank spends in
// MPI. MUMPS calls MPI from Fortran, which goes past these wrappers, so there is no such line for it.
#include <dlfcn.h>
#include <mpi.h>
#ifdef KOMVOS_HAVE_SUPERLU_DIST
#include <superlu_ddefs.h>
#endif

#include <CLI/CLI.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_DirectSolver.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_Statistics.hpp"
#include "problem/problem.hpp"

namespace {

using namespace Komvos;
using namespace Komvos::Program;
using Json = nlohmann::ordered_json;

// --- waiting ---

std::vector<std::pair<double, double>> waits;  // begin and end, while it is recorded
bool recording = false;
double recordedFrom = 0, recordedTo = 0;

/// Records the time of a call while it lives.
class Wait {
 public:
  Wait() : begin_(recording ? MPI_Wtime() : 0) {}
  ~Wait() {
    if (recording) {
      waits.emplace_back(begin_, MPI_Wtime());
    }
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

 private:
  double begin_;
};

}  // namespace

extern "C" {
#ifdef KOMVOS_HAVE_SUPERLU_DIST
int_t pdgstrf(superlu_dist_options_t* options, int m, int n, double norm, dLUstruct_t* factors, gridinfo_t* grid,
              SuperLUStat_t* statistics, int* info) {
  using Function = decltype(&pdgstrf);
  static const auto theirs = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pdgstrf"));
  waits.clear();
  recording = true;
  recordedFrom = MPI_Wtime();
  const int_t result = theirs(options, m, n, norm, factors, grid, statistics, info);
  recordedTo = MPI_Wtime();
  recording = false;
  return result;
}
#endif
int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  const Wait wait;
  return PMPI_Wait(request, status);
}
int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  const Wait wait;
  return PMPI_Waitall(count, requests, statuses);
}
int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  const Wait wait;
  return PMPI_Waitany(count, requests, index, status);
}
int MPI_Recv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status) {
  const Wait wait;
  return PMPI_Recv(buffer, count, type, source, tag, comm, status);
}
int MPI_Send(const void* buffer, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm) {
  const Wait wait;
  return PMPI_Send(buffer, count, type, target, tag, comm);
}
int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  const Wait wait;
  return PMPI_Probe(source, tag, comm, status);
}
}

namespace {

/// Of each of `slices` equal parts of the time from begin to end, the share in calls.
std::vector<double> sharesOfWaits(double begin, double end, int slices) {
  std::vector<double> shares(slices);
  const double width = std::max(1e-9, end - begin) / slices;
  for (const auto& [from, to] : waits) {
    for (int i = 0; i < slices; ++i) {
      const double overlap = std::min(to, begin + (i + 1) * width) - std::max(from, begin + i * width);
      shares[i] += std::max(0.0, overlap) / width;
    }
  }
  for (double& share : shares) {
    share = std::round(100 * share) / 100;
  }
  return shares;
}

struct Options {
  ProblemOptions problem;
  std::string method = "superlu-dist";
  DirectOptions direct;
  int samples = 3;
  int slices = 200;
  std::string limit = "default";
  std::string json = "-";
};

/// \return for each rank the shares of slices, on rank 0
Json gather(const std::vector<double>& shares, MPI_Comm comm) {
  int rank = 0, size = 0;
  mpiCheck(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  mpiCheck(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  const int count = static_cast<int>(shares.size());
  std::vector<double> all(rank == 0 ? shares.size() * size : 0);
  mpiCheck(MPI_Gather(shares.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, 0, comm), "MPI_Gather");
  Json json = Json::array();
  for (std::size_t i = 0; i < all.size(); i += shares.size()) {
    json.push_back(std::vector<double>(all.begin() + static_cast<std::ptrdiff_t>(i),
                                       all.begin() + static_cast<std::ptrdiff_t>(i + shares.size())));
  }
  return json;
}

Json run(const Options& options, MPI_Comm comm) {
  const Problem problem = loadProblem(options.problem, Tpetra::getDefaultComm());
  DirectSolver solver(*problem.matrix, parseDirectMethod(options.method), options.direct);  // warms up, too
  std::vector<double> seconds;
  for (int sample = 0; sample < options.samples; ++sample) {
    mpiCheck(MPI_Barrier(comm), "MPI_Barrier");
    solver.refactor(*problem.matrix);
    seconds.push_back(solver.report().factorSeconds);
  }
  Json json{{"library", solver.report().library},
            {"method", options.method},
            {"problem", problem.name},
            {"rows", problem.matrix->getGlobalNumRows()},
            {"entries", problem.matrix->getGlobalNumEntries()},
            {"ranks", problem.matrix->getComm()->getSize()},
            {"eager_limit", options.limit},
            {"look_ahead", options.direct.lookAhead},
            {"factor_entries", solver.report().factorEntries},
            {"operations", solver.report().operations},
            {"seconds", seconds},
            {"recorded_seconds", recordedTo - recordedFrom}};
  json["shares_waiting"] = gather(sharesOfWaits(recordedFrom, recordedTo, options.slices), comm);
  return json;
}

}  // namespace

int main(int argc, char** argv) {
  Tpetra::ScopeGuard scope(&argc, &argv);
  Options options;
  CLI::App app("Times factorizations by MUMPS and SuperLU_DIST");
  addProblemOptions(app, options.problem);
  app.add_option("--method", options.method, "mumps or superlu-dist");
  app.add_option("--look-ahead", options.direct.lookAhead, "panels, of SuperLU_DIST")->check(CLI::PositiveNumber);
  app.add_option("--samples", options.samples)->check(CLI::PositiveNumber);
  app.add_option("--slices", options.slices, "of the line of time")->check(CLI::PositiveNumber);
  app.add_option("--limit", options.limit, "words for the report: the eager limit that was set");
  app.add_option("--json", options.json, "file to append a line to");
  CLI11_PARSE(app, argc, argv);
  try {
    checkProblemOptions(app, options.problem);
    const auto comm = Tpetra::getDefaultComm();
    const Json json = run(options, Tpetra::Details::extractMpiCommFromTeuchos(*comm));
    if (comm->getRank() == 0) {
      std::cout << json["library"].get<std::string>() << ", limit " << options.limit << ", look-ahead "
                << options.direct.lookAhead << ": " << Impl::median(json["seconds"].get<std::vector<double>>())
                << " s\n";
      if (options.json != "-") {
        std::ofstream file(options.json, std::ios::app);
        file << json.dump() << "\n" << std::flush;
        throwOnAllIfAny(MPI_COMM_SELF, file.good() ? "" : "cannot write " + options.json);
      }
    }
  } catch (const std::exception& error) {
    std::cerr << "factorizations: " << error.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 0;
}
