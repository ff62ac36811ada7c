// Compiles NodeAwareImport for the maps, and the vectors over them, that the installed Tpetra is compiled for.
#include <TpetraCore_ETIHelperMacros.h>

#include "Komvos_NodeAwareImport_def.hpp"

namespace Komvos {

TPETRA_ETI_MANGLING_TYPEDEFS()
TPETRA_INSTANTIATE_LGN(KOMVOS_NODEAWAREIMPORT_INSTANT)
TPETRA_INSTANTIATE_MULTIVECTOR(KOMVOS_NODEAWAREIMPORT_SCALAR_INSTANT)

}  // namespace Komvos
