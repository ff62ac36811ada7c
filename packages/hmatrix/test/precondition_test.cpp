/// \file precondition_test.cpp
/// Preconditioners on many ranks, against plain dense ones.
#include <gtest/gtest.h>

#include <Teuchos_DefaultMpiComm.hpp>
#include <Tpetra_Core.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_HMatrixOperator.hpp"
#include "Komvos_HMatrixPreconditioner.hpp"
#include "ranks_support.hpp"
#include "support/failing_kokkos.hpp"
#include "support/largest.hpp"

namespace Komvos {
namespace {

using Preconditioner = HMatrixPreconditioner<double>;
using Options = HMatrixPreconditionerOptions;
using Kind = HMatrixPreconditionerKind;
using test::GO;
using test::Map;
using test::MV;
using test::valueAt;
using test::vectors;
using Places = std::vector<int>;

struct Problem : test::SphereProblem {
  explicit Problem(int n) : SphereProblem(n, 10, 20.0) {}
};
using Kernel = FunctionKernel<double, Problem>;

/// A map with the tree's places cut at n (r / ranks)^2: unevenly, and through clusters.
Teuchos::RCP<const Map> unevenMap(const ClusterTree& tree, int n) {
  const auto comm = Tpetra::getDefaultComm();
  const auto cut = [&](int r) {
    const double part = static_cast<double>(r) / comm->getSize();
    return static_cast<int>(std::lround(n * part * part));
  };
  std::vector<GO> indices(tree.order().begin() + cut(comm->getRank()), tree.order().begin() + cut(comm->getRank() + 1));
  return Teuchos::rcp(new Map(n, Teuchos::arrayViewFromVector(std::as_const(indices)), 0, comm));
}

/// Solves A[unknowns, unknowns] y = x[unknowns] by elimination with row pivots.
template <class Entries>
std::vector<double> solved(const Entries& entries, const Places& unknowns, std::vector<double> y) {
  const std::size_t n = unknowns.size();
  std::vector<std::vector<double>> a(n, std::vector<double>(n));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      a[i][j] = entries(unknowns[i], unknowns[j]);
    }
  }
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k; i < n; ++i) {
      pivot = std::abs(a[i][k]) > std::abs(a[pivot][k]) ? i : pivot;
    }
    std::swap(a[k], a[pivot]);
    std::swap(y[k], y[pivot]);
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = a[i][k] / a[k][k];
      for (std::size_t j = k; j < n; ++j) {
        a[i][j] -= factor * a[k][j];
      }
      y[i] -= factor * y[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j) {
      y[k] -= a[k][j] * y[j];
    }
    y[k] /= a[k][k];
  }
  return y;
}

/// Own places [begin, end) of a block, and all that it solves for.
struct PlainBlock {
  int begin, end;
  Places places;
};

/// The blocks of the options, by looking at all clusters.
std::vector<PlainBlock> plainBlocks(const ClusterTree& tree, const Options& options) {
  const int size = options.kind == Kind::Overlapping ? options.ownSize : options.blockSize;
  std::vector<PlainBlock> blocks;
  std::vector<int> parent(tree.clusters().size(), -1);
  for (std::size_t c = 0; c < tree.clusters().size(); ++c) {
    const Cluster& cluster = tree.clusters()[c];
    if (!cluster.isLeaf()) {
      parent[cluster.child] = parent[cluster.child + 1] = static_cast<int>(c);
    }
    const bool isLargest = parent[c] < 0 || tree.clusters()[parent[c]].size() > size;
    if (cluster.size() > size || !isLargest) {
      continue;
    }
    std::vector<std::tuple<double, int, int>> near;
    for (const Cluster& leaf : tree.clusters()) {
      const double gap = distance(cluster.box, leaf.box);
      const bool isOwn = leaf.begin >= cluster.begin && leaf.end <= cluster.end;
      if (leaf.isLeaf() && !isOwn && options.kind == Kind::Overlapping &&
          gap <= options.overlap * cluster.box.diameter()) {
        near.emplace_back(gap, leaf.begin, leaf.end);
      }
    }
    std::sort(near.begin(), near.end());
    PlainBlock block{cluster.begin, cluster.end, Places(static_cast<std::size_t>(cluster.size()))};
    std::iota(block.places.begin(), block.places.end(), cluster.begin);
    for (const auto& [gap, begin, end] : near) {
      if (static_cast<int>(block.places.size()) + end - begin > options.extendedSize) {
        break;
      }
      for (int place = begin; place < end; ++place) {
        block.places.push_back(place);
      }
    }
    blocks.push_back(std::move(block));
  }
  return blocks;
}

