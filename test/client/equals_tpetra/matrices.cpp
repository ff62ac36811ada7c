// Products and residuals.
#include <Komvos_NodeAwareCrsMatrix.hpp>
#include <Tpetra_CrsMatrix.hpp>
#include <functional>
#include <limits>

#include "comparison.hpp"

namespace twin {

namespace {

using Matrix = Tpetra::CrsMatrix<>;
using Doubles = Vectors<double>;

/// The entries of a row, the same on every rank that has the row.
struct Row {
  std::vector<GO> columns;
  std::vector<double> values;
};

Row rowOf(GO row, GO numColumns, unsigned seed) {
  std::map<GO, double> entries;
  const auto key = static_cast<unsigned long long>(row) * 7919 + seed;
  for (int k = below(8, key); k >= 0; --k) {
    const GO near = (row + below(6, key + 10 * k)) % numColumns;
    const GO column = k % 2 == 0 ? near : below(static_cast<int>(numColumns), key + 77 * k);
    entries[column] += noise(key + 1000 * k);
  }
  Row result;
  for (const auto& [column, value] : entries) {
    result.columns.push_back(column);
    result.values.push_back(value);
  }
  return result;
}

/// A matrix of Tpetra's, and what it is called.
struct Case {
  std::string name;
  RCP<Matrix> matrix;
  std::vector<GO> rows;
  GO numColumns;
  unsigned seed;
};

Case makeCase(const std::string& name, const RCP<const Map>& rowMap, const std::vector<GO>& rows, GO numColumns,
              const RCP<const Map>& domain, const RCP<const Map>& range, unsigned seed) {
  const auto matrix = rcp(new Matrix(rowMap, 9));
  for (const GO row : rows) {
    const Row entries = rowOf(row, numColumns, seed);
    matrix->insertGlobalValues(row, static_cast<LO>(entries.columns.size()), entries.values.data(),
                               entries.columns.data());
  }
  matrix->fillComplete(domain, range);
  return {name, matrix, rows, numColumns, seed};
}

/// Indices 0 .. n-1 dealt out: in blocks, or anywhere; ranks 0, 2, 4 ... may get none.
std::vector<GO> share(GO n, bool anywhere, bool emptyRanks, unsigned seed, const Comm& comm) {
  std::vector<GO> mine;
  const int size = comm->getSize();
  for (GO i = 0; i < n; ++i) {
    int owner = anywhere ? below(size, i * 31ULL + seed) : static_cast<int>(i * size / n);
    owner = emptyRanks && owner % 2 == 0 ? std::min(owner + 1, size - 1) : owner;
    if (owner == comm->getRank()) {
      mine.push_back(i);
    }
  }
  if (anywhere) {
    std::reverse(mine.begin(), mine.end());
  }
  return mine;
}

std::vector<Case> makeCases(const Comm& comm) {
  const GO n = 11 * comm->getSize() + 6;
  std::vector<GO> everything(static_cast<std::size_t>(n));
  for (GO i = 0; i < n; ++i) {
    everything[i] = i;
  }
  const std::vector<GO> few(everything.begin(), everything.begin() + 6);
  const auto blocks = share(n, false, false, 0, comm), anywhere = share(n, true, false, 1, comm),
             onSome = share(n, false, true, 2, comm), wide = share(2 * n, true, false, 3, comm);
  std::vector<GO> shared;  // some rows on several ranks, as before assembly
  for (const GO i : everything) {
    if (std::find(blocks.begin(), blocks.end(), i) != blocks.end() ||
        below(4, i * 131ULL + 17 * comm->getRank()) == 0) {
      shared.push_back(i);
    }
  }
  const auto mapBlocks = mapOf(blocks, comm), mapAnywhere = mapOf(anywhere, comm), mapSome = mapOf(onSome, comm),
             mapWide = mapOf(wide, comm), mapShared = mapOf(shared, comm);
  const auto replicated = Tpetra::createLocalMapWithNode<LO, GO, Node>(few.size(), comm);
  return {
      makeCase("blocks of rows", mapBlocks, blocks, n, mapBlocks, mapBlocks, 1),
      makeCase("rows anywhere", mapAnywhere, anywhere, n, mapAnywhere, mapAnywhere, 2),
      makeCase("ranks without rows", mapSome, onSome, n, mapSome, mapSome, 3),
      makeCase("wide", mapBlocks, blocks, 2 * n, mapWide, mapBlocks, 4),
      makeCase("another range map", mapBlocks, blocks, n, mapBlocks, mapAnywhere, 5),
      makeCase("rows on several ranks", mapShared, shared, n, mapAnywhere, mapBlocks, 6),
      makeCase("replicated domain", mapSome, onSome, 6, replicated, mapSome, 7),
      makeCase("replicated range", mapOf(share(6, true, false, 8, comm), comm), share(6, true, false, 8, comm), n,
               mapBlocks, replicated, 8),
  };
}

/// Of all terms that a product adds: ||A|| ||x|| in the Frobenius and the largest 2-norm, and what y had.
double scaleOf(const Matrix& A, const Doubles& x, double alpha, double beta, double largestY) {
  std::vector<double> norms(x.getNumVectors());
  x.norm2(Teuchos::ArrayView<double>(norms.data(), norms.size()));
  return std::abs(alpha) * A.getFrobeniusNorm() * *std::max_element(norms.begin(), norms.end()) +
         std::abs(beta) * largestY + std::numeric_limits<double>::min();
}

const char* nameOf(Teuchos::ETransp mode) {
  return mode == Teuchos::NO_TRANS ? "A" : mode == Teuchos::TRANS ? "A^T" : "A^H";
}

/// One matrix, with Komvos and with Tpetra.
class Pair {
 public:
  Pair(Comparisons& comparisons, const Case& one, const Komvos::ExchangeOptions& options)
      : comparisons_(comparisons), name_(one.name), A_(*one.matrix), ours_(A_, options) {}

