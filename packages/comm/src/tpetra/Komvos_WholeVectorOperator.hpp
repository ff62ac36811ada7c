/// \file Komvos_WholeVectorOperator.hpp
/// Operators that read vectors of which every rank has all elements.
#pragma once

#include <Tpetra_MultiVector.hpp>

#include "Komvos_TpetraShim.hpp"

namespace Komvos {

/// What a Tpetra::Operator may offer besides: products with vectors that every rank holds whole, for which nothing of x
/// need be gathered. Solvers look for it by a dynamic_cast.
///
/// A *whole* vector has the elements of all ranks on each rank: those of rank 0 in the order of the domain map there,
/// then those of rank 1, and so on.
template <class Scalar = DefaultScalar, class LocalOrdinal = DefaultLocalOrdinal,
          class GlobalOrdinal = DefaultGlobalOrdinal, class Node = DefaultNode>
class WholeVectorOperator {
 public:
  using whole_multivector_type = Tpetra::MultiVector<Scalar, LocalOrdinal, GlobalOrdinal, Node>;

  virtual ~WholeVectorOperator() = default;
  /// Y = A X.
  /// \param X whole, the same on all ranks; its map is not looked at, but for its length
  /// \param Y over the range map, as many columns
  /// \note Collective. \throws what apply() throws; of Komvos' operators PlanMismatch where a vector does not fit
  virtual void applyToWhole(const whole_multivector_type& X, whole_multivector_type& Y) const = 0;
};

}  // namespace Komvos