/// M x of all unknowns, by user number. \param blocks whose own places cover all
std::vector<double> plainProduct(const Problem& problem, const std::vector<PlainBlock>& blocks, std::size_t column) {
  std::vector<double> y(static_cast<std::size_t>(problem.size()));
  const auto& order = problem.tree().order();
  for (const PlainBlock& block : blocks) {
    Places unknowns;
    std::vector<double> x;
    for (const int place : block.places) {
      unknowns.push_back(order[place]);
      x.push_back(valueAt(order[place], column));
    }
    const auto solution = solved(problem, unknowns, x);
    for (std::size_t i = 0; i < unknowns.size(); ++i) {
      if (block.places[i] >= block.begin && block.places[i] < block.end) {
        y[unknowns[i]] = solution[i];
      }
    }
  }
  return y;
}

std::vector<PlainBlock> blocksOf(const Problem& problem, const Options& options) {
  if (options.kind == Kind::Diagonal) {
    std::vector<PlainBlock> blocks;
    for (int place = 0; place < problem.size(); ++place) {
      blocks.push_back({place, place + 1, {place}});
    }
    return blocks;
  }
  return plainBlocks(problem.tree(), options);
}

/// The block of this rank's unknowns, as if there were no others.
std::vector<PlainBlock> blockOfRank(const Problem& problem, const Map& map) {
  const auto& order = problem.tree().order();
  Places places;
  for (int place = 0; place < problem.size(); ++place) {
    if (map.isNodeGlobalElement(order[place])) {
      places.push_back(place);
    }
  }
  return {{0, problem.size(), places}};
}

/// The largest difference of this rank's entries.
double errorOf(const MV& y, const Problem& problem, const std::vector<PlainBlock>& blocks) {
  double worst = 0;
  for (std::size_t j = 0; j < y.getNumVectors(); ++j) {
    const auto expected = plainProduct(problem, blocks, j);
    const auto host = y.getLocalViewHost(Tpetra::Access::ReadOnly);
    for (std::size_t i = 0; i < host.extent(0); ++i) {
      const auto index = y.getMap()->getGlobalElement(static_cast<int>(i));
      worst = KomvosTest::largerOf(worst, std::abs(host(i, j) - expected[index]));
    }
  }
  return worst;
}

Options ofKind(Kind kind, int size = 60, double overlap = 0.4, int extendedSize = 150) {
  Options options;
  options.kind = kind;
  (kind == Kind::Overlapping ? options.ownSize : options.blockSize) = size;
  options.overlap = overlap;
  options.extendedSize = extendedSize;
  return options;
}

Options tightHodlr() {
  Options options;
  options.kind = Kind::Hodlr;
  options.accuracy = 1e-11;
  options.leafSize = 20;
  return options;
}

TEST(HMatrixPreconditioner, isThatOfThePlainDenseOneOnAnyNumberOfRanks) {
  const Problem problem(400);
  const Kernel kernel(problem);
  const HMatrixOperator<double> A(Tpetra::getDefaultComm(), problem.tree(), kernel);
  for (const auto& map : {A.getDomainMap(), unevenMap(problem.tree(), problem.size())}) {
    for (const Options& options : {ofKind(Kind::Diagonal), ofKind(Kind::BlockJacobi), ofKind(Kind::BlockJacobi, 1000),
                                   ofKind(Kind::Overlapping), ofKind(Kind::Overlapping, 15, 1.5, 60)}) {
      const Preconditioner M(map, problem.tree(), kernel, options);
      EXPECT_TRUE(M.getDomainMap()->isSameAs(*map));
      EXPECT_FALSE(M.hasTransposeApply());
      for (const std::size_t count : {1, 3}) {
        MV y(map, count);
        M.apply(vectors(map, count), y);
        EXPECT_LE(errorOf(y, problem, blocksOf(problem, options)), 1e-13) << static_cast<int>(options.kind);
      }
    }
  }
}

