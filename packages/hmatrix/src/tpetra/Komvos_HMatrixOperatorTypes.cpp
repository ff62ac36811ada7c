/// \file Komvos_HMatrixOperatorTypes.cpp
/// HMatrixOperator, for all types of maps that the installed Tpetra is compiled for, and those of its scalars that
/// HMatrix is for. With the definitions of HMatrix: Tpetra may have nodes that it is not compiled for.
#include <TpetraCore_ETIHelperMacros.h>
#include <TpetraCore_config.h>

#include <complex>

#include "Komvos_HMatrixFile_def.hpp"
#include "Komvos_HMatrixOperatorFile_def.hpp"

namespace Komvos {

TPETRA_ETI_MANGLING_TYPEDEFS()
#define KOMVOS_OF_FLOAT(LO, GO, NODE) KOMVOS_HMATRIXOPERATOR_INSTANT(float, LO, GO, NODE)
#define KOMVOS_OF_DOUBLE(LO, GO, NODE) KOMVOS_HMATRIXOPERATOR_INSTANT(double, LO, GO, NODE)
#define KOMVOS_OF_COMPLEX(LO, GO, NODE) KOMVOS_HMATRIXOPERATOR_INSTANT(std::complex<double>, LO, GO, NODE)
#ifdef HAVE_TPETRA_INST_FLOAT
TPETRA_INSTANTIATE_LGN(KOMVOS_OF_FLOAT)
#endif
TPETRA_INSTANTIATE_LGN(KOMVOS_OF_DOUBLE)
#ifdef HAVE_TPETRA_INST_COMPLEX_DOUBLE
TPETRA_INSTANTIATE_LGN(KOMVOS_OF_COMPLEX)
#endif
#undef KOMVOS_OF_FLOAT
#undef KOMVOS_OF_DOUBLE
#undef KOMVOS_OF_COMPLEX

}  // namespace Komvos
