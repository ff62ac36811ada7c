// RowTransfer against Tpetra's importAndFillCompleteCrsMatrix and doExport.
#include <gtest/gtest.h>

#include <Tpetra_Export.hpp>
#include <Tpetra_Import.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_RowKernels.hpp"
#include "Komvos_RowTransfer.hpp"
#include "support/failing_kokkos.hpp"
#include "support/largest.hpp"
#include "support/matrix_support.hpp"
#include "support/mpi_support.hpp"

namespace {

using namespace KomvosTest;
using Komvos::BadInput;
using Komvos::ExchangeOptions;
using Komvos::PlanMismatch;
using Komvos::RouteChoice;
using Komvos::RowTransfer;
using Import = Tpetra::Import<>;
using Export = Tpetra::Export<>;

/// (row, column) and value of all entries on this rank, sorted.
using Entries = std::map<std::pair<GO, GO>, double>;
Entries entriesOf(const Matrix& matrix) {
  Entries all;
  const auto local = matrix.getLocalMatrixHost();
  for (LO row = 0; row < static_cast<LO>(Komvos::Impl::localRows(matrix)); ++row) {
    LO last = -1;
    for (auto k = local.graph.row_map(row); k < local.graph.row_map(row + 1); ++k) {
      const LO column = local.graph.entries(k);
      EXPECT_LT(last, column) << "columns of a row increase";
      last = column;
      all[{matrix.getRowMap()->getGlobalElement(row), matrix.getColMap()->getGlobalElement(column)}] = local.values(k);
    }
  }
  return all;
}

bool sameBits(const Entries& a, const Entries& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return x.first == y.first && std::memcmp(&x.second, &y.second, sizeof(double)) == 0;
         });
}

/// The largest difference, or infinity if the patterns differ.
double distance(const Entries& a, const Entries& b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (auto x = a.begin(), y = b.begin(); largest != INFINITY && x != a.end(); ++x, ++y) {
    largest = x->first == y->first ? largerOf(largest, std::abs(x->second - y->second)) : INFINITY;
  }
  return largest;
}

/// Rows that are long, empty and short: row 3 has all columns, every fifth has none.
RowEntries skewed(GO n, unsigned seed) {
  return [n, seed](GO row, const std::function<void(GO, double)>& add) {
    Random random(seed + 31 * static_cast<unsigned>(row));
    if (row == 3) {
      for (GO column = 0; column < n; ++column) {
        add(column, random.unit());
      }
    }
    for (int k = row % 5 == 0 ? 0 : 1 + random.below(4); k > 0; --k) {
      add(random.below(static_cast<int>(n)), random.unit());
    }
  };
}

/// The same with values rounded to multiples of 2^-20. Their products with whole numbers below 1000, and sums of those,
/// are exact in any order, with or without fused multiply-add.
RowEntries rounded(const RowEntries& entries) {
  return [entries](GO row, const std::function<void(GO, double)>& add) {
    entries(row, [&](GO column, double value) { add(column, std::ldexp(std::round(std::ldexp(value, 20)), -20)); });
  };
}

/// Whole numbers below 1000 in magnitude.
void fillWithWholeNumbers(Vector& vector, unsigned seed) {
  fill(vector, seed);
  const auto view = vector.getLocalViewHost(Tpetra::Access::ReadWrite);
  for (std::size_t i = 0; i < view.extent(0); ++i) {
    view(i, 0) = std::trunc(view(i, 0));
  }
}

RCP<Matrix> makeMatrix(const RCP<const Map>& rows, const RCP<const Map>& domain, const RowEntries& entries,
                       std::size_t most) {
  const auto matrix = rcp(new Matrix(rows, most));
  fillRows(*matrix, entries);
  matrix->fillComplete(domain, domain);
  return matrix;
}

/// Rows of this rank, and some of others.
RCP<const Map> withRowsOfOthers(const RCP<const Map>& mine, GO n, unsigned seed) {
  const auto comm = mine->getComm();
  Random random(seed + static_cast<unsigned>(comm->getRank()));
  std::vector<GO> rows = globalIds(*mine);
  for (GO row = 0; row < n; ++row) {
    if (!mine->isNodeGlobalElement(row) && random.below(3) == 0) {
      rows.push_back(row);
    }
  }
  random.shuffle(rows);
  return makeMap(rows, comm);
}

/// Calls work(options) for all nodes and routes.
void onRoutes(const TeuchosComm& comm, const std::function<void(const ExchangeOptions&)>& work) {
  for (const NamedTopology& where : topologiesFor(comm->getSize())) {
    for (const RouteChoice& route :
         {RouteChoice::standard, RouteChoice::twoStep, RouteChoice::threeStep, RouteChoice::axis}) {
      SCOPED_TRACE(where.name + ", " + toString(route));
      work(optionsFor(where, route));
    }
  }
}

TEST(RowTransfer, ImportsRowsAsTpetraDoes) {
  const auto comm = Tpetra::getDefaultComm();
  const GO n = 40 * comm->getSize() + 7;
  const auto blocks = rowsOf(n, false, false, 1, comm), scattered = rowsOf(n, true, false, 2, comm);
  const auto few = rowsOf(n, false, true, 3, comm);
  const std::vector<std::pair<RCP<const Map>, RCP<const Map>>> moves{{blocks, scattered},
                                                                     {scattered, blocks},
                                                                     {few, scattered},
                                                                     {blocks, few},
                                                                     {blocks, blocks},
                                                                     {blocks, withRowsOfOthers(blocks, n, 4)},
                                                                     {scattered, withRowsOfOthers(scattered, n, 5)}};
  unsigned seed = 0;
  for (const auto& move : moves) {
    const auto from = move.first, to = move.second;  // nvcc captures no structured bindings
    const RCP<const Matrix> source = makeMatrix(from, from, rounded(skewed(n, ++seed)), n);
    const Import import(from, to);
    const auto expected = Tpetra::importAndFillCompleteCrsMatrix<Matrix>(source, import, from, from);
    const Entries wanted = entriesOf(*expected);
    onRoutes(comm, [&](const ExchangeOptions& options) {
      RowTransfer<> transfer(import, options);
      const auto target = transfer.transfer(*source, Tpetra::REPLACE);
      EXPECT_TRUE(target->isFillComplete());
      EXPECT_TRUE(target->getRowMap()->isSameAs(*to));
      EXPECT_TRUE(target->getDomainMap()->isSameAs(*from));
      EXPECT_TRUE(sameBits(wanted, entriesOf(*target)));
      Vector x(from, 1), y(to, 1), z(to, 1);
      fillWithWholeNumbers(x, 6);
      const auto again = transfer.transfer(*source, Tpetra::INSERT, from, to->isOneToOne() ? to : from);
      if (to->isOneToOne()) {  // the matrix can be used
        again->apply(x, y);
        Vector inOldPlaces(from, 1);
        source->apply(x, inOldPlaces);
        z.doImport(inOldPlaces, import, Tpetra::INSERT);
        z.update(-1, y, 1);
        EXPECT_EQ(largestEntry(z), 0);
      }
    });
  }
}