  RCP<const Map> in(Teuchos::ETransp mode) const {
    return mode == Teuchos::NO_TRANS ? A_.getDomainMap() : A_.getRangeMap();
  }
  RCP<const Map> out(Teuchos::ETransp mode) const {
    return mode == Teuchos::NO_TRANS ? A_.getRangeMap() : A_.getDomainMap();
  }
  bool isSquare() const { return A_.getDomainMap()->isSameAs(*A_.getRangeMap()); }
  const Matrix& tpetra() const { return A_; }
  const Komvos::NodeAwareCrsMatrix<>& komvos() const { return ours_; }

  /// y = beta y + alpha op(A) x by both; `y` and `whole` end as Komvos leaves them, and `whole` is compared, of which y
  /// is a part.
  void product(const Doubles& x, Doubles& y, Doubles& whole, Teuchos::ETransp mode, double alpha, double beta,
               const std::string& what) {
    const Doubles plainX(x, Teuchos::Copy);
    Doubles expectedY(y, Teuchos::Copy), allBefore(whole, Teuchos::Copy);
    A_.apply(plainX, expectedY, mode, alpha, beta);
    ours_.apply(x, y, mode, alpha, beta);
    const double scale = scaleOf(A_, plainX, alpha, beta, 1000);
    const Doubles found(whole, Teuchos::Copy);
    Tpetra::deep_copy(whole, allBefore);
    Tpetra::deep_copy(y, expectedY);
    comparisons_.close(whole, found, scale,
                       name_ + ", " + nameOf(mode) + ", " + std::to_string(x.getNumVectors()) + " columns, alpha " +
                           std::to_string(alpha) + ", beta " + std::to_string(beta) + what);
  }
  void product(const Doubles& x, Doubles& y, Teuchos::ETransp mode, double alpha, double beta) {
    product(x, y, y, mode, alpha, beta, "");
  }

  /// \param X, B, R may share entries
  void residual(const Doubles& X, const Doubles& B, Doubles& R, const std::string& what) {
    const Doubles plainX(X, Teuchos::Copy);
    Doubles expected(B, Teuchos::Copy);
    A_.apply(plainX, expected, Teuchos::NO_TRANS, -1, 1);
    ours_.residual(X, B, R);
    comparisons_.close(expected, R, scaleOf(A_, plainX, 1, 1, 1000), name_ + ", residual" + what);
  }

