/// \file operator_test.cpp
/// Hierarchical matrices on many ranks.
#include <gtest/gtest.h>

#include <Teuchos_DefaultMpiComm.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_Import.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_HMatrixOperator.hpp"
#include "ranks_support.hpp"
#include "shared_folder.hpp"
#include "support/failing_kokkos.hpp"
#include "support/largest.hpp"

namespace Komvos {
namespace {

using Operator = HMatrixOperator<double>;
using test::GO;
using test::Map;
using test::MV;
using test::SharedFolder;
using test::valueAt;
using test::vectors;

/// In the user's order, with the user's distribution: blocks of neighbouring numbers.
Teuchos::RCP<const Map> userMap(int n) {
  return Teuchos::rcp(new Map(static_cast<Tpetra::global_size_t>(n), 0, Tpetra::getDefaultComm()));
}

/// Of the product, on all ranks, against the sums over all entries. Relative, in the largest entry.
template <class Kernel>
double errorOf(const MV& y, const Kernel& kernel, int n, bool transposed) {
  double worst[2] = {0, 0}, all[2];  // infinity for what is not a number, which no maximum sees
  const auto host = y.getLocalViewHost(Tpetra::Access::ReadOnly);
  for (std::size_t i = 0; i < host.extent(0); ++i) {
    const int row = static_cast<int>(y.getMap()->getGlobalElement(static_cast<int>(i)));
    for (std::size_t j = 0; j < host.extent(1); ++j) {
      double sum = 0;
      for (int k = 0; k < n; ++k) {
        sum += (transposed ? kernel.entry(k, row) : kernel.entry(row, k)) * valueAt(k, j);
      }
      const double error = std::abs(sum - host(i, j));
      worst[0] = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst[0], error);
      worst[1] = std::max(worst[1], std::abs(sum));
    }
  }
  MPI_Allreduce(worst, all, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all[0] / all[1];
}

/// Products of one and of three vectors, and transposed ones.
template <class Kernel>
void expectProducts(const Operator& A, const Kernel& kernel, int n, double bound) {
  for (const std::size_t count : {1, 3}) {
    const MV x = vectors(A.getDomainMap(), count);
    MV y(A.getRangeMap(), count);
    A.apply(x, y);
    EXPECT_LE(errorOf(y, kernel, n, false), bound);
    A.apply(x, y, Teuchos::TRANS);
    EXPECT_LE(errorOf(y, kernel, n, true), bound);
  }
}

struct Problem : test::SphereProblem {
  explicit Problem(int n) : SphereProblem(n, 20, 10.0) {}
};

HMatrixOptions accurate(double accuracy) {
  HMatrixOptions options;
  options.lowRank.accuracy = accuracy;
  return options;
}

TEST(HMatrixOperator, givesTheProductOfTheDenseMatrixOnAnyNumberOfRanks) {
  const int n = 1200;
  const Problem problem(n);
  const FunctionKernel<double, Problem> kernel(problem);
  for (const double accuracy : {1e-3, 1e-8}) {
    const Operator A(Tpetra::getDefaultComm(), problem.tree(), kernel, accurate(accuracy));
    EXPECT_EQ(A.getDomainMap()->getGlobalNumElements(), static_cast<Tpetra::global_size_t>(n));
    EXPECT_TRUE(A.getDomainMap()->isOneToOne());
    EXPECT_TRUE(A.hasTransposeApply());
    expectProducts(A, kernel, n, 10 * accuracy);
  }
}

/// All elements of the vectors on each rank, rank after rank.
MV wholeOf(const MV& distributed) {
  const auto& map = *distributed.getMap();
  const auto places = Teuchos::rcp(
      new Map(Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid(), Impl::localLength(map), 0, map.getComm()));
  const auto all = Teuchos::rcp(new Map(map.getGlobalNumElements(), 0, map.getComm(), Tpetra::LocallyReplicated));
  MV whole(all, distributed.getNumVectors());
  whole.doImport(*distributed.offsetView(places, 0), Tpetra::Import<>(places, all), Tpetra::INSERT);
  return whole;
}

TEST(HMatrixOperator, multipliesWholeVectorsWithoutAGather) {
  const int n = 900;
  const auto points = test::spiralOnSphere(n);
  const auto kernel = test::distanceKernel<double>(
      points, points, [](double r) { return 1 / r; }, 20.0);
  const ClusterTree tree(points, {}, {20});
  for (const bool half : {false, true}) {
    HMatrixOptions options = accurate(1e-6);
    options.halfIfSymmetric = half;
    const Operator A(Tpetra::getDefaultComm(), tree, kernel, options);
    for (const std::size_t count : {1, 3, 1}) {
      const MV x = vectors(A.getDomainMap(), count);
      MV expected(A.getRangeMap(), count), y(A.getRangeMap(), count);
      A.apply(x, expected);
      y.putScalar(7);
      A.applyToWhole(wholeOf(x), y);
      y.update(-1, expected, 1);
      EXPECT_EQ(KomvosTest::largestEntry(y), 0) << "the same products in the same order";
    }
    const MV x = vectors(A.getDomainMap(), 3);
    const Teuchos::Array<std::size_t> some{2, 0};
    MV expected(A.getRangeMap(), 2), found(A.getRangeMap(), 2);
    A.apply(*x.subView(some()), expected);
    A.applyToWhole(*wholeOf(x).subView(some()), found);
    found.update(-1, expected, 1);
    EXPECT_EQ(KomvosTest::largestEntry(found), 0) << "scattered columns";
    MV y(A.getRangeMap(), 1), tooShort(userMap(n + 1), 1);
    EXPECT_THROW(A.applyToWhole(tooShort, y), PlanMismatch);
  }
}

TEST(HMatrixOperator, vectorsOfAnyDistributionComeByAnImport) {
  const int n = 700;
  const Problem problem(n);
  const FunctionKernel<double, Problem> kernel(problem);
  const Operator A(Tpetra::getDefaultComm(), problem.tree(), kernel, accurate(1e-6));
  const auto user = userMap(n);
  const Tpetra::Import<> toOperator(user, A.getDomainMap());
  MV x(A.getDomainMap(), 1), y(A.getRangeMap(), 1), yUser(user, 1);
  x.doImport(vectors(user, 1), toOperator, Tpetra::INSERT);
  A.apply(x, y);
  yUser.doExport(y, toOperator, Tpetra::INSERT);
  EXPECT_LE(errorOf(yUser, kernel, n, false), 1e-5);
}

TEST(HMatrixOperator, alphaBetaAndOneVectorForBoth) {
  const int n = 500;
  const Problem problem(n);
  const FunctionKernel<double, Problem> kernel(problem);
  const Operator A(Tpetra::getDefaultComm(), problem.tree(), kernel, accurate(1e-9));
  MV x = vectors(A.getDomainMap(), 2), expected(A.getRangeMap(), 2);
  A.apply(x, expected);
  expected.update(0.25, x, -3.0);
  MV y(A.getRangeMap(), 2);
  Tpetra::deep_copy(y, x);
  A.apply(x, y, Teuchos::NO_TRANS, -3, 0.25);
  y.update(-1, expected, 1);
  EXPECT_LE(KomvosTest::largestEntry(y), 1e-9);
  A.apply(x, expected);
  A.apply(x, x);
  x.update(-1, expected, 1);
  EXPECT_EQ(KomvosTest::largestEntry(x), 0);
}

TEST(HMatrixOperator, blocksAreThoseOfOneRankAndBytesAreEven) {
  const int n = 4000;
  const Problem problem(n);
  const FunctionKernel<double, Problem> kernel(problem);
  const Operator A(Tpetra::getDefaultComm(), problem.tree(), kernel, accurate(1e-4));
  const HMatrix<double> whole(problem.tree(), problem.tree(), kernel, accurate(1e-4));
  const HMatrixOperatorReport& report = A.report();
  EXPECT_EQ(report.numLowRank, whole.report().numLowRank);
  EXPECT_EQ(report.numDense, whole.report().numDense);
  EXPECT_EQ(report.bytes, whole.report().bytes);
  EXPECT_EQ(report.blocksOfRank, whole.report().blocksOfRank);
  EXPECT_DOUBLE_EQ(report.compression, whole.report().compression);
  EXPECT_LE(report.imbalance(), 1.05);
  const auto& map = *A.getDomainMap();
  for (std::size_t r = 0; r < report.gatheredOfRank.size(); ++r) {
    EXPECT_LE(report.gatheredOfRank[r], n);
  }
  if (map.getComm()->getSize() == 1) {
    EXPECT_EQ(report.gatheredOfRank[0], 0);
  }
}

/// Global index i is unknown i, but ranks have an order of their own: as long, and still wrong.
TEST(HMatrixOperator, refusesVectorsInAnotherOrder) {
  const int n = 600;
  const Problem problem(n);
  const FunctionKernel<double, Problem> kernel(problem);
  const Operator A(Tpetra::getDefaultComm(), problem.tree(), kernel, accurate(1e-6));
  const auto& map = *A.getDomainMap();
  const auto reversed = test::copyOf(map, true), copied = test::copyOf(map, false);
  MV x = vectors(A.getDomainMap(), 1), y(A.getRangeMap(), 1);
  MV other = vectors(reversed, 1);
  for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
    EXPECT_THROW(A.apply(other, y, mode), PlanMismatch);
    EXPECT_THROW(A.apply(x, other, mode), PlanMismatch);
  }
  EXPECT_THROW(A.applyToWhole(wholeOf(x), other), PlanMismatch);
  if (map.getComm()->getSize() == 1) {
    MV natural = vectors(userMap(n), 1);
    EXPECT_THROW(A.apply(natural, y), PlanMismatch);
  }
  MV same(copied, 1);
  A.apply(vectors(copied, 1), same);
  EXPECT_LE(errorOf(same, kernel, n, false), 1e-5);
}

TEST(HMatrixOperator, countsWhatComesAndWhatIsSentBack) {
  const int n = 900;
  const Problem problem(n);
  const FunctionKernel<double, Problem> kernel(problem);
  const ClusterTree tree = problem.tree();
  const Operator A(Tpetra::getDefaultComm(), tree, kernel, accurate(1e-4));
  const auto& map = *A.getDomainMap();
  std::vector<char> rows(n), columns(n);
  for (const Block& block : A.blocks()) {
    std::fill(rows.begin() + block.rowBegin, rows.begin() + block.rowEnd, 1);
    std::fill(columns.begin() + block.columnBegin, columns.begin() + block.columnEnd, 1);
  }
  std::int64_t gathered = 0, sentBack = 0;
  for (int place = 0; place < n; ++place) {
    const bool isRemote = !map.isNodeGlobalElement(tree.order()[place]);
    gathered += columns[place] && isRemote ? 1 : 0;
    sentBack += rows[place] && isRemote ? 1 : 0;
  }
  const int rank = map.getComm()->getRank();
  EXPECT_EQ(gathered, A.report().gatheredOfRank[rank]);
  EXPECT_EQ(sentBack, A.report().sentBackOfRank[rank]);
}

TEST(HMatrixOperator, givesTheSameBitsEachTime) {
  const Problem problem(900);
  const FunctionKernel<double, Problem> kernel(problem);
  const auto product = [&] {
    const Operator A(Tpetra::getDefaultComm(), problem.tree(), kernel);
    MV y(A.getRangeMap(), 1);
    for (int i = 0; i < 20; ++i) {
      A.apply(vectors(A.getDomainMap(), 1), y);
    }
    return y;
  };
  MV first = product();
  first.update(-1, product(), 1);
  EXPECT_EQ(KomvosTest::largestEntry(first), 0);
}

TEST(HMatrixOperator, storesLessOfASymmetricMatrixAndInFewerBytes) {
  const int n = 1500;
  const auto points = test::spiralOnSphere(n);
  const auto kernel = test::distanceKernel<double>(
      points, points, [](double r) { return std::exp(-r) / r; }, 20.0);
  const ClusterTree tree(points, {}, {20});
  const double accuracy = 1e-5;
  HMatrixOptions plainOptions = accurate(accuracy);
  plainOptions.storage = Storage::Whole;
  const Operator plain(Tpetra::getDefaultComm(), tree, kernel, plainOptions);
  for (const auto storage : {Storage::Whole, Storage::Reduced}) {
    for (const bool half : {false, true}) {
      HMatrixOptions options = accurate(accuracy);
      options.storage = storage;
      options.halfIfSymmetric = half;
      const Operator A(Tpetra::getDefaultComm(), tree, kernel, options);
      EXPECT_LE(static_cast<double>(A.report().bytes), (half ? 0.56 : 1.0) * (storage == Storage::Whole ? 1.0 : 0.5) *
                                                           static_cast<double>(plain.report().bytes));
      EXPECT_LE(A.report().imbalance(), 1.1);
      expectProducts(A, kernel, n, 10 * accuracy);
    }
  }
}

TEST(HMatrixOperator, hasWorkWhileValuesArrive) {
  const Problem problem(2000);
  const FunctionKernel<double, Problem> kernel(problem);
  const Operator A(Tpetra::getDefaultComm(), problem.tree(), kernel);
  EXPECT_GT(A.ownMatrix().bytesRead(), 0);
  EXPECT_EQ(A.ownMatrix().bytesRead() + A.otherMatrix().bytesRead(), A.bytesRead());
  EXPECT_EQ(A.otherMatrix().bytesRead() > 0, A.getDomainMap()->getComm()->getSize() > 1);
  EXPECT_EQ(A.blocks().size(), A.ownMatrix().blocks().size() + A.otherMatrix().blocks().size());
}

TEST(HMatrixOperator, worksWithFewerUnknownsThanRanks) {
  for (const int n : {1, 2, 5}) {
    const Problem problem(n);
    const FunctionKernel<double, Problem> kernel(problem);
    HMatrixOptions options;
    options.storage = Storage::Whole;
    const Operator A(Tpetra::getDefaultComm(), problem.tree(), kernel, options);
    MV y(A.getRangeMap(), 1);
    A.apply(vectors(A.getDomainMap(), 1), y);
    EXPECT_LE(errorOf(y, kernel, n, false), 1e-14);
  }
}

TEST(HMatrixOperator, anErrorOnOneRankIsThrownOnAll) {
  const Problem problem(600);
  const int rank = Tpetra::getDefaultComm()->getRank(), size = Tpetra::getDefaultComm()->getSize();
  const auto entry = [&](int i, int j) -> double {
    if (rank == size - 1) {
      throw BadInput("the kernel of the last rank");
    }
    return problem(i, j);
  };
  const FunctionKernel<double, decltype(entry)> kernel(entry);
  EXPECT_THROW(Operator(Tpetra::getDefaultComm(), problem.tree(), kernel), BadInput);
  const FunctionKernel<double, Problem> good(problem);
  EXPECT_THROW(Operator(Tpetra::getDefaultComm(), problem.tree(), good, accurate(2)), BadInput);
  const Operator A(Tpetra::getDefaultComm(), problem.tree(), good);
  MV x(A.getDomainMap(), 1), wrong(userMap(601), 1);
  EXPECT_THROW(A.apply(wrong, x), PlanMismatch);
}

TEST(HMatrixOperator, nobodyWaitsForARankThatThrows) {
  const int n = 600, rank = Tpetra::getDefaultComm()->getRank();
  const Problem problem(n);
  const FunctionKernel<double, Problem> kernel(problem);
  const Operator A(Tpetra::getDefaultComm(), problem.tree(), kernel, accurate(1e-6));
  const auto self = Teuchos::rcp(new Teuchos::MpiComm<int>(MPI_COMM_SELF));
  const MV wrong(Teuchos::rcp(new Map(n + 1, 0, self)), 1), x = vectors(A.getDomainMap(), 1);
  for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
    MV y(A.getRangeMap(), 1);
    bool threw = false;
    try {
      A.apply(rank == 0 ? wrong : x, y, mode);
    } catch (const PlanMismatch&) {
      threw = true;
    }
    EXPECT_TRUE(threw || rank != 0);
    A.apply(x, y, mode);
    EXPECT_LE(errorOf(y, kernel, n, mode == Teuchos::TRANS), 1e-5);
  }
}

