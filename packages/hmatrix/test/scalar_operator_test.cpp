/// \file scalar_operator_test.cpp
/// Operators of scalars that the installed Tpetra need not be compiled for: float explicitly and complex implicitly,
/// from the definitions of Tpetra and of Komvos, as a user would.
#include "Komvos_TpetraVector_def.hpp"
// Behind it:
#include <gtest/gtest.h>

#include <Tpetra_Core.hpp>
#include <cmath>
#include <complex>
#include <initializer_list>
#include <vector>

#include "Komvos_BoundaryKernels.hpp"
#include "Komvos_HMatrixOperatorFile_def.hpp"
#include "Komvos_MeshGenerators.hpp"
#include "point_sets.hpp"
#include "shared_folder.hpp"

#ifndef HAVE_TPETRA_INST_FLOAT
namespace Komvos {
KOMVOS_NODEAWAREIMPORT_SCALAR_INSTANT(float, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode)
KOMVOS_HMATRIXOPERATOR_INSTANT(float, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode)
}  // namespace Komvos
#endif

namespace Komvos {
namespace {

using Complex = std::complex<double>;
template <class Scalar>
using MVOf = Tpetra::MultiVector<Scalar>;

template <class Scalar>
struct Number {
  static Scalar of(double real, double) { return static_cast<Scalar>(real); }
};
template <>
struct Number<Complex> {
  static Complex of(double real, double imaginary) { return {real, imaginary}; }
};

template <class Scalar>
Scalar valueAt(int i, std::size_t j) {
  const double phase = 1.0 + i * (1.0 + 0.1 * static_cast<double>(j));
  return Number<Scalar>::of(std::sin(phase), std::cos(1.7 * phase));
}

template <class Map>
int unknownAt(const Map& map, std::size_t i) {
  return static_cast<int>(map.getGlobalElement(static_cast<DefaultLocalOrdinal>(i)));
}

/// value(unknown, column) everywhere
template <class Scalar, class Value>
void fill(MVOf<Scalar>& v, const Value& value) {
  for (std::size_t j = 0; j < v.getNumVectors(); ++j) {
    for (std::size_t i = 0; i < v.getLocalLength(); ++i) {
      v.replaceLocalValue(static_cast<DefaultLocalOrdinal>(i), j, value(unknownAt(*v.getMap(), i), j));
    }
  }
}

/// All entries of a kernel, each evaluated once.
template <class Scalar>
class DenseTwin {
 public:
  DenseTwin(const EntryKernel<Scalar>& kernel, int n) : n_(n), entries_(static_cast<std::size_t>(n) * n) {
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        entries_[static_cast<std::size_t>(i) * n + j] = Complex(kernel.entry(i, j));
      }
    }
  }
  int size() const { return n_; }
  /// Of op(A).
  Complex entry(int i, int j, Teuchos::ETransp mode) const {
    const Complex entry = mode == Teuchos::NO_TRANS ? at(i, j) : at(j, i);
    return mode == Teuchos::CONJ_TRANS ? std::conj(entry) : entry;
  }

 private:
  Complex at(int i, int j) const { return entries_[static_cast<std::size_t>(i) * n_ + j]; }

  int n_;
  std::vector<Complex> entries_;
};

