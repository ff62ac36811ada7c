/// \file Komvos_TpetraVector_def.hpp
/// Tpetra's own definitions of vectors, for scalars that the installed Tpetra is not compiled for: complex numbers too
/// where Trilinos was built without them, as Debian's was. Include it before any other header of Trilinos, and behind
/// it the definitions of Komvos that you need.
#pragma once

#include <Teuchos_config.h>
#ifndef HAVE_TEUCHOS_COMPLEX
#define HAVE_TEUCHOS_COMPLEX  // the headers of Teuchos know complex numbers where they are asked to
#endif

#include <Tpetra_MultiVector_def.hpp>
// Behind it, for these do not include what they need.
#include <Tpetra_DistObject_def.hpp>
#include <Tpetra_Vector_def.hpp>
