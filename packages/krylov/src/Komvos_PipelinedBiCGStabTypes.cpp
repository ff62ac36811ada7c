// Compiles PipelinedBiCGStab for the vectors and operators of the installed Tpetra that have floating-point scalars.
#include <TpetraCore_ETIHelperMacros.h>

#include "Komvos_PipelinedBiCGStab_def.hpp"

namespace Komvos {

TPETRA_ETI_MANGLING_TYPEDEFS()
TPETRA_INSTANTIATE_SLGN_NO_ORDINAL_SCALAR(KOMVOS_PIPELINEDBICGSTAB_INSTANT)

}  // namespace Komvos
