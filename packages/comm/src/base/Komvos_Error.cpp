#include "Komvos_Error.hpp"

namespace Komvos {

void mpiCheck(int code, const char* call) {
  if (code == MPI_SUCCESS) {
    return;
  }
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw MpiError(std::string(call) + ": " + std::string(text, length));
}

namespace {

/// \return the text of the lowest rank that has one
std::string agreedError(MPI_Comm comm, const std::string& error) {
  int rank = 0;
  int size = 0;
  mpiCheck(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  mpiCheck(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  const int mine = error.empty() ? size : rank;
  int first = size;
  mpiCheck(MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
  if (first == size) {
    return {};
  }
  std::string text = error;
  int length = static_cast<int>(text.size());
  mpiCheck(MPI_Bcast(&length, 1, MPI_INT, first, comm), "MPI_Bcast");
  text.resize(length);
  mpiCheck(MPI_Bcast(text.data(), length, MPI_CHAR, first, comm), "MPI_Bcast");
  return text;
}

}  // namespace

void throwOnAllIfAny(MPI_Comm comm, const std::string& error) {
  const std::string agreed = agreedError(comm, error);
  if (!agreed.empty()) {
    throw BadInput(agreed);
  }
}

void Impl::throwMismatchOnAllIfAny(MPI_Comm comm, const std::string& error) {
  const std::string agreed = agreedError(comm, error);
  if (!agreed.empty()) {
    throw PlanMismatch(agreed);
  }
}

std::string Impl::textOf(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    const std::string text = error.what();
    return text.empty() ? "an exception without a text" : text;
  } catch (...) {
    return "an exception of an unknown type";
  }
}

}  // namespace Komvos
