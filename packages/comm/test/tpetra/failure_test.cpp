// Whatever is thrown on one rank in apply, residual, doImport and doExport: no other rank waits, and afterwards the
// same objects work again.
#include <gtest/gtest.h>
#include <mpi.h>

#include <Tpetra_Import.hpp>
#include <functional>
#include <memory>
#include <string>

#include "Komvos_Error.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "support/failing_kokkos.hpp"
#include "support/matrix_support.hpp"

namespace {

using namespace KomvosTest;
using Komvos::NodeAwareCrsMatrix;
using Komvos::RouteChoice;

enum class Outcome { done, failed, mismatch };

/// Calls work(), which fails here after so many allocations and kernels; negative: it does not.
Outcome outcomeOf(const std::function<void()>& work, int passes) {
  try {
    if (passes < 0) {
      work();
    } else {
      const FailingKokkos failing(passes);
      work();
    }
  } catch (const KokkosFailure&) {
    return Outcome::failed;
  } catch (const Komvos::PlanMismatch&) {
    return Outcome::mismatch;
  }
  return Outcome::done;
}

bool onAnyRank(bool here) {
  int any = here ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return any == 1;
}

/// Makes work on vectors of so many columns; what it allocates itself shall not fail.
using Preparation = std::function<std::function<void()>(std::size_t columns)>;

/// Lets work fail on one rank at its first allocation or kernel, at its second, and so on, until it does not fail. Each
/// time it has more columns, so that all buffers are too small.
/// \param check is called in between
/// \param columns the fewest; of few values, packing and unpacking are no kernels
void checkFailures(const Preparation& prepare, const std::function<void()>& check, std::size_t columns = 2) {
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (const int guilty : {0, size / 2}) {
    bool missed = false;
    bool failed = true;
    int passes = 0;
    for (; failed; ++passes) {
      check();
      const Outcome outcome = outcomeOf(prepare(columns++), rank == guilty ? passes : -1);
      EXPECT_TRUE(rank == guilty ? outcome != Outcome::mismatch : outcome != Outcome::failed);
      failed = onAnyRank(outcome == Outcome::failed);
      missed = onAnyRank(outcome == Outcome::mismatch) || missed;
    }
    EXPECT_GT(passes, 1) << "nothing failed on rank " << guilty;
    EXPECT_EQ(size > 1, missed) << "whether others missed values of rank " << guilty;
    check();
  }
}

/// Calls work(matrix, node-aware matrix) for matrices with importer, exporter, or a sum of replicated output.
template <class Work>
void onSomeMatrices(const Work& work, GO rowsOfRank = 16) {
  const auto comm = Tpetra::getDefaultComm();
  const NamedTopology pairs{"pairs", Komvos::NodeTopology::uniform(comm->getSize(), 2)};
  int done = 0;
  for (const NamedMatrix& one : matricesOn(comm, rowsOfRank)) {
    for (const char* name : {"random, scattered rows", "band, another range map", "all replicated"}) {
      for (const Komvos::IntraNode onNode : {Komvos::IntraNode::messages, Komvos::IntraNode::sharedMemory}) {
        if (one.name == name) {
          // With rows that take values of the node first, which are given to them while messages travel.
          for (const Komvos::Overlap overlap : {Komvos::Overlap::automatic, Komvos::Overlap::byNode}) {
            SCOPED_TRACE(one.name + ", " + toString(onNode) + ", overlap " + toString(overlap));
            Komvos::ExchangeOptions options = optionsFor(pairs, RouteChoice::threeStep, onNode);
            options.overlap = overlap;
            work(*one.matrix, NodeAwareCrsMatrix<>(*one.matrix, options));
            ++done;
          }
        }
      }
    }
  }
  EXPECT_EQ(3 * 2 * 2, done);
}

double largestDifference(const Vector& a, const Vector& b) { return difference(entries(a), entries(b), 1); }

void checkFailuresOfApply(const Matrix& matrix, const NodeAwareCrsMatrix<>& nodeAware, std::size_t columns) {
  for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
    const bool plain = mode == Teuchos::NO_TRANS;
    const auto from = plain ? matrix.getDomainMap() : matrix.getRangeMap();
    const auto to = plain ? matrix.getRangeMap() : matrix.getDomainMap();
    Vector x(from, 1), expected(to, 1), y(to, 1);
    fill(x, 1);
    matrix.apply(x, expected, mode);
    const auto check = [&] {
      nodeAware.apply(x, y, mode);
      EXPECT_LE(largestDifference(expected, y), 1e-8);
    };
    const auto prepare = [&](std::size_t wide) {
      const auto wideX = rcp(new Vector(from, wide));
      const auto wideY = rcp(new Vector(to, wide));
      return [=, &nodeAware] { nodeAware.apply(*wideX, *wideY, mode); };
    };
    checkFailures(prepare, check, columns);
  }
}

TEST(AnExceptionOnOneRank, InApplyLeavesNobodyWaiting) {
  onSomeMatrices(
      [](const Matrix& matrix, const NodeAwareCrsMatrix<>& nodeAware) { checkFailuresOfApply(matrix, nodeAware, 2); });
}

/// So many values that packing, relaying and unpacking are kernels, which fail, too: of many rows, for a product
/// multiplies a few columns at a time, and of many columns nearly all failures would be in that one kernel.
TEST(AnExceptionOnOneRank, InTheExchangeOfManyValuesLeavesNobodyWaiting) {
  onSomeMatrices(
      [](const Matrix& matrix, const NodeAwareCrsMatrix<>& nodeAware) { checkFailuresOfApply(matrix, nodeAware, 36); },
      320);
}

