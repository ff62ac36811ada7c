// Compiles RowTransfer for the types that the installed Tpetra is compiled for, but for matrices of integers.
#include <TpetraCore_ETIHelperMacros.h>

#include "Komvos_RowTransfer_def.hpp"

namespace Komvos {

TPETRA_ETI_MANGLING_TYPEDEFS()
TPETRA_INSTANTIATE_SLGN_NO_ORDINAL_SCALAR(KOMVOS_ROWTRANSFER_INSTANT)

}  // namespace Komvos