/// Contributions of this rank to shared rows, different on each rank.
RowEntries contributions(GO n, int rank) {
  return [n, rank](GO row, const std::function<void(GO, double)>& add) {
    Random random(static_cast<unsigned>(101 * row) + static_cast<unsigned>(7 * rank));
    for (int k = 0; k < 6; ++k) {
      add((row + random.below(9)) % n, random.unit());
    }
  };
}

TEST(RowTransfer, AddsSharedRowsAsTpetraDoes) {
  const auto comm = Tpetra::getDefaultComm();
  const GO n = 30 * comm->getSize() + 3;
  for (const bool scatters : {false, true}) {
    const auto unique = rowsOf(n, scatters, false, 7, comm);
    const auto shared = withRowsOfOthers(unique, n, 8);
    const auto source = makeMatrix(shared, unique, contributions(n, comm->getRank()), 12);
    const Export exporter(shared, unique);
    Matrix expected(unique, static_cast<std::size_t>(n));
    expected.doExport(*source, exporter, Tpetra::ADD);
    expected.fillComplete(unique, unique);
    const Entries wanted = entriesOf(expected);
    Entries first;
    onRoutes(comm, [&](const ExchangeOptions& options) {
      RowTransfer<> transfer(exporter, options);
      const Entries sums = entriesOf(*transfer.transfer(*source, Tpetra::ADD));
      EXPECT_LE(distance(wanted, sums), 1e-14);
      first = first.empty() ? sums : first;
      EXPECT_TRUE(sameBits(first, sums)) << "sums must not depend on the route";
      EXPECT_TRUE(sameBits(first, entriesOf(*transfer.transfer(*source, Tpetra::ADD)))) << "nor on the run";
    });
  }
}

TEST(RowTransfer, ReplacesARowByThatOfTheHighestRank) {
  const auto comm = Tpetra::getDefaultComm();
  const GO n = 12 * comm->getSize();
  const auto unique = rowsOf(n, true, false, 9, comm);
  const auto shared = withRowsOfOthers(unique, n, 10);
  const int rank = comm->getRank();
  const auto source = makeMatrix(
      shared, unique,
      [&](GO row, const auto& add) {
        add(row, rank);
        add((row + rank) % n, 0.5);
      },
      3);
  // Who is the highest rank that has a row?
  std::vector<int> mine(static_cast<std::size_t>(n), -1), highest(mine);
  for (const GO row : globalIds(*shared)) {
    mine[static_cast<std::size_t>(row)] = rank;
  }
  Teuchos::reduceAll(*comm, Teuchos::REDUCE_MAX, static_cast<int>(n), mine.data(), highest.data());
  Entries expected;
  for (const GO row : globalIds(*unique)) {
    const int from = highest[static_cast<std::size_t>(row)];
    expected[{row, row}] += from;
    expected[{row, (row + from) % n}] += 0.5;
  }
  onRoutes(comm, [&](const ExchangeOptions& options) {
    RowTransfer<> transfer(Export(shared, unique), options);
    EXPECT_TRUE(sameBits(expected, entriesOf(*transfer.transfer(*source, Tpetra::REPLACE))));
  });
}

TEST(RowTransfer, MovesValuesAloneAlongTheSameLists) {
  const auto comm = Tpetra::getDefaultComm();
  const GO n = 25 * comm->getSize() + 1;
  const auto unique = rowsOf(n, true, false, 11, comm);
  const auto shared = withRowsOfOthers(unique, n, 12);
  const auto source = makeMatrix(shared, unique, contributions(n, comm->getRank()), 12);
  const auto newValues = [&](double factor) {
    source->resumeFill();
    source->scale(factor);
    source->fillComplete(unique, unique);
  };
  for (const Tpetra::CombineMode mode : {Tpetra::ADD, Tpetra::REPLACE}) {
    onRoutes(comm, [&](const ExchangeOptions& options) {
      RowTransfer<> transfer(Export(shared, unique), options);
      const auto target = transfer.transfer(*source, mode);
      for (const double factor : {1.5, -0.75, 1.25}) {
        newValues(factor);
        transfer.transferValues(*source, *target);
        RowTransfer<> another(Export(shared, unique), options);
        EXPECT_TRUE(sameBits(entriesOf(*another.transfer(*source, mode)), entriesOf(*target)));
      }
    });
  }
}

/// Rows in arrays, where kernels can read them.
RowTransfer<>::Arrays arraysOf(const std::vector<std::size_t>& offset, const std::vector<GO>& columns,
                               const std::vector<double>& values) {
  const auto copy = [](const auto& list) {
    using T = typename std::decay_t<decltype(list)>::value_type;
    const Kokkos::View<T*, RowTransfer<>::device_type> view("list", list.size());
    Kokkos::deep_copy(view, Kokkos::View<const T*, Kokkos::HostSpace>(list.data(), list.size()));
    return view;
  };
  return {copy(offset), copy(columns), copy(values)};
}

