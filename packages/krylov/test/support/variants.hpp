/// \file variants.hpp
/// Tests of each variant of the solver: the fixture, a matrix, and an operator that is watched.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "support/solve_support.hpp"

namespace KomvosTest {

/// Calls of the operator in between, for tests that count or break them.
class Watched : public Operator {
 public:
  explicit Watched(RCP<const Operator> inner) : inner_(std::move(inner)) {}
  RCP<const Map> getDomainMap() const override { return inner_->getDomainMap(); }
  RCP<const Map> getRangeMap() const override { return inner_->getRangeMap(); }
  void apply(const Vector& x, Vector& y, Teuchos::ETransp mode, double alpha, double beta) const override {
    inner_->apply(x, y, mode, alpha, beta);
    columns += static_cast<int>(x.getNumVectors());
    if (++calls == poisonedCall && y.getLocalLength() > 0) {
      y.replaceLocalValue(0, 0, std::numeric_limits<double>::quiet_NaN());
    }
  }
  mutable int calls = 0, columns = 0;
  int poisonedCall = -1;

 private:
  RCP<const Operator> inner_;
};

inline RCP<Matrix> someMatrix(GO n = 25) { return convectionDiffusion(n, 20, slantedWind, false); }

/// The tests' parameter is a name of a variant (see solve_test.cpp).
class Variant : public testing::TestWithParam<const char*> {
 protected:
  RCP<Parameters> list(double tolerance = 1e-9, int iterations = 500) const {
    return parameters(tolerance, iterations, GetParam());
  }
};

}  // namespace KomvosTest
