/// \file Komvos_HMatrixPreconditionerTypes.cpp
/// HMatrixPreconditioner of double, for all types of maps that the installed Tpetra is compiled for.
#include <TpetraCore_ETIHelperMacros.h>

#include "Komvos_HMatrixPreconditioner_def.hpp"

namespace Komvos {

TPETRA_ETI_MANGLING_TYPEDEFS()
#define KOMVOS_INSTANTIATE_HMATRIX_PRECONDITIONER(LO, GO, NODE) \
  template class HMatrixPreconditioner<double, LO, GO, NODE>;
TPETRA_INSTANTIATE_LGN(KOMVOS_INSTANTIATE_HMATRIX_PRECONDITIONER)
#undef KOMVOS_INSTANTIATE_HMATRIX_PRECONDITIONER

}  // namespace Komvos