TEST(HMatrixPreconditioner, reportsTheBytesOfItsFactors) {
  const Problem problem(400);
  const Kernel kernel(problem);
  const auto map = unevenMap(problem.tree(), problem.size());
  for (const Options& options : {ofKind(Kind::Diagonal), ofKind(Kind::BlockJacobi), ofKind(Kind::Overlapping)}) {
    std::size_t values = 0, most = 0;
    for (const PlainBlock& block : blocksOf(problem, options)) {
      values += static_cast<std::size_t>(block.end - block.begin) * block.places.size();
      most = std::max(most, block.places.size());
    }
    const Preconditioner M(map, problem.tree(), kernel, options);
    EXPECT_EQ(M.report().bytes, static_cast<std::int64_t>(values * sizeof(double)));
    EXPECT_EQ(M.report().largestBlock, static_cast<int>(most));
    EXPECT_EQ(M.report().largestRank, 0);
  }
  const Preconditioner tight(map, problem.tree(), kernel, tightHodlr());
  Options rough = tightHodlr();
  rough.accuracy = 0.1;
  const Preconditioner loose(map, problem.tree(), kernel, rough);
  EXPECT_LT(loose.report().bytes, tight.report().bytes);
  EXPECT_LT(loose.report().largestRank, tight.report().largestRank);
  EXPECT_LE(tight.report().largestBlock, 20);
}

TEST(HMatrixPreconditioner, hodlrOfTightAccuracyInvertsThePartOfEachRank) {
  const Problem problem(500);
  const Kernel kernel(problem);
  const HMatrixOperator<double> A(Tpetra::getDefaultComm(), problem.tree(), kernel);
  for (const auto& map : {A.getDomainMap(), unevenMap(problem.tree(), problem.size())}) {
    const Preconditioner M(map, problem.tree(), kernel, tightHodlr());
    for (const std::size_t count : {1, 3}) {
      MV y(map, count);
      M.apply(vectors(map, count), y);
      EXPECT_LE(errorOf(y, problem, blockOfRank(problem, *map)), 1e-9);
    }
  }
}

TEST(HMatrixPreconditioner, hodlrTakesBlocksThatAreNotOfLowRankAsTheyAre) {
  const int n = 150;
  const Problem problem(n);
  const auto rough = [&](int i, int j) { return i == j ? 50.0 : valueAt(7919L * i + 104729L * j, 0); };
  const FunctionKernel<double, decltype(rough)> kernel(rough);
  const auto map = unevenMap(problem.tree(), n);
  const Preconditioner M(map, problem.tree(), kernel, tightHodlr());
  const MV x = vectors(map, 1);
  MV y(map, 1);
  M.apply(x, y);
  const auto& order = problem.tree().order();
  Places unknowns;
  std::vector<double> right;
  for (const int unknown : order) {
    if (map->isNodeGlobalElement(unknown)) {
      unknowns.push_back(unknown);
      right.push_back(valueAt(unknown, 0));
    }
  }
  const auto expected = solved(rough, unknowns, right);
  const auto host = y.getLocalViewHost(Tpetra::Access::ReadOnly);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(host(i, 0), expected[i], 1e-11);
  }
}

TEST(HMatrixPreconditioner, alphaBetaAndOneVectorForBoth) {
  const Problem problem(300);
  const Kernel kernel(problem);
  const auto map = unevenMap(problem.tree(), problem.size());
  for (const Options& options :
       {ofKind(Kind::Diagonal), ofKind(Kind::BlockJacobi), ofKind(Kind::Overlapping), tightHodlr()}) {
    const Preconditioner M(map, problem.tree(), kernel, options);
    const std::size_t count = 19;  // more than kernels take at once
    const MV x = vectors(map, count);
    MV product(map, count), expected(map, count), y(x, Teuchos::Copy);
    product.putScalar(std::numeric_limits<double>::quiet_NaN());  // with beta = 0, Y is not read
    M.apply(x, product);
    expected.update(-3, product, 0.25, x, 0);
    M.apply(x, y, Teuchos::NO_TRANS, -3, 0.25);
    y.update(-1, expected, 1);
    EXPECT_LE(KomvosTest::largestEntry(y), 1e-13);
    MV both(x, Teuchos::Copy);
    M.apply(both, both);
    both.update(-1, product, 1);
    EXPECT_EQ(KomvosTest::largestEntry(both), 0);
    // Columns that are not neighbours in memory.
    std::vector<std::size_t> some{0, 2, 7};
    const auto columns = Teuchos::arrayViewFromVector(std::as_const(some));
    MV apart(map, count);
    M.apply(*x.subView(columns), *apart.subViewNonConst(columns));
    apart.getVectorNonConst(7)->update(-1, *product.getVector(7), 1);
    EXPECT_LE(KomvosTest::largestEntry(*apart.getVector(7)), 1e-14);
    EXPECT_EQ(KomvosTest::largestEntry(*apart.getVector(1)), 0);
  }
}