/// As element matrices leave them: columns in any order, and several times.
struct Contributions {
  std::vector<std::size_t> offset{0};
  std::vector<GO> columns;
  std::vector<double> values;

  Contributions(const Map& rows, GO n, double factor) {
    for (const GO row : globalIds(rows)) {
      Random random(static_cast<unsigned>(13 * row) + static_cast<unsigned>(rows.getComm()->getRank()));
      for (int k = random.below(12); k > 0; --k) {
        columns.push_back((row + random.below(5)) % n);
        values.push_back(factor * random.unit());
      }
      offset.push_back(columns.size());
    }
  }
  RowTransfer<>::Arrays arrays() const { return arraysOf(offset, columns, values); }
};

TEST(RowTransfer, AssemblesContributionsInAnyOrder) {
  const auto comm = Tpetra::getDefaultComm();
  const GO n = 20 * comm->getSize() + 9;
  const auto unique = rowsOf(n, true, false, 22, comm);
  const auto shared = withRowsOfOthers(unique, n, 23);
  const Contributions first(*shared, n, 1), second(*shared, n, -2.5);
  // Tpetra sums the same numbers in another order.
  Matrix overlapping(shared, 16), expected(unique, static_cast<std::size_t>(n));
  const auto rows = globalIds(*shared);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = first.offset[i]; k < first.offset[i + 1]; ++k) {
      overlapping.insertGlobalValues(rows[i], Teuchos::tuple(first.columns[k]), Teuchos::tuple(first.values[k]));
    }
  }
  overlapping.fillComplete(unique, unique);
  const Export exporter(shared, unique);
  expected.doExport(overlapping, exporter, Tpetra::ADD);
  expected.fillComplete(unique, unique);
  const Entries wanted = entriesOf(expected);
  Entries sums, scaled;
  onRoutes(comm, [&](const ExchangeOptions& options) {
    RowTransfer<> transfer(exporter, options);
    const auto target = transfer.transfer(first.arrays(), Tpetra::ADD, unique, unique);
    const Entries found = entriesOf(*target);
    EXPECT_LE(distance(wanted, found), 1e-13);
    sums = sums.empty() ? found : sums;
    EXPECT_TRUE(sameBits(sums, found));
    transfer.transferValues(second.arrays(), *target);
    const Entries again = entriesOf(*target);
    scaled = scaled.empty() ? again : scaled;
    EXPECT_TRUE(sameBits(scaled, again));
    Entries ratio = wanted;
    for (auto& [place, value] : ratio) {
      value *= -2.5;
    }
    EXPECT_LE(distance(ratio, again), 1e-13);
    auto short_ = first.arrays();
    if (comm->getRank() == 0) {
      short_.values = Kokkos::subview(short_.values, std::make_pair(std::size_t(0), first.values.size() / 2));
    }
    commonError("the offsets end at", [&] { transfer.transfer(short_, Tpetra::ADD, unique, unique); });
  });
}

/// More entries than one thread packs or sums: the order of sums is that of one loop, own entries first.
TEST(RowTransfer, SumsInOneOrderWithAnyNumberOfThreads) {
  const auto comm = Tpetra::getDefaultComm();
  const int rank = comm->getRank(), size = comm->getSize();
  constexpr GO rowsOfRank = 4000;
  const GO n = rowsOfRank * size;
  // Rows of this rank, then those of the next one. Row 0 of each is long, many are empty.
  const auto rowsOn = [&](int owner) {
    std::vector<GO> rows(rowsOfRank);
    std::iota(rows.begin(), rows.end(), owner * rowsOfRank);
    return rows;
  };
  std::vector<GO> shared = rowsOn(rank);
  const auto unique = makeMap(shared, comm);
  if (size > 1) {
    const std::vector<GO> next = rowsOn((rank + 1) % size);
    shared.insert(shared.end(), next.begin(), next.end());
  }
  const auto forEntriesOf = [n](GO row, int from, const auto& work) {
    Random random(static_cast<unsigned>(row) * 31 + static_cast<unsigned>(from));
    const int most = row % rowsOfRank == 0 ? 60000 : 60;
    for (int k = row % rowsOfRank == 0 ? most : random.below(most); k > 0; --k) {
      const GO column = (row + random.below(most / 3)) % n;
      work(column, random.unit());
    }
  };
  std::vector<std::size_t> offset{0};
  std::vector<GO> columns;
  std::vector<double> values;
  for (const GO row : shared) {
    forEntriesOf(row, rank, [&](GO column, double value) {
      columns.push_back(column);
      values.push_back(value);
    });
    offset.push_back(columns.size());
  }
  Entries expected;
  for (const GO row : rowsOn(rank)) {
    for (int from = rank, parts = std::min(size, 2); parts > 0; --parts, from = (rank + size - 1) % size) {
      forEntriesOf(row, from, [&](GO column, double value) { expected[{row, column}] += value; });
    }
  }
  RowTransfer<> transfer(Export(makeMap(shared, comm), unique));
  const auto arrays = arraysOf(offset, columns, values);
  const auto target = transfer.transfer(arrays, Tpetra::ADD, unique, unique);
  EXPECT_TRUE(sameBits(expected, entriesOf(*target)));
  transfer.transferValues(arrays, *target);
  EXPECT_TRUE(sameBits(expected, entriesOf(*target)));
}

