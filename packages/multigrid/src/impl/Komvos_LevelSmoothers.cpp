#include "Komvos_LevelSmoothers.hpp"

#include <Ifpack2_AdditiveSchwarz.hpp>
#include <Ifpack2_Chebyshev.hpp>
#include <Ifpack2_ILUT.hpp>
#include <Ifpack2_RILUK.hpp>
#include <Ifpack2_Relaxation.hpp>
#include <Tpetra_RowMatrix.hpp>
#include <limits>
#include <utility>

#include "Komvos_RowMatrixFacade.hpp"

// How this works. Ifpack2 imports ghosts by itself wherever it finds a Tpetra::CrsMatrix, and multiplies by apply()
// where it finds any other RowMatrix.
//
// Chebyshev is given another RowMatrix, with the estimate of the largest eigenvalue pinned: it would estimate anew,
// in ten products and twelve reductions.
//
// All others work on the rows of a rank as they are, with ghosts of the sweep before: one sweep is x + inv(M) (b - A
// x), where M is a part of A on this rank (its diagonal, a triangle, a product of factors). CorrectionSmoother takes
// the residual from a node-aware matrix, in one pass, and lets Ifpack2 apply inv(M) by a sweep from 0, which needs no
// ghosts.
namespace Komvos::Impl {

namespace {

using Teuchos::RCP;
using Teuchos::rcp;
using Teuchos::rcp_dynamic_cast;
using Vectors = Tpetra::MultiVector<>;
using RowMatrix = Tpetra::RowMatrix<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;
using Schwarz = Ifpack2::AdditiveSchwarz<RowMatrix>;
using Chebyshev = Ifpack2::Chebyshev<RowMatrix>;
using Relaxation = Ifpack2::Relaxation<RowMatrix>;

/// Where this rank throws, the others wait in the products that it does not come to.
void abandonApplies(const NodeAwareCrsMatrix<>& A, int count) {
  for (; count > 0; --count) {
    A.abandonApply();
  }
}

class CorrectionSmoother : public LevelSmoother {
 public:
  /// \param M one sweep of it
  CorrectionSmoother(RCP<const NodeAwareCrsMatrix<>> A, RCP<Ifpack2Preconditioner> M, int sweeps,
                     std::size_t complexity)
      : A_(std::move(A)), M_(std::move(M)), sweeps_(sweeps), complexity_(complexity) {}

  void apply(Vectors& x, const Vectors& b, bool zeroGuess) const override {
    if (M_->supportsZeroStartingSolution()) {
      M_->setZeroStartingSolution(true);
    }
    int residuals = sweeps_ - (zeroGuess ? 1 : 0);  // to come
    try {
      if (zeroGuess) {
        M_->apply(b, x);
      }
      if (residuals > 0) {
        makeRoomFor(x.getNumVectors());
      }
      while (residuals > 0) {
        --residuals;
        A_->residual(x, b, *residual_);
        M_->apply(*residual_, *correction_);
        x.update(Teuchos::ScalarTraits<DefaultScalar>::one(), *correction_,
                 Teuchos::ScalarTraits<DefaultScalar>::one());
      }
    } catch (...) {
      abandonApplies(*A_, residuals);
      throw;
    }
  }

  std::size_t complexity() const override { return complexity_; }

 private:
  /// Vectors for so many columns; they are kept.
  void makeRoomFor(std::size_t columns) const {
    if (correction_.is_null() || correction_->getNumVectors() != columns) {
      correction_ = Teuchos::null;  // until both are there
      residual_ = rcp(new Vectors(A_->getRangeMap(), columns));
      correction_ = rcp(new Vectors(A_->getDomainMap(), columns));
    }
  }

  RCP<const NodeAwareCrsMatrix<>> A_;
  RCP<Ifpack2Preconditioner> M_;
  int sweeps_;
  std::size_t complexity_;
  mutable RCP<Vectors> residual_, correction_;
};

/// The vectors that Ifpack2's Chebyshev keeps fit one number of columns (in Trilinos 13.2 and 16.1): for another one it
/// is set up again, on this rank alone.
class ChebyshevSmoother : public LevelSmoother {
 public:
  /// \param parameters with the estimate of the largest eigenvalue
  ChebyshevSmoother(RCP<const NodeAwareCrsMatrix<>> A, const Teuchos::ParameterList& parameters, std::size_t complexity)
      : A_(std::move(A)), facade_(rcp(new RowMatrixFacade(A_))), chebyshev_(facade_), complexity_(complexity) {
    Teuchos::ParameterList list(parameters);
    chebyshev_.setParameters(list);  // writes what counts into the list: the degree has other names, too
    const int degree = list.get<int>("chebyshev: degree");
    const bool isTextbook =
        (list.isType<bool>("chebyshev: textbook algorithm") && list.get<bool>("chebyshev: textbook algorithm")) ||
        (list.isType<std::string>("chebyshev: algorithm") &&
         list.get<std::string>("chebyshev: algorithm") == "textbook");
    products_ = degree;
    productsFromZero_ = isTextbook ? degree : degree - 1;
    setUp();
  }