TEST(HMatrixPreconditioner, worksWithFewerUnknownsThanRanks) {
  for (const int n : {1, 2, 5}) {
    const Problem problem(n);
    const Kernel kernel(problem);
    const HMatrixOperator<double> A(Tpetra::getDefaultComm(), problem.tree(), kernel);
    for (const Options& options :
         {ofKind(Kind::Diagonal), ofKind(Kind::BlockJacobi), ofKind(Kind::Overlapping), tightHodlr()}) {
      const Preconditioner M(A.getDomainMap(), problem.tree(), kernel, options);
      MV y(A.getDomainMap(), 1);
      M.apply(vectors(A.getDomainMap(), 1), y);
      const auto blocks =
          options.kind == Kind::Hodlr ? blockOfRank(problem, *A.getDomainMap()) : blocksOf(problem, options);
      EXPECT_LE(errorOf(y, problem, blocks), 1e-13);
    }
  }
}

/// \return what a constructor throws as BadInput
std::string refusal(const Teuchos::RCP<const Map>& map, const ClusterTree& tree, const EntryKernel<double>& kernel,
                    const Options& options) {
  try {
    const Preconditioner M(map, tree, kernel, options);
  } catch (const BadInput& thrown) {
    return thrown.what();
  }
  return {};
}

TEST(HMatrixPreconditioner, aSingularBlockOrABadEntryOnOneRankIsThrownOnAll) {
  const int n = 200;
  const Problem problem(n);
  const auto map = unevenMap(problem.tree(), n);
  const int bad = problem.tree().order()[n - 1], other = problem.tree().order()[n - 2];
  const auto twoEqualRows = [&](int i, int j) { return problem(i == bad ? other : i, j); };
  const auto notANumber = [&](int i, int j) {
    return i == bad && j == bad ? std::numeric_limits<double>::quiet_NaN() : problem(i, j);
  };
  const auto zeroOnTheDiagonal = [&](int i, int j) { return i == bad && j == bad ? 0 : problem(i, j); };
  const FunctionKernel<double, decltype(twoEqualRows)> singular(twoEqualRows);
  const FunctionKernel<double, decltype(notANumber)> notFinite(notANumber);
  const FunctionKernel<double, decltype(zeroOnTheDiagonal)> zero(zeroOnTheDiagonal);
  const std::string rank = "(rank " + std::to_string(Tpetra::getDefaultComm()->getSize() - 1) + ")";
  for (const Options& options : {ofKind(Kind::BlockJacobi), ofKind(Kind::Overlapping), tightHodlr()}) {
    const std::string text = refusal(map, problem.tree(), singular, options);
    EXPECT_NE(text.find("block of places ["), std::string::npos) << text;
    EXPECT_NE(text.find("singular"), std::string::npos) << text;
    EXPECT_NE(text.find("(rank "), std::string::npos) << text;
  }
  for (const Options& options :
       {ofKind(Kind::Diagonal), ofKind(Kind::BlockJacobi), ofKind(Kind::Overlapping), tightHodlr()}) {
    const std::string text = refusal(map, problem.tree(), notFinite, options);
    EXPECT_NE(text.find("finite"), std::string::npos) << text;
    EXPECT_NE(text.find("(rank "), std::string::npos) << text;
  }
  EXPECT_NE(refusal(map, problem.tree(), zero, ofKind(Kind::Diagonal)).find(rank), std::string::npos);
}