TEST(RowTransfer, ReturnsRowsThatStayInOrderAndSortsTheOthers) {
  const auto comm = Tpetra::getDefaultComm();
  const GO n = 15 * comm->getSize() + 4;
  const auto blocks = rowsOf(n, false, false, 31, comm), swapped = rowsOf(n, true, false, 32, comm);
  const auto increasing = makeMatrix(blocks, blocks, skewed(n, 33), n);  // its columns increase on each rank
  for (const auto& to : {blocks, swapped, withRowsOfOthers(blocks, n, 34)}) {
    const Import import(blocks, to);
    onRoutes(comm, [&](const ExchangeOptions& options) {
      RowTransfer<> transfer(import, options);
      for (const double factor : {1.0, -1.5}) {  // the lists of the first transfer are of no use to the second
        increasing->resumeFill();
        increasing->scale(factor);
        increasing->fillComplete(blocks, blocks);
        const auto expected =
            Tpetra::importAndFillCompleteCrsMatrix<Matrix>(RCP<const Matrix>(increasing), import, blocks, blocks);
        const auto target = transfer.transfer(*increasing, Tpetra::REPLACE);
        EXPECT_TRUE(sameBits(entriesOf(*expected), entriesOf(*target)));
        Kokkos::deep_copy(target->getLocalMatrixDevice().values, NAN);
        transfer.transferValues(*increasing, *target);
        EXPECT_TRUE(sameBits(entriesOf(*expected), entriesOf(*target)));
      }
    });
  }
  // Arrays, in order and not, by one transfer in turn.
  const Import stay(blocks, blocks);
  RowTransfer<> transfer(stay);
  Contributions ordered(*blocks, n, 1);
  const Contributions disordered(*blocks, n, 1);
  for (std::size_t i = 0; i + 1 < ordered.offset.size(); ++i) {
    const std::size_t begin = ordered.offset[i], end = ordered.offset[i + 1];
    const GO first = globalIds(*blocks)[i];
    for (std::size_t k = begin; k < end; ++k) {
      ordered.columns[k] = first - std::min<GO>(first, static_cast<GO>(end - begin)) + static_cast<GO>(k - begin);
    }
  }
  const Contributions* const inTurn[] = {&ordered, &disordered, &ordered};
  for (const Contributions* given : inTurn) {
    const Entries found = entriesOf(*transfer.transfer(given->arrays(), Tpetra::REPLACE, blocks, blocks));
    Entries expected;
    for (std::size_t i = 0; i + 1 < given->offset.size(); ++i) {
      for (std::size_t k = given->offset[i]; k < given->offset[i + 1]; ++k) {
        expected[{globalIds(*blocks)[i], given->columns[k]}] += given->values[k];
      }
    }
    EXPECT_LE(distance(expected, found), 1e-14);
  }
}

/// The rows of this rank in another order.
RCP<const Map> permuted(const RCP<const Map>& mine, unsigned seed) {
  std::vector<GO> rows = globalIds(*mine);
  Random random(seed + static_cast<unsigned>(mine->getComm()->getRank()));
  random.shuffle(rows);
  return makeMap(rows, mine->getComm());
}

/// What A x is in rows of `rows`, and `target` x, to the last bit: the values have to be those of rounded(), or whole.
void expectSameProducts(const Matrix& source, const Matrix& target, const Import& rows) {
  Vector x(source.getDomainMap(), 1), inOldPlaces(source.getRangeMap(), 1), y(rows.getTargetMap(), 1), z(y.getMap(), 1);
  fillWithWholeNumbers(x, 41);
  source.apply(x, inOldPlaces);
  z.doImport(inOldPlaces, rows, Tpetra::INSERT);
  Vector inDomain(target.getDomainMap(), 1);
  inDomain.doImport(x, Import(x.getMap(), inDomain.getMap()), Tpetra::INSERT);
  target.apply(inDomain, y);
  z.update(-1, y, 1);
  EXPECT_EQ(largestEntry(z), 0);
}

TEST(RowTransfer, KeepsTheColumnMapWhereAllRowsStay) {
  const auto comm = Tpetra::getDefaultComm();
  const GO n = 15 * comm->getSize() + 4;
  const auto blocks = rowsOf(n, false, false, 35, comm), elsewhere = rowsOf(n, true, false, 36, comm);
  const auto inOtherOrder = permuted(blocks, 37);
  const RCP<const Matrix> source = makeMatrix(blocks, blocks, rounded(skewed(n, 38)), n);
  for (const auto& to : {blocks, inOtherOrder}) {
    const Import import(blocks, to);
    const auto expected = Tpetra::importAndFillCompleteCrsMatrix<Matrix>(source, import, blocks, to);
    RowTransfer<> transfer(import);
    const auto target = transfer.transfer(*source, Tpetra::REPLACE, Teuchos::null, to);
    EXPECT_EQ(target->getColMap().get(), source->getColMap().get());
    EXPECT_EQ(target->getCrsGraph()->getImporter().get(), source->getCrsGraph()->getImporter().get());
    EXPECT_TRUE(sameBits(entriesOf(*expected), entriesOf(*target)));
    expectSameProducts(*source, *target, import);
    Kokkos::deep_copy(target->getLocalMatrixDevice().values, NAN);
    transfer.transferValues(*source, *target);
    EXPECT_TRUE(sameBits(entriesOf(*expected), entriesOf(*target)));
  }
  // The last rank gets the row that has all columns, which stays where it was: a new column map on all ranks.
  std::vector<GO> rows = globalIds(*blocks);
  const bool isLast = comm->getRank() == comm->getSize() - 1;
  if (isLast && comm->getSize() > 1) {
    rows.push_back(3);
  }
  const Import addsARow(blocks, makeMap(rows, comm));
  const auto expected = Tpetra::importAndFillCompleteCrsMatrix<Matrix>(source, addsARow, blocks, blocks);
  const auto larger = RowTransfer<>(addsARow).transfer(*source, Tpetra::REPLACE);
  EXPECT_EQ(larger->getColMap().get() == source->getColMap().get(), comm->getSize() == 1);
  EXPECT_TRUE(larger->getColMap()->isSameAs(*expected->getColMap()));
  EXPECT_TRUE(sameBits(entriesOf(*expected), entriesOf(*larger)));
  // Another domain, which Tpetra does not allow here: in other places; and with one more element, so that all columns
  // keep their numbers.
  std::vector<GO> oneMore = globalIds(*blocks);
  if (isLast) {
    oneMore.push_back(n);
  }
  const Import permutes(blocks, inOtherOrder);
  for (const auto& domain : {elsewhere, makeMap(oneMore, comm)}) {
    const auto target = RowTransfer<>(permutes).transfer(*source, Tpetra::REPLACE, domain, inOtherOrder);
    EXPECT_TRUE(target->getDomainMap()->isSameAs(*domain));
    EXPECT_NE(target->getColMap().get(), source->getColMap().get());
    EXPECT_TRUE(sameBits(entriesOf(*source), entriesOf(*target)));
    expectSameProducts(*source, *target, permutes);
  }
}

