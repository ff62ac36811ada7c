/// \file Komvos_RequireAccuracy.hpp
/// Which accuracies a hierarchical matrix can have.
#pragma once

#include <cmath>
#include <complex>
#include <limits>
#include <sstream>

#include "Komvos_Error.hpp"

namespace Komvos::Impl {

/// Below this, crosses would be rounding, and blocks as dear as dense ones.
template <class Scalar>
constexpr double finestAccuracy() {
  return 50 * static_cast<double>(std::numeric_limits<decltype(std::abs(Scalar()))>::epsilon());
}

/// \throws BadInput
template <class Scalar>
void requireAccuracy(double accuracy) {
  if (!(accuracy >= finestAccuracy<Scalar>()) || accuracy >= 1) {
    std::ostringstream text;
    text << "HMatrix: an accuracy of " << accuracy << "; it must be below 1, and at least " << finestAccuracy<Scalar>()
         << " for values of " << sizeof(decltype(std::abs(Scalar()))) << " bytes";
    throw BadInput(text.str());
  }
}

}  // namespace Komvos::Impl
