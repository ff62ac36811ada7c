// Types that the installed Tpetra need not be compiled for: float explicitly and complex implicitly, from the
// definitions of Tpetra and of Komvos, as a user would.
#include "Komvos_TpetraVector_def.hpp"
// Behind it:
#include <gtest/gtest.h>

#include <Tpetra_CrsMatrix_def.hpp>
#include <Tpetra_Details_getDiagCopyWithoutOffsets_def.hpp>
#include <Tpetra_Details_packCrsMatrix_def.hpp>
#include <Tpetra_Details_unpackCrsMatrixAndCombine_def.hpp>
#include <Tpetra_LocalCrsMatrixOperator_def.hpp>
#include <Tpetra_RowMatrix_def.hpp>
#include <complex>
#include <limits>
#include <string>
#include <vector>

#include "Komvos_Exchange_def.hpp"
#include "Komvos_NodeAwareCrsMatrix_def.hpp"
#include "Komvos_NodeAwareImport_def.hpp"
#include "support/tpetra_support.hpp"

#ifndef HAVE_TPETRA_INST_FLOAT
namespace Komvos {
KOMVOS_NODEAWAREIMPORT_SCALAR_INSTANT(float, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode)
KOMVOS_NODEAWARECRSMATRIX_INSTANT(float, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode)
}  // namespace Komvos
#endif

namespace {

using namespace KomvosTest;
using Complex = std::complex<double>;
using Komvos::NodeAwareCrsMatrix;
using Komvos::NodeAwareImport;
using Komvos::RouteChoice;
template <class Scalar>
using MatrixOf = Tpetra::CrsMatrix<Scalar, LO, GO, Komvos::DefaultNode>;

static_assert(Komvos::Impl::travelsAsBytes<float> && Komvos::Impl::travelsAsBytes<Kokkos::complex<double>>);
static_assert(!Komvos::Impl::travelsAsBytes<std::string> && !Komvos::Impl::travelsAsBytes<std::vector<double>>);

template <class Scalar>
struct Noise {
  static Scalar of(unsigned long long key) { return static_cast<Scalar>(noise(key)); }
};
template <>
struct Noise<Complex> {
  static Complex of(unsigned long long key) { return {noise(key), noise(key + 7777)}; }
};

template <class Scalar>
void fillNoise(MultiVector<Scalar>& vector, unsigned seed) {
  for (std::size_t j = 0; j < vector.getNumVectors(); ++j) {
    for (std::size_t i = 0; i < vector.getLocalLength(); ++i) {
      const auto gid = static_cast<unsigned long long>(vector.getMap()->getGlobalElement(static_cast<LO>(i)));
      vector.replaceLocalValue(static_cast<LO>(i), j, Noise<Scalar>::of(1000003 * gid + 131 * j + seed));
    }
  }
}

template <class Scalar>
void expectNear(const MultiVector<Scalar>& theirs, const MultiVector<Scalar>& ours, const std::string& what) {
  const std::vector<Scalar> a = entries(theirs), b = entries(ours);
  ASSERT_EQ(a.size(), b.size()) << what;
  const double bound =
      100 * std::numeric_limits<decltype(std::abs(Scalar()))>::epsilon();  // sums of some tens of numbers up to 1
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_LE(std::abs(a[i] - b[i]), bound) << what << ", entry " << i << ": " << a[i] << " and " << b[i];
  }
}

/// A ring with two neighbours on each side, and one entry far away.
template <class Scalar>
RCP<MatrixOf<Scalar>> ringMatrix(const TeuchosComm& comm) {
  const GO n = 30 * comm->getSize();
  const RCP<const Map> rows = rcp(new Map(n, 0, comm));
  const auto matrix = rcp(new MatrixOf<Scalar>(rows, 6));
  for (GO row = rows->getMinGlobalIndex(); row <= rows->getMaxGlobalIndex(); ++row) {
    for (const GO shift : {GO(0), GO(1), GO(2), n - 1, n - 2, n / 2}) {
      const GO column = (row + shift) % n;
      const Scalar value = Noise<Scalar>::of(static_cast<unsigned long long>(row * n + column));
      matrix->insertGlobalValues(row, Teuchos::tuple(column), Teuchos::tuple(value));
    }
  }
  matrix->fillComplete();
  return matrix;
}

template <class Work>
void onRoutes(const TeuchosComm& comm, const Work& work) {
  const NamedTopology pairs{"pairs", Komvos::NodeTopology::uniform(comm->getSize(), 2)};
  for (const RouteChoice& route : {RouteChoice::standard, RouteChoice::threeStep}) {
    for (const Komvos::IntraNode onNode : {Komvos::IntraNode::messages, Komvos::IntraNode::sharedMemory}) {
      SCOPED_TRACE(toString(route) + ", " + toString(onNode));
      work(optionsFor(pairs, route, onNode));
    }
  }
}

template <class Scalar>
class ScalarTypes : public testing::Test {};
using Types = testing::Types<float, Complex>;
TYPED_TEST_SUITE(ScalarTypes, Types);