TEST(AnExceptionOnOneRank, InResidualLeavesNobodyWaiting) {
  onSomeMatrices([](const Matrix& matrix, const NodeAwareCrsMatrix<>& nodeAware) {
    Vector x(matrix.getDomainMap(), 1), b(matrix.getRangeMap(), 1), expected(matrix.getRangeMap(), 1);
    Vector r(matrix.getRangeMap(), 1);
    fill(x, 1);
    fill(b, 2);
    expected.assign(b);
    matrix.apply(x, expected, Teuchos::NO_TRANS, -1, 1);
    const auto check = [&] {
      nodeAware.residual(x, b, r);
      EXPECT_LE(largestDifference(expected, r), 1e-8);
    };
    const auto prepare = [&](std::size_t columns) {
      const auto wideX = rcp(new Vector(x.getMap(), columns));
      const auto wideB = rcp(new Vector(b.getMap(), columns));
      return [=, &nodeAware] { nodeAware.residual(*wideX, *wideB, *wideB); };
    };
    checkFailures(prepare, check);
  });
}

/// Buffers are made then.
TEST(AnExceptionOnOneRank, InTheFirstUseLeavesNobodyWaiting) {
  const auto comm = Tpetra::getDefaultComm();
  const int rank = comm->getRank();
  const NamedTopology pairs{"pairs", Komvos::NodeTopology::uniform(comm->getSize(), 2)};
  int matrices = 0;
  for (const NamedMatrix& one : matricesOn(comm)) {
    if (one.name != "random, scattered rows" && one.name != "band, another range map") {
      continue;
    }
    ++matrices;
    for (const Komvos::IntraNode onNode : {Komvos::IntraNode::messages, Komvos::IntraNode::sharedMemory}) {
      for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
        SCOPED_TRACE(one.name + ", " + toString(onNode));
        const bool plain = mode == Teuchos::NO_TRANS;
        Vector x(plain ? one.matrix->getDomainMap() : one.matrix->getRangeMap(), 1);
        Vector y(plain ? one.matrix->getRangeMap() : one.matrix->getDomainMap(), 1), expected(y.getMap(), 1);
        fill(x, 1);
        one.matrix->apply(x, expected, mode);
        bool failed = true;
        int passes = 0;
        for (; failed; ++passes) {
          const NodeAwareCrsMatrix<> nodeAware(*one.matrix, optionsFor(pairs, RouteChoice::threeStep, onNode));
          const Outcome outcome = outcomeOf([&] { nodeAware.apply(x, y, mode); }, rank == 0 ? passes : -1);
          EXPECT_TRUE(rank == 0 ? outcome != Outcome::mismatch : outcome != Outcome::failed);
          failed = onAnyRank(outcome == Outcome::failed);
          nodeAware.apply(x, y, mode);
          EXPECT_LE(largestDifference(expected, y), 1e-8) << passes;
        }
        EXPECT_TRUE(passes > 1 || comm->getSize() == 1) << "nothing failed";
      }
    }
  }
  EXPECT_EQ(2, matrices);
}

TEST(AnExceptionOnOneRank, InImportsAndExportsLeavesNobodyWaiting) {
  const auto comm = Tpetra::getDefaultComm();
  const NamedTopology pairs{"pairs", Komvos::NodeTopology::uniform(comm->getSize(), 2)};
  const MapPair maps = makeMaps(mapKinds()[1], 3, comm);
  const Tpetra::Import<LO, GO, Komvos::DefaultNode> import(maps.owned, maps.overlapping);
  // Scattered columns are copied one by one: so many copies may fail as there are columns. So these are the same each
  // time, and what has to allocate its buffers is a new exchange.
  constexpr std::size_t columns = 3;
  std::shared_ptr<const Komvos::NodeAwareImport<>> halo;
  const auto renew = [&] {
    halo = std::make_shared<const Komvos::NodeAwareImport<>>(import, optionsFor(pairs, RouteChoice::threeStep));
  };
  renew();
  Vector owned(maps.owned, 1), ghosts(maps.overlapping, 1), expected(maps.overlapping, 1);
  fill(owned, 1);
  expected.doImport(owned, import, Tpetra::INSERT);
  const auto check = [&] {
    halo->doImport(owned, ghosts, Tpetra::INSERT);
    EXPECT_EQ(0, largestDifference(expected, ghosts));
  };
  // Columns 0, 2, 4, ...: to be copied.
  const auto scattered = [&] {
    Teuchos::Array<std::size_t> even(columns);
    for (std::size_t j = 0; j < columns; ++j) {
      even[j] = 2 * j;
    }
    return Vector(maps.overlapping, 2 * columns).subViewNonConst(even());
  };
  const auto prepareImport = [&](std::size_t) {
    renew();
    const auto source = rcp(new Vector(maps.owned, columns));
    return [&halo, source, target = scattered()] { halo->doImport(*source, *target, Tpetra::INSERT); };
  };
  const auto prepareExport = [&](std::size_t) {
    renew();
    const auto target = rcp(new Vector(maps.owned, columns));
    return [&halo, target, source = scattered()] { halo->doExport(*source, *target, Tpetra::ADD_ASSIGN); };
  };
  checkFailures(prepareImport, check);
  checkFailures(prepareExport, check);
}

}  // namespace