TEST(HMatrixOperator, nobodyWaitsForARankWithoutMemory) {
  using KomvosTest::Thrown;
  const int n = 300, size = Tpetra::getDefaultComm()->getSize();
  const Problem problem(n);
  const FunctionKernel<double, Problem> kernel(problem);
  const Operator A(Tpetra::getDefaultComm(), problem.tree(), kernel, accurate(1e-6));
  for (const int guilty : {0, size - 1}) {
    for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
      for (const double beta : {0.0, 1.0}) {
        std::size_t count = 3;
        Teuchos::RCP<MV> x, y;
        const auto renew = [&] {  // other work vectors each time
          count = 5 - count;
          x = Teuchos::rcp(new MV(vectors(A.getDomainMap(), count)));
          y = Teuchos::rcp(new MV(A.getRangeMap(), count));
        };
        renew();
        const int failures = KomvosTest::failInTurn(
            guilty, "", [&] { A.apply(*x, *y, mode, 1.0, beta); },
            [&](Thrown) {
              A.apply(*x, *y, mode);
              EXPECT_LE(errorOf(*y, kernel, n, mode == Teuchos::TRANS), 1e-5);
              renew();
            });
        EXPECT_GT(failures, 5);
      }
    }
  }
}

TEST(HMatrixOperator, nobodyWaitsForARankWithoutMemoryForWholeVectors) {
  const int n = 300, size = Tpetra::getDefaultComm()->getSize();
  const Problem problem(n);
  const FunctionKernel<double, Problem> kernel(problem);
  for (const int guilty : {0, size - 1}) {
    const Operator A(Tpetra::getDefaultComm(), problem.tree(), kernel, accurate(1e-6));
    std::size_t count = 3;
    Teuchos::RCP<MV> whole, expected, y;
    const auto renew = [&] {  // other work vectors each time
      count = 5 - count;
      const MV x = vectors(A.getDomainMap(), count);
      whole = Teuchos::rcp(new MV(wholeOf(x)));
      expected = Teuchos::rcp(new MV(A.getRangeMap(), count));
      y = Teuchos::rcp(new MV(A.getRangeMap(), count));
      A.apply(x, *expected);
      MV narrow(A.getRangeMap(), 1);
      A.apply(vectors(A.getDomainMap(), 1), narrow);
    };
    const auto apply = [&] { A.applyToWhole(*whole, *y); };
    const auto expectProduct = [&] {
      y->update(-1, *expected, 1);
      EXPECT_EQ(KomvosTest::largestEntry(*y), 0);
    };
    renew();
    // First what is made once: Tpetra finds owners of columns meanwhile, and would wait itself.
    EXPECT_GT(KomvosTest::failInTurn(guilty, "Komvos", apply, [](KomvosTest::Thrown) {}), 2);
    expectProduct();
    renew();
    const auto check = [&](KomvosTest::Thrown) {
      apply();
      expectProduct();
      renew();
    };
    EXPECT_GT(KomvosTest::failInTurn(guilty, "", apply, check), 5);
  }
}