/// Y = alpha op(A) X + beta Y against the sums over all entries, for two vectors. Relative, in the Euclidean norm.
template <class Scalar>
double errorOf(const HMatrixOperator<Scalar>& A, const DenseTwin<Scalar>& twin, Teuchos::ETransp mode, Scalar alpha,
               Scalar beta) {
  MVOf<Scalar> x(A.getDomainMap(), 2), y(A.getRangeMap(), 2);
  fill<Scalar>(x, [](int i, std::size_t j) { return valueAt<Scalar>(i, j); });
  fill<Scalar>(y, [](int i, std::size_t j) { return valueAt<Scalar>(3 * i + 1, j); });
  A.apply(x, y, mode, alpha, beta);
  double squares[2] = {0, 0}, all[2];  // sums, so that what is not a number shows
  const auto found = y.getLocalViewHost(Tpetra::Access::ReadOnly);
  for (std::size_t j = 0; j < y.getNumVectors(); ++j) {
    for (std::size_t i = 0; i < y.getLocalLength(); ++i) {
      const int row = unknownAt(*y.getMap(), i);
      Complex sum = 0;
      for (int k = 0; k < twin.size(); ++k) {
        sum += twin.entry(row, k, mode) * Complex(valueAt<Scalar>(k, j));
      }
      sum = Complex(alpha) * sum + Complex(beta) * Complex(valueAt<Scalar>(3 * row + 1, j));
      squares[0] += std::norm(sum - Complex(static_cast<Scalar>(found(i, j))));
      squares[1] += std::norm(sum);
    }
  }
  MPI_Allreduce(squares, all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return std::sqrt(all[0] / all[1]);
}

/// Products of all modes, of the operator and of one that was saved and loaded.
template <class Scalar>
void expectProducts(const EntryKernel<Scalar>& kernel, const ClusterTree& tree, HMatrixOptions options) {
  const HMatrixOperator<Scalar> made(Tpetra::getDefaultComm(), tree, kernel, options);
  const test::SharedFolder folder;
  made.save(folder.prefix("matrix"));
  const auto loaded = HMatrixOperator<Scalar>::load(Tpetra::getDefaultComm(), folder.prefix("matrix"));
  EXPECT_EQ(made.report().bytes, loaded->report().bytes);
  const DenseTwin<Scalar> twin(kernel, tree.size());
  for (const auto* A : std::initializer_list<const HMatrixOperator<Scalar>*>{&made, loaded.get()}) {
    EXPECT_EQ(A->report().isHalf, options.halfIfSymmetric);
    for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS, Teuchos::CONJ_TRANS}) {
      EXPECT_LE(errorOf(*A, twin, mode, Scalar(1), Scalar(0)), 10 * options.lowRank.accuracy);
      EXPECT_LE(errorOf(*A, twin, mode, Number<Scalar>::of(-2, 0.5), Number<Scalar>::of(3, -1)),
                10 * options.lowRank.accuracy);
    }
  }
}

HMatrixOptions accurate(double accuracy, bool half) {
  HMatrixOptions options;
  options.lowRank.accuracy = accuracy;
  options.halfIfSymmetric = half;
  return options;
}

TEST(ScalarOperator, multipliesFloat) {
  const auto points = test::spiralOnSphere(600);
  const auto kernel = test::distanceKernel<float>(
      points, points, [](double r) { return static_cast<float>(1 / r); }, 20.0F);
  const ClusterTree tree(points, {}, {20});
  for (const bool half : {false, true}) {
    expectProducts<float>(kernel, tree, accurate(1e-4, half));
  }
}

/// Not symmetric: a transposed product is another one.
TEST(ScalarOperator, multipliesComplexAndConjugatesWhereAsked) {
  const auto points = test::spiralOnSphere(600);
  const auto entry = [&](int i, int j) -> Complex {
    const double r = i == j ? 1.0 : norm(points[i] - points[j]);
    return i == j ? Complex(20, 7) : std::exp(Complex(0, 3 * r)) / r * (1 + 0.5 * points[j].z);
  };
  const FunctionKernel<Complex, decltype(entry)> kernel(entry);
  expectProducts<Complex>(kernel, ClusterTree(points, {}, {20}), accurate(1e-6, false));
}

/// Symmetric, not Hermitian: half of it is stored without conjugation.
TEST(ScalarOperator, storesHalfOfASymmetricComplexMatrix) {
  const auto points = test::spiralOnSphere(600);
  const auto kernel = test::distanceKernel<Complex>(
      points, points, [](double r) { return std::exp(Complex(0, 3 * r)) / r; }, Complex(20, 7));
  expectProducts<Complex>(kernel, ClusterTree(points, {}, {20}), accurate(1e-6, true));
}

/// Sound waves around a sphere.
TEST(ScalarOperator, multipliesHelmholtzSingleLayer) {
  const TriangleMesh mesh = sphereMesh(700);
  const HelmholtzSingleLayer kernel(mesh, 2);
  expectProducts<Complex>(kernel, ClusterTree(centroidsOf(mesh), boxesOf(mesh), {20}), accurate(1e-5, false));
}

}  // namespace
}  // namespace Komvos