TYPED_TEST(ScalarTypes, ImportsAndExportsMoveWhatTpetraMoves) {
  using Scalar = TypeParam;
  const auto comm = Tpetra::getDefaultComm();
  const MapPair maps = makeMaps(mapKinds()[1], 4, comm);
  const Tpetra::Import<> import(maps.owned, maps.overlapping);
  onRoutes(comm, [&](const Komvos::ExchangeOptions& options) {
    const NodeAwareImport<> halo(import, options);
    MultiVector<Scalar> owned(maps.owned, 3), theirs(maps.overlapping, 3), ours(maps.overlapping, 3);
    fillNoise(owned, 1);
    theirs.doImport(owned, import, Tpetra::INSERT);
    halo.doImport(owned, ours, Tpetra::INSERT);
    EXPECT_EQ(entries(theirs), entries(ours));
    fillNoise(theirs, 2);
    MultiVector<Scalar> theirSums(maps.owned, 3), ourSums(maps.owned, 3);
    theirSums.doExport(theirs, import, Tpetra::ADD_ASSIGN);
    halo.doExport(theirs, ourSums, Tpetra::ADD_ASSIGN);
    expectNear(theirSums, ourSums, "export");
  });
}

TYPED_TEST(ScalarTypes, MatricesApplyAsTpetraDoesAlsoConjugated) {
  using Scalar = TypeParam;
  const auto comm = Tpetra::getDefaultComm();
  const auto matrix = ringMatrix<Scalar>(comm);
  const Scalar alpha = Noise<Scalar>::of(5), beta = Noise<Scalar>::of(6);
  onRoutes(comm, [&](const Komvos::ExchangeOptions& options) {
    const auto nodeAware = Komvos::makeNodeAware(matrix, options);
    for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS, Teuchos::CONJ_TRANS}) {
      for (const std::size_t columns : {1, 2, 5}) {
        MultiVector<Scalar> x(matrix->getDomainMap(), columns), theirs(matrix->getRangeMap(), columns);
        fillNoise(x, 3);
        fillNoise(theirs, 4);
        MultiVector<Scalar> ours(theirs, Teuchos::Copy);
        matrix->apply(x, theirs, mode, alpha, beta);
        nodeAware->apply(x, ours, mode, alpha, beta);
        expectNear(theirs, ours, "mode " + std::to_string(mode) + ", " + std::to_string(columns) + " columns");
      }
    }
    MultiVector<Scalar> x(matrix->getDomainMap(), 1), b(matrix->getRangeMap(), 1), r(matrix->getRangeMap(), 1);
    fillNoise(x, 7);
    fillNoise(b, 8);
    MultiVector<Scalar> expected(b, Teuchos::Copy);
    matrix->apply(x, expected, Teuchos::NO_TRANS, Scalar(-1), Scalar(1));
    nodeAware->residual(x, b, r);
    expectNear(expected, r, "residual");
  });
}

/// A type that no Trilinos has vectors of.
TEST(ScalarTypesOfOurOwn, AnExchangeMovesShortNumbers) {
  const auto comm = Tpetra::getDefaultComm();
  const MapPair maps = makeMaps(mapKinds()[6], 4, comm);  // everybody needs everything
  const NamedTopology pairs{"pairs", Komvos::NodeTopology::uniform(comm->getSize(), 2)};
  const NodeAwareImport<> halo(Tpetra::Import<>(maps.owned, maps.overlapping),
                               optionsFor(pairs, RouteChoice::threeStep));
  using ShortExchange = Komvos::Exchange<short, NodeAwareImport<>::device_type>;
  const auto plan = std::make_shared<const Komvos::ExchangePlan>(halo.plan());
  ShortExchange exchange(MPI_COMM_WORLD, plan);
  using HostView = Kokkos::View<short**, Kokkos::LayoutLeft, NodeAwareImport<>::device_type>;
  const HostView owned("owned", plan->numOwned, 1), ghosts("ghosts", plan->numTarget, 1);
  const auto ownedHost = Kokkos::create_mirror_view(owned);
  for (int i = 0; i < plan->numOwned; ++i) {
    ownedHost(i, 0) = static_cast<short>(maps.owned->getGlobalElement(i) + 100);
  }
  Kokkos::deep_copy(owned, ownedHost);
  using execution_space = NodeAwareImport<>::execution_space;
  exchange.forward(execution_space(), ShortExchange::const_view(owned), ShortExchange::view(ghosts));
  Kokkos::fence();
  const auto ghostsHost = Kokkos::create_mirror_view(ghosts);
  Kokkos::deep_copy(ghostsHost, ghosts);
  EXPECT_EQ(comm->getSize() > 1, !plan->deliveries.empty());
  for (const auto& delivery : plan->deliveries) {
    const GO gid = maps.overlapping->getGlobalElement(static_cast<LO>(halo.numSame() + delivery.target));
    ASSERT_EQ(gid + 100, ghostsHost(delivery.target, 0));
  }
}

}  // namespace