TEST(HMatrixOperator, aRankWithoutMemoryForItsPartIsAnErrorOnAll) {
  const Problem problem(200);
  const FunctionKernel<double, Problem> kernel(problem);
  const auto comm = Tpetra::getDefaultComm();
  Teuchos::RCP<Operator> A;
  const int failures = KomvosTest::failInTurn(
      comm->getSize() - 1, "Komvos",
      [&] {
        A = Teuchos::null;
        A = Teuchos::rcp(new Operator(comm, problem.tree(), kernel, accurate(1e-6)));
      },
      KomvosTest::expectErrorOnAllOrNone);
  EXPECT_GT(failures, 5);
  expectProducts(*A, kernel, 200, 1e-5);
}

Teuchos::RCP<Operator> load(const std::string& prefix) { return Operator::load(Tpetra::getDefaultComm(), prefix); }

/// What load() throws on this rank.
std::string refusalOf(const std::string& prefix) {
  try {
    load(prefix);
  } catch (const BadInput& error) {
    return error.what();
  }
  return {};
}

std::string bytesOf(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The largest difference between products, of both modes.
double differenceOf(const Operator& A, const Operator& B) {
  double worst = 0;
  for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
    const MV x = vectors(A.getDomainMap(), 3);
    MV y(A.getRangeMap(), 3), z(B.getRangeMap(), 3);
    A.apply(x, y, mode);
    B.apply(x, z, mode);
    y.update(-1, z, 1);
    worst = std::max(worst, KomvosTest::largestEntry(y));
  }
  return worst;
}