  void apply(Vectors& x, const Vectors& b, bool zeroGuess) const override {
    facade_->countAnew();
    try {
      if (columns_ != 0 && columns_ != x.getNumVectors()) {
        columns_ = toSetUp;
        const auto facade = rcp(new RowMatrixFacade(A_));
        chebyshev_.setMatrix(facade);
        facade_ = facade;
        setUp();
      }
      columns_ = x.getNumVectors();
      chebyshev_.setZeroStartingSolution(zeroGuess);
      chebyshev_.apply(b, x);
    } catch (...) {
      columns_ = toSetUp;
      abandonApplies(*A_, (zeroGuess ? productsFromZero_ : products_) - facade_->begun());
      throw;
    }
  }

  std::size_t complexity() const override { return complexity_; }

 private:
  void setUp() const {
    chebyshev_.initialize();
    chebyshev_.compute();
  }

  RCP<const NodeAwareCrsMatrix<>> A_;
  mutable RCP<const RowMatrixFacade> facade_;
  mutable Chebyshev chebyshev_;
  int products_ = 0, productsFromZero_ = 0;  // of an apply
  std::size_t complexity_;
  static constexpr auto toSetUp = std::numeric_limits<std::size_t>::max();
  mutable std::size_t columns_ = 0;  // of the last apply; 0: of none
};

/// The same with one sweep. MueLu's own stays as it is, for MueLu may use it again when a hierarchy is reused.
RCP<Ifpack2Preconditioner> oneSweepOf(const Relaxation& relaxation, Teuchos::ParameterList parameters) {
  const auto one = rcp(new Relaxation(relaxation.getMatrix()));
  parameters.set("relaxation: sweeps", 1);
  one->setParameters(parameters);
  one->initialize();
  one->compute();
  return one;
}

/// \return why nothing can be done about a smoother that works on the rows of this rank alone; empty if something can
std::string whyUnknown(const MueLuSmoother& before) {
  if (const auto schwarz = rcp_dynamic_cast<Schwarz>(before.ifpack2); !schwarz.is_null()) {
    const bool iterates = before.parameters.isParameter("schwarz: num iterations") &&
                          before.parameters.get<int>("schwarz: num iterations") != 1;
    return schwarz->getOverlapLevel() > 0 ? "overlaps" : iterates ? "iterates by itself" : "";
  }
  const bool isKnown = !rcp_dynamic_cast<Relaxation>(before.ifpack2).is_null() ||
                       !rcp_dynamic_cast<Ifpack2::RILUK<RowMatrix>>(before.ifpack2).is_null() ||
                       !rcp_dynamic_cast<Ifpack2::ILUT<RowMatrix>>(before.ifpack2).is_null();
  return isKnown ? "" : "is of a kind that Komvos does not know";
}

}  // namespace

SmootherReplacement replaceSmoother(const MueLuSmoother& before, const RCP<const NodeAwareCrsMatrix<>>& A) {
  if (const auto chebyshev = rcp_dynamic_cast<Chebyshev>(before.ifpack2); !chebyshev.is_null()) {
    Teuchos::ParameterList parameters(before.parameters);
    parameters.set("chebyshev: max eigenvalue", chebyshev->getLambdaMaxForApply());
    parameters.set("chebyshev: assume matrix does not change", true);  // else it estimates anew all the same
    return {std::make_shared<const ChebyshevSmoother>(A, parameters, before.complexity), ""};
  }
  if (const std::string why = whyUnknown(before); !why.empty()) {
    return {nullptr, before.type + " " + why};
  }
  const auto relaxation = rcp_dynamic_cast<Relaxation>(before.ifpack2);
  const int sweeps = !relaxation.is_null() && before.parameters.isParameter("relaxation: sweeps")
                         ? before.parameters.get<int>("relaxation: sweeps")
                         : 1;
  const auto M = sweeps == 1 ? before.ifpack2 : oneSweepOf(*relaxation, before.parameters);
  return {std::make_shared<const CorrectionSmoother>(A, M, sweeps, before.complexity), ""};
}

}  // namespace Komvos::Impl