/// A column map of the user's, in Tpetra's order or another, with columns that no row has: one of them is n.
/// \param domainHasIt whether n is in the domain map
void transferWithUnusedColumns(bool inOrder, bool domainHasIt) {
  SCOPED_TRACE(std::string(inOrder ? "in order, " : "in another order, ") + (domainHasIt ? "with n" : "without n"));
  const auto comm = Tpetra::getDefaultComm();
  const GO n = 12 * comm->getSize() + 5;
  const auto blocks = rowsOf(n, false, false, 42, comm);
  const std::vector<GO> mine = globalIds(*blocks);
  std::vector<GO> andOne = mine;
  if (comm->getRank() == comm->getSize() - 1) {
    andOne.push_back(n);
  }
  std::vector<GO> columns = andOne;  // in Tpetra's order: then those of others, by owner and id
  for (GO id = 0; id <= n; ++id) {
    if (std::find(andOne.begin(), andOne.end(), id) == andOne.end()) {
      columns.push_back(id);
    }
  }
  if (!inOrder) {
    std::reverse(columns.begin(), columns.end());
  }
  const auto withN = makeMap(andOne, comm), domain = domainHasIt ? withN : blocks;
  const auto source = rcp(new Matrix(blocks, makeMap(columns, comm), 3));
  for (const GO row : mine) {
    source->insertGlobalValues(row, Teuchos::tuple<GO>(row, (row * 5 + 2) % n), Teuchos::tuple(2.0 + row, -1.0));
  }
  source->fillComplete(domain, blocks);
  std::vector<GO> butOne = globalIds(*withRowsOfOthers(blocks, n, 43));
  butOne.erase(std::find(butOne.begin(), butOne.end(), blocks->getMinGlobalIndex()));
  const auto inOtherOrder = permuted(blocks, 44), withoutOne = makeMap(butOne, comm);
  for (const auto& to : {inOtherOrder, withoutOne}) {
    const Import import(blocks, to);
    RowTransfer<> transfer(import);
    for (const auto& columnsOf : {domain, domainHasIt ? blocks : withN}) {
      const auto target = transfer.transfer(*source, Tpetra::REPLACE, columnsOf, blocks);
      Entries expected;
      for (const GO row : globalIds(*to)) {
        expected[{row, row}] += 2.0 + static_cast<double>(row);
        expected[{row, (row * 5 + 2) % n}] += -1.0;
      }
      EXPECT_EQ(distance(expected, entriesOf(*target)), 0);
      const bool keepsAll = domainHasIt && columnsOf == domain && to == inOtherOrder;
      const auto ids = globalIds(*target->getColMap());
      EXPECT_EQ(std::count(ids.begin(), ids.end(), n), keepsAll ? 1 : 0);
      EXPECT_EQ(target->getColMap().get() == source->getColMap().get(), keepsAll && inOrder);
      if (to->isOneToOne()) {
        const auto product = transfer.transfer(*source, Tpetra::REPLACE, columnsOf, to);
        expectSameProducts(*source, *product, import);
      }
    }
  }
}

TEST(RowTransfer, KeepsColumnsThatNoRowHasWhereAllRowsAndTheDomainStay) {
  for (const bool inOrder : {true, false}) {
    for (const bool domainHasIt : {true, false}) {
      transferWithUnusedColumns(inOrder, domainHasIt);
    }
  }
}

TEST(RowTransfer, CopesWithManyShortRowsAndADenseOne) {
  const auto comm = Tpetra::getDefaultComm();
  const GO n = 100000;
  const auto from = rowsOf(n, false, false, 13, comm);
  std::vector<GO> mine;  // in turn, so that most rows move
  for (GO row = comm->getRank(); row < n; row += comm->getSize()) {
    mine.push_back(row);
  }
  const auto to = makeMap(mine, comm);
  const auto source = rcp(new Matrix(from, 3));
  for (const GO row : globalIds(*from)) {
    source->insertGlobalValues(row, Teuchos::tuple<GO>(row, (row * 7 + 1) % n), Teuchos::tuple(2.0 + 1e-3 * row, -1.0));
  }
  source->fillComplete();
  Teuchos::Array<std::size_t> most(Komvos::Impl::localLength(*from), 1);
  if (from->isNodeGlobalElement(n / 2)) {
    most[static_cast<Teuchos::Ordinal>(from->getLocalElement(n / 2))] = static_cast<std::size_t>(n);
  }
  const auto dense = rcp(new Matrix(from, most()));
  for (const GO row : globalIds(*from)) {
    dense->insertGlobalValues(row, Teuchos::tuple<GO>(row), Teuchos::tuple(1.0));
  }
  if (from->isNodeGlobalElement(n / 2)) {
    std::vector<GO> columns;
    std::vector<double> values;
    for (GO column = 0; column < n; column += 2) {
      if (column != n / 2) {
        columns.push_back(column);
        values.push_back(0.001 * static_cast<double>(column));
      }
    }
    dense->insertGlobalValues(n / 2, Teuchos::ArrayView<const GO>(columns.data(), columns.size()),
                              Teuchos::ArrayView<const double>(values.data(), values.size()));
  }
  dense->fillComplete();
  for (const auto& matrix : {source, dense}) {
    const Import import(from, to);
    const auto expected = Tpetra::importAndFillCompleteCrsMatrix<Matrix>(RCP<const Matrix>(matrix), import, from, from);
    RowTransfer<> transfer(import, optionsFor(topologiesFor(comm->getSize()).back(), RouteChoice::threeStep));
    const auto target = transfer.transfer(*matrix, Tpetra::REPLACE);
    EXPECT_TRUE(sameBits(entriesOf(*expected), entriesOf(*target)));
    matrix->resumeFill();
    matrix->scale(3.0);
    matrix->fillComplete();
    transfer.transferValues(*matrix, *target);
    const auto scaled = Tpetra::importAndFillCompleteCrsMatrix<Matrix>(RCP<const Matrix>(matrix), import, from, from);
    EXPECT_TRUE(sameBits(entriesOf(*scaled), entriesOf(*target)));
  }
}