/// 1 / r, which is symmetric.
class SymmetricProblem {
 public:
  explicit SymmetricProblem(int n) : points_(test::spiralOnSphere(n)), tree_(points_, {}, {20}) {}
  const ClusterTree& tree() const { return tree_; }
  double operator()(int i, int j) const { return i == j ? 10.0 : 1 / norm(points_[i] - points_[j]); }

 private:
  std::vector<Point3> points_;
  ClusterTree tree_;
};

TEST(HMatrixOperatorFile, hasTheSameBits) {
  const SharedFolder folder;
  for (const int n : {2, 900}) {
    const SymmetricProblem problem(n);
    const FunctionKernel<double, SymmetricProblem> kernel(problem, true);
    for (const Storage storage : {Storage::Whole, Storage::Reduced}) {
      for (const bool isHalf : {false, true}) {
        HMatrixOptions options = accurate(1e-5);
        options.storage = storage;
        options.halfIfSymmetric = isHalf;
        const Operator A(Tpetra::getDefaultComm(), problem.tree(), kernel, options);
        const std::string prefix = folder.prefix("ball");
        A.save(prefix);
        const auto B = load(prefix);
        EXPECT_TRUE(A.getDomainMap()->isSameAs(*B->getDomainMap()));
        EXPECT_EQ(differenceOf(A, *B), 0);
        EXPECT_EQ(A.report().bytes, B->report().bytes);
        EXPECT_EQ(A.report().isHalf, B->report().isHalf);
        EXPECT_EQ(A.report().seconds, B->report().seconds);
        EXPECT_EQ(A.report().compression, B->report().compression);
        EXPECT_EQ(A.report().blocksOfRank, B->report().blocksOfRank);
        EXPECT_EQ(A.report().bytesOfRank, B->report().bytesOfRank);
        EXPECT_EQ(A.report().gatheredOfRank, B->report().gatheredOfRank);
        EXPECT_EQ(A.blocks().size(), B->blocks().size());
        EXPECT_EQ(folder.numFiles(), static_cast<std::size_t>(SharedFolder::size())) << "nothing unfinished is left";
      }
    }
  }
}

