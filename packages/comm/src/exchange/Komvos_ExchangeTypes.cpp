// Compiles Exchange for each device of the installed Tpetra, with the types of values that vectors have there. Tpetra's
// std::complex is Kokkos::complex in its views, and so it is here.
#include <TpetraCore_ETIHelperMacros.h>
#include <TpetraCore_config.h>

#include "Komvos_Exchange_def.hpp"

namespace Komvos {

#define KOMVOS_EXCHANGE_INSTANT_ALL(NODE)                \
  KOMVOS_EXCHANGE_INSTANT(float, NODE)                   \
  KOMVOS_EXCHANGE_INSTANT(double, NODE)                  \
  KOMVOS_EXCHANGE_INSTANT(Kokkos::complex<float>, NODE)  \
  KOMVOS_EXCHANGE_INSTANT(Kokkos::complex<double>, NODE) \
  KOMVOS_EXCHANGE_INSTANT(int, NODE)                     \
  KOMVOS_EXCHANGE_INSTANT(long, NODE)                    \
  KOMVOS_EXCHANGE_INSTANT(long long, NODE)

TPETRA_ETI_MANGLING_TYPEDEFS()
TPETRA_INSTANTIATE_N(KOMVOS_EXCHANGE_INSTANT_ALL)

// Types that few builds of Tpetra have.
#define KOMVOS_EXCHANGE_INSTANT_UNSIGNED(NODE) KOMVOS_EXCHANGE_INSTANT(unsigned, NODE)
#define KOMVOS_EXCHANGE_INSTANT_UNSIGNED_LONG(NODE) KOMVOS_EXCHANGE_INSTANT(unsigned long, NODE)
#define KOMVOS_EXCHANGE_INSTANT_LONG_DOUBLE(NODE) KOMVOS_EXCHANGE_INSTANT(long double, NODE)
#define KOMVOS_EXCHANGE_INSTANT_FLOAT128(NODE) KOMVOS_EXCHANGE_INSTANT(__float128, NODE)
#ifdef HAVE_TPETRA_INST_INT_UNSIGNED
TPETRA_INSTANTIATE_N(KOMVOS_EXCHANGE_INSTANT_UNSIGNED)
#endif
#ifdef HAVE_TPETRA_INST_INT_UNSIGNED_LONG
TPETRA_INSTANTIATE_N(KOMVOS_EXCHANGE_INSTANT_UNSIGNED_LONG)
#endif
#ifdef HAVE_TPETRA_INST_LONG_DOUBLE
TPETRA_INSTANTIATE_N(KOMVOS_EXCHANGE_INSTANT_LONG_DOUBLE)
#endif
#ifdef HAVE_TPETRA_INST_FLOAT128
TPETRA_INSTANTIATE_N(KOMVOS_EXCHANGE_INSTANT_FLOAT128)
#endif

}  // namespace Komvos