TEST(HMatrixPreconditioner, refusesOptionsMapsAndTransposedProducts) {
  const Problem problem(300);
  const Kernel kernel(problem);
  const auto map = unevenMap(problem.tree(), problem.size());
  const auto with = [](const auto& change) {
    Options options = ofKind(Kind::Overlapping);
    change(options);
    return options;
  };
  for (const Options& wrong :
       {with([](Options& o) { o.blockSize = 0; }), with([](Options& o) { o.ownSize = 0; }),
        with([](Options& o) { o.extendedSize = o.ownSize - 1; }), with([](Options& o) { o.overlap = -1; }),
        with([](Options& o) { o.overlap = std::nan(""); }), with([](Options& o) { o.accuracy = 0; }),
        with([](Options& o) { o.accuracy = 1; }), with([](Options& o) { o.leafSize = 0; })}) {
    EXPECT_NE(refusal(map, problem.tree(), kernel, wrong), "");
  }
  const auto comm = Tpetra::getDefaultComm();
  const Options good = ofKind(Kind::Overlapping);
  EXPECT_NE(refusal(Teuchos::rcp(new Map(301, 0, comm)), problem.tree(), kernel, good), "");
  EXPECT_NE(refusal(Teuchos::rcp(new Map(300, 0, comm)), problem.tree(), kernel, good), "");
  const Preconditioner M(map, problem.tree(), kernel, good);
  MV x = vectors(map, 1), y(map, 1);
  EXPECT_THROW(M.apply(x, y, Teuchos::TRANS), BadInput);
  MV two(map, 2), wrong(Teuchos::rcp(new Map(5000, 0, comm)), 1);
  EXPECT_THROW(M.apply(x, two), PlanMismatch);
  EXPECT_THROW(M.apply(wrong, y), PlanMismatch);
  EXPECT_THROW(M.apply(x, wrong), PlanMismatch);
  MV reversed(test::copyOf(*map, true), 1);  // as long, in another order
  if (reversed.getLocalLength() > 1) {
    EXPECT_THROW(M.apply(reversed, y), PlanMismatch);
    EXPECT_THROW(M.apply(x, reversed), PlanMismatch);
  }
  M.apply(x, y);
  EXPECT_LE(errorOf(y, problem, blocksOf(problem, good)), 1e-13);
}

TEST(HMatrixPreconditioner, nobodyWaitsForARankThatThrows) {
  const int n = 300, rank = Tpetra::getDefaultComm()->getRank();
  const Problem problem(n);
  const Kernel kernel(problem);
  const auto map = unevenMap(problem.tree(), n);
  const auto self = Teuchos::rcp(new Teuchos::MpiComm<int>(MPI_COMM_SELF));
  const MV wrong(Teuchos::rcp(new Map(n + 1, 0, self)), 1), x = vectors(map, 1);
  for (const Options& options : {ofKind(Kind::BlockJacobi), ofKind(Kind::Overlapping), tightHodlr()}) {
    const Preconditioner M(map, problem.tree(), kernel, options);
    MV y(map, 1);
    bool threw = false;
    try {
      M.apply(rank == 0 ? wrong : x, y);
    } catch (const PlanMismatch&) {
      threw = true;
    }
    EXPECT_TRUE(threw || rank != 0);
    M.apply(x, y);
    const auto blocks = options.kind == Kind::Hodlr ? blockOfRank(problem, *map) : blocksOf(problem, options);
    EXPECT_LE(errorOf(y, problem, blocks), 1e-9);
  }
}

TEST(HMatrixPreconditioner, aRankWithoutMemoryIsAnErrorOnAllAndNobodyWaits) {
  using KomvosTest::Thrown;
  const int n = 120, size = Tpetra::getDefaultComm()->getSize();
  const Problem problem(n);
  const Kernel kernel(problem);
  const auto map = unevenMap(problem.tree(), n);
  for (const Options& options :
       {ofKind(Kind::Diagonal), ofKind(Kind::BlockJacobi), ofKind(Kind::Overlapping), tightHodlr()}) {
    SCOPED_TRACE(static_cast<int>(options.kind));
    Teuchos::RCP<Preconditioner> M;
    const bool hasOwnLists = options.kind != Kind::Diagonal;
    const int failures = KomvosTest::failInTurn(
        size - 1, hasOwnLists ? "Komvos" : "",
        [&] { M = Teuchos::rcp(new Preconditioner(map, problem.tree(), kernel, options)); },
        KomvosTest::expectErrorOnAllOrNone);
    EXPECT_GT(failures, 0);
    if (options.kind == Kind::Diagonal) {
      continue;  // a product of Tpetra's
    }
    const auto blocks = options.kind == Kind::Hodlr ? blockOfRank(problem, *map) : blocksOf(problem, options);
    std::size_t count = 3;
    Teuchos::RCP<MV> x, y;
    const auto renew = [&] {  // other work vectors each time
      count = 5 - count;
      x = Teuchos::rcp(new MV(vectors(map, count)));
      y = Teuchos::rcp(new MV(map, count));
    };
    renew();
    const int applied = KomvosTest::failInTurn(
        size - 1, "", [&] { M->apply(*x, *y); },
        [&](Thrown) {
          M->apply(*x, *y);
          EXPECT_LE(errorOf(*y, problem, blocks), 1e-9);
          renew();
        });
    EXPECT_GT(applied, 0);
  }
}

