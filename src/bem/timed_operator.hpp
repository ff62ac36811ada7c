/// \file timed_operator.hpp
/// Where the time of a solve goes.
#pragma once

#include <mpi.h>

#include <Teuchos_RCP.hpp>
#include <Tpetra_Operator.hpp>
#include <utility>

#include "Komvos_HMatrixOperator.hpp"
#include "support/exchange_regions.hpp"

namespace Komvos::Program {

/// Seconds of this process in exchanges, from the first object's life on.
class ExchangeClock {
 public:
  double seconds() const { return seconds_; }

 private:
  double seconds_ = 0;
  ExchangeRegions regions_{[this](double seconds) { seconds_ += seconds; }};
};

/// An operator that notes how long its applications take, exchanges apart.
class TimedOperator : public Tpetra::Operator<> {
 public:
  /// \param clock must outlive this
  TimedOperator(Teuchos::RCP<const Tpetra::Operator<>> inner, const ExchangeClock& clock)
      : inner_(std::move(inner)), clock_(clock) {}

  Teuchos::RCP<const Tpetra::Map<>> getDomainMap() const override { return inner_->getDomainMap(); }
  Teuchos::RCP<const Tpetra::Map<>> getRangeMap() const override { return inner_->getRangeMap(); }
  bool hasTransposeApply() const override { return inner_->hasTransposeApply(); }
  void apply(const Tpetra::MultiVector<>& X, Tpetra::MultiVector<>& Y, Teuchos::ETransp mode, double alpha,
             double beta) const override {
    time([&] { inner_->apply(X, Y, mode, alpha, beta); });
  }

  double workSeconds() const { return work_; }
  double exchangeSeconds() const { return exchange_; }
  long count() const { return count_; }

 protected:
  template <class Application>
  void time(const Application& apply) const {
    const double start = MPI_Wtime(), exchangedBefore = clock_.seconds();
    apply();
    const double exchanged = clock_.seconds() - exchangedBefore;
    exchange_ += exchanged;
    work_ += MPI_Wtime() - start - exchanged;
    ++count_;
  }

 private:
  Teuchos::RCP<const Tpetra::Operator<>> inner_;
  const ExchangeClock& clock_;
  mutable double work_ = 0, exchange_ = 0;
  mutable long count_ = 0;
};

/// The same for a hierarchical matrix, which multiplies whole vectors, too.
class TimedHMatrix : public TimedOperator, public WholeVectorOperator<> {
 public:
  TimedHMatrix(const Teuchos::RCP<const HMatrixOperator<>>& inner, const ExchangeClock& clock)
      : TimedOperator(inner, clock), inner_(inner) {}

  void applyToWhole(const Tpetra::MultiVector<>& X, Tpetra::MultiVector<>& Y) const override {
    time([&] { inner_->applyToWhole(X, Y); });
  }

 private:
  Teuchos::RCP<const HMatrixOperator<>> inner_;
};

}  // namespace Komvos::Program
