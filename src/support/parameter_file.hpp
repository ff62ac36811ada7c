/// \file parameter_file.hpp
/// The file given by --xml.
#pragma once

#include <mpi.h>

#include <Teuchos_ParameterList.hpp>
#include <Teuchos_RCP.hpp>
#include <string>

namespace Komvos::Program {

/// A ParameterList in Teuchos' XML with the sublists "MueLu" and "Belos", or fewer; an empty one for an empty path.
/// Rank 0 reads the file.
/// \note Collective.
/// \throws BadInput on all ranks
Teuchos::RCP<Teuchos::ParameterList> readParameterFile(const std::string& path, MPI_Comm comm);

}  // namespace Komvos::Program
