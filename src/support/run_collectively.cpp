#include "support/run_collectively.hpp"

#include <unistd.h>

#include <cstdio>
#include <exception>
#include <new>

#include "Komvos_Error.hpp"

namespace Komvos::Program {

namespace {

const double graceSeconds = 10;

}  // namespace

bool allRanksArrive(MPI_Comm comm) {
  MPI_Request request;
  MPI_Ibarrier(comm, &request);
  const double start = MPI_Wtime();
  int done = 0;
  while (done == 0 && MPI_Wtime() - start < graceSeconds) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    usleep(1000);
  }
  return done != 0;
}

std::string oneLine(const std::string& text) {
  const std::size_t test = text.find("Throw test that evaluated to true:");
  std::size_t begin = 0;
  if (test != std::string::npos) {
    const std::size_t paragraph = text.find("\n\n", test);
    begin = paragraph == std::string::npos ? test : paragraph;
  }
  std::string line;
  for (const char c : text.substr(begin)) {
    const bool space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!space) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  while (!line.empty() && line.back() == ' ') {
    line.pop_back();
  }
  const std::size_t longest = 600;
  return line.size() <= longest ? line : line.substr(0, longest) + " ...";
}

void onRankZero(MPI_Comm comm, const std::function<void()>& work) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  std::string error;
  int internal = 0;
  try {
    if (rank == 0) {
      work();
    }
  } catch (const BadInput& thrown) {
    error = thrown.what();
  } catch (const Error& thrown) {
    error = thrown.what();
    internal = 1;
  } catch (const std::bad_alloc&) {
    error = "out of memory";
    internal = 1;
  } catch (const std::exception& thrown) {
    error = thrown.what();
  }
  try {
    throwOnAllIfAny(comm, error);
  } catch (const BadInput& thrown) {
    mpiCheck(MPI_Bcast(&internal, 1, MPI_INT, 0, comm), "MPI_Bcast");
    if (internal != 0) {
      throw Error(thrown.what());
    }
    throw;
  }
}

void printError(const std::string& text) { std::fprintf(stderr, "komvos: error: %s\n", oneLine(text).c_str()); }

int runCollectively(MPI_Comm comm, const std::function<int()>& work) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  // Of our own, so that messages left over by the work cannot meet the barrier.
  MPI_Comm meeting;
  MPI_Comm_dup(comm, &meeting);
  std::string error;
  int failure = badInput;
  try {
    const int code = work();
    MPI_Comm_free(&meeting);
    return code;
  } catch (const BadInput& thrown) {
    error = thrown.what();
  } catch (const Error& thrown) {
    error = thrown.what();
    failure = internalError;
  } catch (const std::bad_alloc&) {
    error = "out of memory";
    failure = internalError;
  } catch (const std::exception& thrown) {  // Trilinos, of what it was given
    error = thrown.what();
  }
  if (!allRanksArrive(meeting)) {
    printError("rank " + std::to_string(rank) + " alone: " + error);
    std::fflush(stderr);
    MPI_Abort(comm, internalError);
  }
  MPI_Comm_free(&meeting);
  if (rank == 0) {
    printError(error);
  }
  return failure;
}

}  // namespace Komvos::Program
