// Compiles NodeAwareDistributor for each device of the installed Tpetra.
#include <TpetraCore_ETIHelperMacros.h>

#include "Komvos_NodeAwareDistributor_def.hpp"

namespace Komvos {

TPETRA_ETI_MANGLING_TYPEDEFS()
TPETRA_INSTANTIATE_N(KOMVOS_NODEAWAREDISTRIBUTOR_INSTANT)

}  // namespace Komvos