TEST(HMatrixOperatorFile, whatIsWrongWithOneFileIsThrownOnAllRanks) {
  const SharedFolder folder;
  const int last = SharedFolder::size() - 1;
  const bool isLast = SharedFolder::rank() == last;
  const Problem problem(500);
  const FunctionKernel<double, Problem> kernel(problem);
  const Operator A(Tpetra::getDefaultComm(), problem.tree(), kernel, accurate(1e-3));
  const std::string prefix = folder.prefix("ball");
  const auto path = SharedFolder::fileOf(prefix, last);
  A.save(prefix);
  const std::string bytes = isLast ? bytesOf(path) : std::string();
  const auto refusalWith = [&](const std::string& content) {
    if (isLast) {
      std::ofstream(path, std::ios::binary) << content;
    }
    return refusalOf(prefix);
  };
  for (const std::size_t lost : {1, 200}) {
    EXPECT_NE(refusalWith(bytes.substr(0, bytes.size() - std::min(lost, bytes.size()))).find(path.string()),
              std::string::npos);
  }
  EXPECT_NE(refusalWith(bytes + "!").find("behind its end"), std::string::npos);
  for (int piece = 0; piece < 20; ++piece) {
    std::string other = bytes;
    if (isLast) {
      char& byte = other[other.size() * piece / 20];
      byte = static_cast<char>(byte + 1);
    }
    EXPECT_NE(refusalWith(other).find(path.string()), std::string::npos) << piece;
  }
  EXPECT_EQ(refusalWith(bytes), "");
  if (isLast) {
    std::filesystem::remove(path);
  }
  const std::string missing = refusalOf(prefix);
  EXPECT_NE(missing.find(path.string()), std::string::npos) << missing;
  EXPECT_NE(missing.find("cannot read"), std::string::npos) << missing;
}