 private:
  Comparisons& comparisons_;
  std::string name_;
  const Matrix& A_;
  Komvos::NodeAwareCrsMatrix<> ours_;
};

const Teuchos::ETransp modes[] = {Teuchos::NO_TRANS, Teuchos::TRANS, Teuchos::CONJ_TRANS};

void compareFactors(Pair& pair, int turn) {
  const double factors[] = {0, 1, -1, 2.5};
  for (const Teuchos::ETransp mode : modes) {
    for (int k = 0; k < 3; ++k) {
      const int width = 1 + (turn + 3 * k) % 9;
      Doubles x(pair.in(mode), width), y(pair.out(mode), width);
      fill(x, 1);
      for (int f = 0; f < 16; ++f) {
        if ((f + turn + k) % 3 == 0 || mode == Teuchos::NO_TRANS) {
          fill(y, 2);
          pair.product(x, y, mode, factors[f / 4], factors[f % 4]);
        }
      }
    }
  }
}

/// What beta = 0 and alpha = 0 must not read.
void compareNaN(Pair& pair) {
  for (const Teuchos::ETransp mode : modes) {
    for (const int width : {1, 4}) {
      Doubles x(pair.in(mode), width), y(pair.out(mode), width);
      fill(x, 1);
      y.putScalar(std::numeric_limits<double>::quiet_NaN());
      pair.product(x, y, mode, 1, 0);
      y.putScalar(std::numeric_limits<double>::quiet_NaN());
      pair.product(x, y, mode, 0, 0);
    }
  }
}

/// Parts of larger vectors: columns beside each other, scattered ones, one, and rows from the middle.
void compareViews(Pair& pair, const Comm& comm) {
  for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
    Doubles x(pair.in(mode), 7), y(pair.out(mode), 7);
    fill(x, 3);
    fill(y, 4);
    const std::size_t mine[] = {5, 1, 2}, others[] = {0, 6, 3};
    const Teuchos::ArrayView<const std::size_t> some(mine, 3), more(others, 3);
    const Teuchos::Range1D range(2, 4);
    pair.product(*x.subView(range), *y.subViewNonConst(range), y, mode, 1, 0.5, ", columns 2 to 4");
    pair.product(*x.subView(some), *y.subViewNonConst(more), y, mode, -1, 1, ", scattered columns");
    pair.product(*x.subView(some), *y.subViewNonConst(range), y, mode, 2, 0, ", scattered columns of x");
    pair.product(*x.subView(range), *y.subViewNonConst(more), y, mode, 1, 0, ", scattered columns of y");
    pair.product(*x.getVector(3), *y.getVectorNonConst(5), y, mode, 1, -1, ", one column");
    if (pair.in(mode)->isDistributed() && pair.out(mode)->isDistributed()) {
      const auto longer = [&](const RCP<const Map>& map) {  // two rows before, one after, on every rank
        const GO first = 100000 * (comm->getRank() + 1);
        std::vector<GO> rows{first, first + 1};
        for (LO i = 0; i <= map->getMaxLocalIndex(); ++i) {  // -1 where there is none
          rows.push_back(map->getGlobalElement(i));
        }
        rows.push_back(first + 2);
        return mapOf(rows, comm);
      };
      Doubles longX(longer(pair.in(mode)), 3), longY(longer(pair.out(mode)), 3);
      fill(longX, 5);
      fill(longY, 6);
      pair.product(*longX.offsetView(pair.in(mode), 2), *longY.offsetViewNonConst(pair.out(mode), 2), longY, mode, 1, 2,
                   ", rows of longer vectors");
    }
  }
}

/// Vectors that share entries.
void compareAliases(Pair& pair) {
  for (const int width : {1, 3}) {
    Doubles b(pair.out(Teuchos::NO_TRANS), width), r(pair.out(Teuchos::NO_TRANS), width);
    Doubles x(pair.in(Teuchos::NO_TRANS), width);
    fill(x, 7);
    fill(b, 8);
    pair.residual(x, b, r, "");
    pair.residual(x, b, b, ", R is B");
    if (pair.isSquare()) {
      fill(b, 8);
      pair.residual(x, b, x, ", R is X");
      fill(x, 7);
      pair.residual(x, x, x, ", R is X and B");
      for (const Teuchos::ETransp mode : modes) {
        Doubles both(pair.in(mode), width + 2);
        fill(both, 9);
        const auto part = both.subViewNonConst(Teuchos::Range1D(0, width - 1));
        pair.product(*part, *part, both, mode, 1.5, 0.5, ", Y is X");
        const auto next = both.subViewNonConst(Teuchos::Range1D(1, width));
        pair.product(*part, *next, both, mode, 1, 0, ", Y shares columns with X");
      }
    }
  }
}

/// The matrix gets other values; ours shares them.
void compareChanges(Case& one, Pair& pair) {
  Matrix& A = *one.matrix;
  const auto check = [&] {
    for (const Teuchos::ETransp mode : {Teuchos::NO_TRANS, Teuchos::TRANS}) {
      for (const int width : {1, 2}) {
        Doubles x(pair.in(mode), width), y(pair.out(mode), width);
        fill(x, 10);
        fill(y, 11);
        pair.product(x, y, mode, 1, 1);
      }
    }
  };
  const auto complete = [&] { A.fillComplete(A.getDomainMap(), A.getRangeMap()); };
  A.resumeFill();
  for (const GO row : one.rows) {
    const Row entries = rowOf(row, one.numColumns, one.seed);
    const double value = 3 * entries.values.front();
    A.replaceGlobalValues(row, 1, &value, &entries.columns.front());
    A.sumIntoGlobalValues(row, 1, &value, &entries.columns.back());
    const LO local = A.getRowMap()->getLocalElement(row);
    const LO column = A.getColMap()->getLocalElement(entries.columns[entries.columns.size() / 2]);
    A.replaceLocalValues(local, 1, &value, &column);
  }
  complete();
  check();
  A.resumeFill();
  A.scale(-0.75);
  complete();
  check();
  A.resumeFill();
  A.setAllToScalar(1.25);
  complete();
  check();
}

}  // namespace

void compareMatrices(Comparisons& comparisons, const Comm& comm, const Setting& setting) {
  for (Case& one : makeCases(comm)) {
    Pair pair(comparisons, one, setting.options);
    comparisons.enter("products: alpha, beta, transposes", setting.name);
    compareFactors(pair, setting.turn);
    comparisons.enter("products: NaN where it is not read", setting.name);
    compareNaN(pair);
    comparisons.enter("products: views", setting.name);
    compareViews(pair, comm);
    comparisons.enter("products and residuals: aliases", setting.name);
    compareAliases(pair);
    comparisons.enter("products: changed values", setting.name);
    compareChanges(one, pair);
  }
}

}  // namespace twin
