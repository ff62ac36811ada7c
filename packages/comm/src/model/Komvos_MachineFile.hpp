/// \file Komvos_MachineFile.hpp
/// Machines as JSON files: "format": "komvos-machine", "version": 1.
///
/// Keys carry their units; a rate of null has no limit, "off_node" of null was not measured.
#pragma once

#include <mpi.h>

#include <string>

#include "Komvos_MachineModel.hpp"

namespace Komvos {

/// Numbers keep every digit: machineFromJson(machineToJson(m)) is m.
std::string machineToJson(const MachineModel& machine);

/// \param source what errors call the text, as a file name
/// \throws BadInput naming source, key and value, if the text is no machine: broken off, of another format or version,
///         a key missing, or a parameter that is not a positive number.
MachineModel machineFromJson(const std::string& text, const std::string& source);

/// \param what "blue-waters", or the path of a file written by `komvos calibrate`
/// \throws BadInput if there is neither, or as machineFromJson
/// \note Reads a file: on many ranks call it on one, and send the text on.
MachineModel machineByNameOrFile(const std::string& what);

/// The same on all ranks; rank 0 reads. \throws BadInput on all ranks \note Collective on `comm`.
MachineModel machineByNameOrFile(MPI_Comm comm, const std::string& what);

}  // namespace Komvos