TEST(RowTransfer, RefusesOnAllRanksWhatOneGetsWrong) {
  const auto comm = Tpetra::getDefaultComm();
  const int last = comm->getSize() - 1;
  const GO n = 10 * comm->getSize();
  const auto from = rowsOf(n, false, false, 14, comm), to = rowsOf(n, true, false, 15, comm);
  const auto good = makeMatrix(from, from, skewed(n, 16), n);
  const auto other = makeMatrix(to, to, skewed(n, 16), n);
  RowTransfer<> transfer(Import(from, to));
  const auto open = rcp(new Matrix(from, 3));
  const auto onLast = [&](const RCP<Matrix>& wrong) { return comm->getRank() == last ? wrong : good; };
  for (const auto& wrong : {std::pair<RCP<Matrix>, std::string>(open, "not fill-complete"),
                            std::pair<RCP<Matrix>, std::string>(other, "another map")}) {
    const std::string said = commonError(wrong.second, [&] { transfer.transfer(*onLast(wrong.first), Tpetra::REPLACE); });
    EXPECT_NE(std::string::npos, said.find("rank " + std::to_string(last))) << said;
  }
  commonError("none of ADD", [&] { transfer.transfer(*good, Tpetra::ABSMAX); });
  const auto narrow = rowsOf(n / 2, false, false, 17, comm);
  commonError("domain map has no index", [&] { transfer.transfer(*good, Tpetra::REPLACE, narrow, from); });
  // It can be used afterwards.
  EXPECT_EQ(n, static_cast<GO>(transfer.transfer(*good, Tpetra::REPLACE)->getGlobalNumRows()));
}

TEST(RowTransfer, RefusesOnAllRanksArraysThatDoNotFitOnOne) {
  using Device = RowTransfer<>::device_type;
  const auto comm = Tpetra::getDefaultComm();
  const int last = comm->getSize() - 1;
  const auto map = rcp(new Map(2 * comm->getSize(), 0, comm));
  RowTransfer<> transfer(Export(map, map));
  const auto arraysWith = [&](std::vector<std::size_t> ofLast, std::size_t columns) {
    const std::vector<std::size_t> offsets = comm->getRank() == last ? ofLast : std::vector<std::size_t>{0, 1, 3};
    const Kokkos::View<std::size_t*, Device> offset("offset", offsets.size());
    Kokkos::deep_copy(offset, Kokkos::View<const std::size_t*, Kokkos::HostSpace>(offsets.data(), offsets.size()));
    return RowTransfer<>::Arrays{offset, Kokkos::View<GO*, Device>("columns", columns),
                                 Kokkos::View<double*, Device>("values", 3)};
  };
  for (const auto& [offsets, columns, words] :
       {std::tuple<std::vector<std::size_t>, std::size_t, std::string>({0, 5, 3}, 3, "must not decrease"),
        {{0, 1}, 3, "2 offsets for 2 rows"},
        {{0, 1, 4}, 3, "offsets end at 4"}}) {
    const std::string said = commonError(
        words, [&, o = offsets, c = columns] { transfer.transfer(arraysWith(o, c), Tpetra::ADD, map, map); });
    EXPECT_NE(std::string::npos, said.find("rank " + std::to_string(last))) << said;
  }
  commonError("none is given", [&] { transfer.transfer(arraysWith({0, 1, 3}, 3), Tpetra::ADD, map, Teuchos::null); });
  EXPECT_EQ(map->getGlobalNumElements(),
            transfer.transfer(arraysWith({0, 1, 3}, 3), Tpetra::ADD, map, map)->getGlobalNumEntries());
}

TEST(RowTransfer, KnowsNoTargetAfterATransferThatFailed) {
  const auto comm = Tpetra::getDefaultComm();
  const GO n = 10 * comm->getSize();
  const auto from = rowsOf(n, false, false, 14, comm), to = rowsOf(n, true, false, 15, comm);
  const auto good = makeMatrix(from, from, skewed(n, 16), n);
  RowTransfer<> transfer(Import(from, to));
  const auto target = transfer.transfer(*good, Tpetra::REPLACE);
  transfer.transferValues(*good, *target);
  const auto narrow = rowsOf(n / 2, false, false, 17, comm);
  commonError("domain map has no index", [&] { transfer.transfer(*good, Tpetra::REPLACE, narrow, from); });
  EXPECT_THROW(transfer.transferValues(*good, *target), Komvos::Error);
  const auto again = transfer.transfer(*good, Tpetra::REPLACE);
  transfer.transferValues(*good, *again);
}

/// As many entries as before, in other rows: they would not fit into the messages.
TEST(RowTransfer, RefusesValuesOfRowsOfOtherLengths) {
  const auto comm = Tpetra::getDefaultComm();
  const GO n = 10 * comm->getSize();
  const auto from = rcp(new Map(n, 0, comm));
  const auto to = withRowsOfOthers(from, n, 19);
  const auto matrixWith = [&](int longRow) {
    const RowEntries entries = [&](GO row, const std::function<void(GO, double)>& add) {
      for (GO column = 0; column < (from->getLocalElement(row) == longRow ? 8 : 2); ++column) {
        add(column, 1.0);
      }
    };
    return makeMatrix(from, from, entries, 8);
  };
  const auto first = matrixWith(0), other = matrixWith(1);
  ASSERT_EQ(Komvos::Impl::localEntries(*first), Komvos::Impl::localEntries(*other));
  RowTransfer<> transfer(Import(from, to));
  const auto target = transfer.transfer(*first, Tpetra::REPLACE);
  EXPECT_THROW(transfer.transferValues(*other, *target), PlanMismatch);
  comm->barrier();
  transfer.transferValues(*first, *target);
}