/// Charges on patches of a sphere whose areas grow from the north pole on: the entries of a collocation method.
class GradedProblem {
 public:
  explicit GradedProblem(int n) {
    const double pi = 3.14159265358979323846, goldenAngle = 2.399963229728653;
    for (int i = 0; i < n; ++i) {
      const double t = (i + 0.5) / n, z = 1 - 2 * t * t, r = std::sqrt(1 - z * z);
      points_.push_back({r * std::cos(goldenAngle * i), r * std::sin(goldenAngle * i), z});
      areas_.push_back(8 * pi * t / n);
    }
  }
  const std::vector<Point3>& points() const { return points_; }
  double operator()(int i, int j) const {
    const double pi = 3.14159265358979323846;
    // The potential in the centre of a disc of the same area: R / 2.
    return i == j ? 0.5 * std::sqrt(areas_[j] / pi) : areas_[j] / (4 * pi * norm(points_[i] - points_[j]));
  }

 private:
  std::vector<Point3> points_;
  std::vector<double> areas_;
};

/// BiCGStab (van der Vorst 1992) with M from the right, for a right-hand side of ones. \return its iterations to 1e-8
int iterations(const Tpetra::Operator<>& A, const Tpetra::Operator<>* M) {
  const auto map = A.getDomainMap();
  const auto dot = [](const MV& a, const MV& b) {
    std::vector<double> value(1);
    a.dot(b, Teuchos::arrayViewFromVector(value));
    return value[0];
  };
  const auto precondition = [&](const MV& from, MV& to) {
    M == nullptr ? Tpetra::deep_copy(to, from) : M->apply(from, to);
  };
  MV r(map, 1), shadow(map, 1), p(map, 1), v(map, 1), t(map, 1), direction(map, 1);
  r.putScalar(1);
  shadow.putScalar(1);
  const double bound = 1e-8 * std::sqrt(dot(r, r));
  double rho = 1, alpha = 1, omega = 1;
  for (int iteration = 1; iteration <= 500; ++iteration) {
    const double next = dot(shadow, r), beta = next / rho * alpha / omega;
    rho = next;
    // p = r + beta (p - omega v)
    p.update(1, r, -beta * omega, v, beta);
    precondition(p, direction);
    A.apply(direction, v);
    alpha = rho / dot(shadow, v);
    r.update(-alpha, v, 1);
    precondition(r, direction);
    A.apply(direction, t);
    omega = dot(t, r) / dot(t, t);
    r.update(-omega, t, 1);
    if (std::sqrt(dot(r, r)) <= bound) {
      return iteration;
    }
  }
  return 501;
}

TEST(HMatrixPreconditioner, savesIterationsOnAGradedSurface) {
  const GradedProblem problem(2000);
  const FunctionKernel<double, GradedProblem> kernel(problem);
  const ClusterTree tree(problem.points());
  HMatrixOptions accurate;
  accurate.lowRank.accuracy = 1e-7;
  const HMatrixOperator<double> A(Tpetra::getDefaultComm(), tree, kernel, accurate);
  const auto with = [&](const Options& options) {
    const Preconditioner M(A.getDomainMap(), tree, kernel, options);
    return iterations(A, &M);
  };
  Options hodlr;
  hodlr.kind = Kind::Hodlr;
  const int none = iterations(A, nullptr), diagonal = with(ofKind(Kind::Diagonal));
  const int overlapping = with(ofKind(Kind::Overlapping, 50, 0.5, 400));
  EXPECT_LT(diagonal, none);
  EXPECT_LT(with(ofKind(Kind::BlockJacobi, 200)), none);
  EXPECT_LT(with(hodlr), none);
  // Blocks without overlap do not gain on the diagonal of this smooth surface; nor does Hodlr, cut into ranks.
  EXPECT_LT(overlapping, diagonal);
  if (Tpetra::getDefaultComm()->getSize() == 1) {
    EXPECT_LT(with(hodlr), diagonal);
  }
}

}  // namespace
}  // namespace Komvos