TEST(HMatrixOperatorFile, filesOfTwoSavesAreNotOneMatrix) {
  const SharedFolder folder;
  const int rank = SharedFolder::rank(), size = SharedFolder::size();
  const Problem problem(300);
  const FunctionKernel<double, Problem> kernel(problem);
  const Operator A(Tpetra::getDefaultComm(), problem.tree(), kernel, accurate(1e-3));
  const std::string first = folder.prefix("first"), second = folder.prefix("second");
  A.save(first);
  A.save(second);
  EXPECT_EQ(refusalOf(first), "");
  EXPECT_EQ(refusalOf(second), "");
  if (size == 1) {
    return;
  }
  if (rank == size - 1) {
    std::filesystem::rename(SharedFolder::fileOf(second, rank), SharedFolder::fileOf(first, rank));
  }
  EXPECT_NE(refusalOf(first).find("of another save"), std::string::npos) << refusalOf(first);
  A.save(first);
  EXPECT_EQ(refusalOf(first), "");
  if (rank == 0) {
    std::filesystem::rename(SharedFolder::fileOf(first, 1), SharedFolder::fileOf(first, 0));
    std::filesystem::copy(SharedFolder::fileOf(first, 0), SharedFolder::fileOf(first, 1));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_NE(refusalOf(first).find("the file of rank 1, not of rank 0"), std::string::npos) << refusalOf(first);
}

TEST(HMatrixOperatorFile, asManyRanksLoadAsSaved) {
  const SharedFolder folder;
  const int rank = SharedFolder::rank(), size = SharedFolder::size();
  const Problem problem(300);
  const FunctionKernel<double, Problem> kernel(problem);
  const std::string all = folder.prefix("all"), one = folder.prefix("one");
  const auto self = Teuchos::rcp(new Teuchos::MpiComm<int>(MPI_COMM_SELF));
  Operator(Tpetra::getDefaultComm(), problem.tree(), kernel, accurate(1e-3)).save(all);
  if (rank == 0) {
    Operator(self, problem.tree(), kernel, accurate(1e-3)).save(one);
    const auto loaded = Operator::load(self, one);
    EXPECT_EQ(loaded->getDomainMap()->getGlobalNumElements(), 300U);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (size == 1) {
    return;
  }
  const std::string more = refusalOf(one);
  EXPECT_NE(more.find("saved by 1 ranks, and loaded by " + std::to_string(size)), std::string::npos) << more;
  if (rank == 0) {
    try {
      Operator::load(self, all);
      ADD_FAILURE();
    } catch (const BadInput& error) {
      EXPECT_NE(std::string(error.what()).find("saved by " + std::to_string(size) + " ranks, and loaded by 1"),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(HMatrixOperatorFile, anErrorOfOneRankLeavesTheFilesOfTheLastSave) {
  const SharedFolder folder;
  const int rank = SharedFolder::rank(), last = SharedFolder::size() - 1;
  const Problem problem(300);
  const FunctionKernel<double, Problem> kernel(problem);
  const Operator A(Tpetra::getDefaultComm(), problem.tree(), kernel, accurate(1e-3));
  const std::string prefix = folder.prefix("ball");
  const std::filesystem::path path = SharedFolder::fileOf(prefix, last), aside = path.string() + ".aside";
  A.save(prefix);
  const std::string before = bytesOf(SharedFolder::fileOf(prefix, rank));
  if (rank == last) {
    std::filesystem::rename(path, aside);
    std::filesystem::create_directory(path);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  try {
    A.save(prefix);
    ADD_FAILURE();
  } catch (const BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("cannot write '" + path.string()), std::string::npos) << error.what();
  }
  EXPECT_EQ(folder.numFiles(), static_cast<std::size_t>(last) + 2) << "nothing unfinished is left";
  if (rank == last) {
    std::filesystem::remove(path);
    std::filesystem::rename(aside, path);
  }
  EXPECT_TRUE(bytesOf(SharedFolder::fileOf(prefix, rank)) == before);
  EXPECT_EQ(differenceOf(A, *load(prefix)), 0);
  EXPECT_THROW(A.save(folder.prefix("no/such/folder")), BadInput);
}

}  // namespace
}  // namespace Komvos
