#include "support/parameter_file.hpp"

#include <Teuchos_XMLParameterListHelpers.hpp>

#include "Komvos_Broadcast.hpp"
#include "Komvos_Error.hpp"
#include "support/run_collectively.hpp"

namespace Komvos::Program {

Teuchos::RCP<Teuchos::ParameterList> readParameterFile(const std::string& path, MPI_Comm comm) {
  const auto parameters = Teuchos::parameterList();
  if (path.empty()) {
    return parameters;
  }
  const std::string text = Impl::broadcastFile(comm, path, path + ": cannot be read, or is a directory");
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
