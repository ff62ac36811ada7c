/// \file Komvos_HMatrixOperatorTypes.cpp
/// HMatrixOperator of double, for all types of maps that the installed Tpetra is compiled for.
#include <TpetraCore_ETIHelperMacros.h>

#include "Komvos_HMatrixOperatorFile_def.hpp"
#include "Komvos_HMatrixOperator_def.hpp"

namespace Komvos {

TPETRA_ETI_MANGLING_TYPEDEFS()
#define KOMVOS_INSTANTIATE_HMATRIX_OPERATOR(LO, GO, NODE) template class HMatrixOperator<double, LO, GO, NODE>;
TPETRA_INSTANTIATE_LGN(KOMVOS_INSTANTIATE_HMATRIX_OPERATOR)
#undef KOMVOS_INSTANTIATE_HMATRIX_OPERATOR

}  // namespace Komvos
