#include "support/parameter_file.hpp"

#include <Teuchos_XMLParameterListHelpers.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "Komvos_Error.hpp"
#include "support/run_collectively.hpp"

namespace Komvos::Program {

namespace {

/// The text of the file, on all ranks.
std::string readOnRoot(const std::string& path, MPI_Comm comm) {
  int rank = 0;
  mpiCheck(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  std::string text;
  std::string error;
  if (rank == 0) {
    std::ifstream in(path);
    if (std::filesystem::is_directory(path)) {
      error = path + ": is a directory";
    } else if (!in) {
      error = path + ": cannot be read";
    } else {
      text.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
  }
  throwOnAllIfAny(comm, error);
  int length = static_cast<int>(text.size());
  mpiCheck(MPI_Bcast(&length, 1, MPI_INT, 0, comm), "MPI_Bcast");
  text.resize(length);
  mpiCheck(MPI_Bcast(text.data(), length, MPI_CHAR, 0, comm), "MPI_Bcast");
  return text;
}

}  // namespace

Teuchos::RCP<Teuchos::ParameterList> readParameterFile(const std::string& path, MPI_Comm comm) {
  const auto parameters = Teuchos::parameterList();
  if (path.empty()) {
    return parameters;
  }
  const std::string text = readOnRoot(path, comm);
  try {
    Teuchos::updateParametersFromXmlString(text, parameters.ptr());
  } catch (const std::exception& thrown) {
    throw BadInput(path + ": not a ParameterList in XML: " + oneLine(thrown.what()));
  }
  for (auto entry = parameters->begin(); entry != parameters->end(); ++entry) {
    const std::string& name = parameters->name(entry);
    if (!parameters->isSublist(name) || (name != "MueLu" && name != "Belos")) {
      throw BadInput(path + ": has '" + name + "', only the sublists MueLu and Belos are known");
    }
  }
  return parameters;
}

}  // namespace Komvos::Program