/// Arrays may have room for more: then only the last offset says that the last row has grown.
TEST(RowTransfer, RefusesValuesOfALastRowThatHasGrown) {
  using Device = RowTransfer<>::device_type;
  const auto comm = Tpetra::getDefaultComm();
  const int rank = comm->getRank();
  const GO n = 10 * comm->getSize();
  const auto unique = rcp(new Map(n, 0, comm));
  const Kokkos::View<GO*, Device> columns("columns", 30000);
  const Kokkos::View<double*, Device> values("values", 30000);
  for (const bool travels : {false, true}) {
    std::vector<GO> rows = globalIds(*unique);
    if (travels && comm->getSize() > 1) {
      rows.push_back((10 * rank + 15) % n);  // the next rank's
    }
    const auto shared = makeMap(rows, comm);
    const auto arraysWith = [&](std::size_t inLast) {
      const Kokkos::View<std::size_t*, Device> offset("offset", rows.size() + 1);
      const auto host = Kokkos::create_mirror_view(offset);
      for (std::size_t i = 0; i <= rows.size(); ++i) {
        host(i) = i < rows.size() ? 3 * i : 3 * (i - 1) + inLast;
      }
      Kokkos::deep_copy(offset, host);
      return RowTransfer<>::Arrays{offset, columns, values};
    };
    RowTransfer<> transfer(Export(shared, unique));
    const auto target = transfer.transfer(arraysWith(3), Tpetra::ADD, unique, unique);
    EXPECT_THROW(transfer.transferValues(arraysWith(25000), *target), PlanMismatch) << travels;
    comm->barrier();
    transfer.transferValues(arraysWith(3), *target);
  }
}

/// Tpetra lists them as remote, from no rank, where each rank has all rows.
TEST(RowTransfer, MakesEmptyRowsOfThoseThatNobodyOwns) {
  const auto comm = Tpetra::getDefaultComm();
  const GO n = 12;
  for (const auto& from : {rcp(new Map(n, 0, comm, Tpetra::LocallyReplicated)), rcp(new Map(n, 0, comm))}) {
    std::vector<GO> rows = globalIds(*from);
    rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2), n + 3);
    const auto to = makeMap(rows, comm);
    const auto domain = rcp(new Map(n, 0, comm));
    const auto source = makeMatrix(from, domain, skewed(n, 27), n);
    RowTransfer<> transfer(Import(from, to));
    const auto target = transfer.transfer(*source, Tpetra::REPLACE, domain, domain);
    const Entries wanted = entriesOf(*source);
    EXPECT_TRUE(sameBits(wanted, entriesOf(*target)));
    source->resumeFill();
    source->scale(2);
    source->fillComplete(domain, domain);
    transfer.transferValues(*source, *target);
    EXPECT_TRUE(sameBits(entriesOf(*source), entriesOf(*target)));
  }
}

TEST(RowTransfer, TakesNoRouteFromATuningCache) {
  const Variable file("KOMVOS_TUNING_CACHE", "no such file");
  const Variable strict("KOMVOS_REQUIRE_TUNING_CACHE", "1");
  const auto comm = Tpetra::getDefaultComm();
  const GO n = 10 * comm->getSize();
  const auto from = rowsOf(n, false, false, 28, comm);
  RowTransfer<> transfer(Import(from, withRowsOfOthers(from, n, 29)));
  EXPECT_EQ("standard", transfer.plan().route);
  transfer.transfer(*makeMatrix(from, from, skewed(n, 30), n), Tpetra::REPLACE);
}

TEST(RowTransfer, LetsNobodyWaitIfOneCannotTransferValues) {
  const auto comm = Tpetra::getDefaultComm();
  const GO n = 10 * comm->getSize();
  const auto from = rowsOf(n, false, false, 18, comm);
  const auto to = withRowsOfOthers(from, n, 19);
  const auto good = makeMatrix(from, from, skewed(n, 20), n);
  RowTransfer<> transfer(Import(from, to));
  EXPECT_THROW(transfer.transferValues(*good, *good), Komvos::Error);
  const auto target = transfer.transfer(*good, Tpetra::REPLACE);
  const int rank = comm->getRank();
  const auto wrong = rank == 0 ? good : target;  // of another graph
  bool threw = false;
  try {
    transfer.transferValues(*good, *wrong);
  } catch (const PlanMismatch& mismatch) {
    threw = true;
    if (rank == 0) {
      EXPECT_NE(std::string::npos, std::string(mismatch.what()).find("graph")) << mismatch.what();
    }
  }
  const auto& receives = transfer.plan().receives;
  const bool getsFromZero = std::any_of(receives.begin(), receives.end(), [](const auto& m) { return m.peer == 0; });
  EXPECT_EQ(rank == 0 || getsFromZero, threw);
  comm->barrier();
  transfer.transferValues(*good, *target);
}

/// At each allocation, kernel and copy of ours in turn, on one rank: either all have an error, or none.
/// \return how often one failed
int failsOnAll(const Teuchos::Comm<int>& comm, const std::function<void()>& work) {
  return failInTurn(comm.getSize() / 2, "Komvos", work, expectErrorOnAllOrNone);
}

TEST(RowTransfer, LetsNobodyWaitIfOneHasNoMemory) {
  const auto comm = Tpetra::getDefaultComm();
  const GO n = 10 * comm->getSize();
  const auto from = rowsOf(n, false, false, 51, comm);
  const auto to = withRowsOfOthers(from, n, 52);
  const auto source = makeMatrix(from, from, skewed(n, 53), n);
  const auto expected =
      entriesOf(*Tpetra::importAndFillCompleteCrsMatrix<Matrix>(source, Import(from, to), from, from));
  RowTransfer<> transfer(Import(from, to));
  RCP<Matrix> target;
  EXPECT_GT(failsOnAll(*comm, [&] { target = transfer.transfer(*source, Tpetra::REPLACE); }), 20);
  EXPECT_TRUE(sameBits(expected, entriesOf(*target)));
  // Lists for values are made when they are needed for the first time, which fails, too.
  const auto failures = failInTurn(
      comm->getSize() / 2, "", [&] { transfer.transferValues(*source, *target); }, [](Thrown) {});
  EXPECT_GT(failures, comm->getSize() > 1 ? 5 : 1);
  Kokkos::deep_copy(target->getLocalMatrixDevice().values, NAN);
  transfer.transferValues(*source, *target);
  EXPECT_TRUE(sameBits(expected, entriesOf(*target)));
}

