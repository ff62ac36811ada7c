/// \file Komvos_Error.hpp
/// The errors Komvos throws, the check of MPI return codes, and agreement on errors among ranks.
#pragma once

#include <mpi.h>

#include <exception>
#include <stdexcept>
#include <string>

namespace Komvos {

/// Base of everything Komvos throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What the caller gave cannot be used: topology, options, file, environment variable, matrix. Where ranks agree on an
/// error (throwOnAllIfAny), all of them throw this, whatever it was on the rank that failed, a lack of memory included.
class BadInput : public Error {
 public:
  using Error::Error;
};

/// A vector, or a message, does not fit the plan it is used with.
class PlanMismatch : public Error {
 public:
  using Error::Error;
};

/// An MPI call failed.
class MpiError : public Error {
 public:
  using Error::Error;
};

/// \throws MpiError with MPI's own text, if `code` is not MPI_SUCCESS.
void mpiCheck(int code, const char* call);

/// Turns an error of any kind that may have happened on some ranks into the same exception on all of them.
///
/// \note Collective on `comm`: call it on every rank, with an empty text where all is well. Do this before any
/// message is posted, so that no rank is left waiting for one that threw.
/// \throws BadInput with the text of the lowest rank that has one.
void throwOnAllIfAny(MPI_Comm comm, const std::string& error);

namespace Impl {
/// The same for what is no fault of the caller's. \throws PlanMismatch
void throwMismatchOnAllIfAny(MPI_Comm comm, const std::string& error);

/// Never empty. \param thrown anything, also what is no std::exception
std::string textOf(const std::exception_ptr& thrown);

/// Puts an error off until ranks can agree on it. \return the text of what `work` throws, or nothing
template <class Work>
std::string errorIn(const Work& work) {
  try {
    work();
  } catch (...) {
    return textOf(std::current_exception());
  }
  return {};
}
}  // namespace Impl

}  // namespace Komvos