TEST(RowTransfer, LetsNobodyWaitIfOneHasNoMemoryForArrays) {
  const auto comm = Tpetra::getDefaultComm();
  const GO n = 10 * comm->getSize() + 3;
  const auto unique = rowsOf(n, true, false, 54, comm);
  const auto shared = withRowsOfOthers(unique, n, 55);
  const Export exporter(shared, unique);
  const auto given = Contributions(*shared, n, 1).arrays();
  const auto expected = entriesOf(*RowTransfer<>(exporter).transfer(given, Tpetra::ADD, unique, unique));
  RowTransfer<> transfer(exporter);
  RCP<Matrix> target;
  EXPECT_GT(failsOnAll(*comm, [&] { target = transfer.transfer(given, Tpetra::ADD, unique, unique); }), 20);
  EXPECT_TRUE(sameBits(expected, entriesOf(*target)));
  const auto failures = failInTurn(
      comm->getSize() / 2, "", [&] { transfer.transferValues(given, *target); }, [](Thrown) {});
  EXPECT_GT(failures, comm->getSize() > 1 ? 5 : 1);
  Kokkos::deep_copy(target->getLocalMatrixDevice().values, NAN);
  transfer.transferValues(given, *target);
  EXPECT_TRUE(sameBits(expected, entriesOf(*target)));
}

// What arrives is not what was packed: each word of a message in turn.
TEST(RowKernels, FindEveryWordThatIsNotAsItWasPacked) {
  using namespace Komvos::Impl;
  using Device = Komvos::DefaultNode::device_type;
  using Space = Device::execution_space;
  using Memory = Device::memory_space;
  if (!hostCanAccessBuffers<Space>()) {
    GTEST_SKIP() << "words are changed on the host";
  }
  const auto self = rcp(new Teuchos::MpiComm<int>(MPI_COMM_SELF));
  const GO n = 9;
  const auto rows = makeMap({0, 1, 2, 3, 4, 5, 6, 7, 8}, self);
  const auto matrix = makeMatrix(rows, rows, skewed(n, 21), n);
  const auto local = matrix->getLocalMatrixDevice();
  using LocalMap = Map::local_map_type;
  using Rows = MatrixRows<double, LocalMap, decltype(local.graph.row_map), decltype(local.graph.entries)>;
  const Rows source{local.graph.row_map, local.graph.entries, matrix->getColMap()->getLocalMap(), local.values.data()};
  const RowFormat<double> format{true};
  std::vector<int> row;
  std::vector<std::int64_t> first, length;
  std::vector<GO> ids;
  std::int64_t words = 0, entries = 0;
  std::vector<std::int64_t> to;
  for (int i = 0; i < n; ++i) {
    const auto count = static_cast<std::int64_t>(local.graph.row_map(i + 1) - local.graph.row_map(i));
    row.push_back(i);
    first.push_back(words);
    length.push_back(count);
    to.push_back(entries);
    ids.push_back(i);
    words += format.words(count);
    entries += count;
  }
  for (const std::int64_t perItem : {std::int64_t(4), std::int64_t(1000)}) {  // with long rows in pieces, and without
    const RowItems<Memory> items(length, perItem);
    Kokkos::View<std::uint64_t*, Memory> buffer("buffer", words);
    using Pack = PackRows<double, Rows, LocalMap, Memory>;
    const Pack pack{
        format,       source, rows->getLocalMap(), deviceList<Memory>("row", row), deviceList<Memory>("first", first),
        buffer.data()};
    Kokkos::parallel_for("labels", range(Space(), 0, static_cast<int>(items.longRows.extent(0))),
                         PackLabels<Pack, decltype(items.longRows)>{pack, items.longRows});
    forRows(Space(), "pack", items, pack);
    Kokkos::fence();
    Kokkos::View<GO*, Memory> columns("columns", entries);
    Kokkos::View<double*, Memory> values("values", entries);
    const auto broken = [&] {
      const Kokkos::View<int, Memory> wrong("wrong");
      Kokkos::deep_copy(wrong, 1000);
      using Unpack = UnpackRows<double, GO, Memory>;
      const Unpack unpack{format,
                          buffer.data(),
                          pack.first,
                          deviceList<Memory>("lengths", length),
                          deviceList<Memory>("to", to),
                          deviceList<Memory>("ids", ids),
                          Kokkos::View<std::uint64_t*, Memory>("sums", n),
                          columns.data(),
                          values.data(),
                          wrong};
      forRows(Space(), "unpack", items, unpack);
      Kokkos::parallel_for("compare", range(Space(), 0, static_cast<int>(items.longRows.extent(0))),
                           CompareSums<Unpack, decltype(items.longRows)>{unpack, items.longRows});
      Kokkos::fence();
      return wrong();
    };
    EXPECT_EQ(1000, broken());
    for (std::int64_t k = 0; k < entries; ++k) {
      EXPECT_EQ(local.values(k), values(k));
      EXPECT_EQ(matrix->getColMap()->getGlobalElement(local.graph.entries(k)), columns(k));
    }
    for (int i = 0; i < n; ++i) {
      const std::int64_t used = format.header + format.columnWords(length[i]) + length[i];
      for (std::int64_t w = 0; w < used; ++w) {
        if (w == format.header + length[i] && length[i] % 2 == 1) {
          continue;  // padding
        }
        buffer(first[i] + w) ^= 1ULL << (w % 64);
        EXPECT_EQ(i, broken()) << "word " << w;
        buffer(first[i] + w) ^= 1ULL << (w % 64);
      }
    }
    EXPECT_EQ(1000, broken());
  }
}

}  // namespace
