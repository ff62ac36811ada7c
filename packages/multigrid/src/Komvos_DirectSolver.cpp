// How a distributed factorization is used.
//
// Rows are numbered from rank to rank, those of a rank as its map has them, which is what libraries want. A library is
// behind a DirectEngine: it gets the rows of each rank and says which rows of vectors it wants where. Where these are
// not the rank's own, a node-aware exchange carries right-hand sides there, and its reverse carries solutions back:
// each row goes to one rank, so nothing is summed. Solutions may be on other ranks than right-hand sides: then they
// have an exchange of their own.
//
// Libraries hang if a rank stays away, and so do exchanges. So all ranks agree that all is well, memory included,
// before each call and after each exchange. For a solve that costs two reductions, or four where right-hand sides
// travel: little beside a triangular solve.
#include "Komvos_DirectSolver.hpp"

#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <Tpetra_Import.hpp>
#include <Tpetra_Vector.hpp>
#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <sstream>
#include <utility>
#include <vector>

#include "Komvos_ContiguousNumbering.hpp"
#include "Komvos_DirectEngine.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_NodeAwareImport.hpp"

namespace Komvos {

namespace {

using Impl::DirectEngine;
using Impl::DistributedRows;
using Teuchos::RCP;
using Teuchos::rcp;
using Matrix = DirectSolver::crs_matrix_type;
using MultiVector = DirectSolver::multivector_type;
using Vector = Tpetra::Vector<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;
using Import = NodeAwareImport<>;

constexpr bool hasMumps =
#ifdef KOMVOS_HAVE_MUMPS
    true;
#else
    false;
#endif
constexpr bool hasSuperluDist =
#ifdef KOMVOS_HAVE_SUPERLU_DIST
    true;
#else
    false;
#endif

std::unique_ptr<DirectEngine> makeEngine(MPI_Comm comm, DirectMethod method, const DirectOptions& options) {
#ifdef KOMVOS_HAVE_MUMPS
  if (method == DirectMethod::mumps) {
    return Impl::makeMumps(comm, options);
  }
#endif
#ifdef KOMVOS_HAVE_SUPERLU_DIST
  if (method == DirectMethod::superluDist) {
    return Impl::makeSuperluDist(comm, options);
  }
#endif
  static_cast<void>(comm);
  static_cast<void>(options);
  throw BadInput("DirectSolver: Komvos was compiled without " + toString(method));
}

/// What can be refused before a library is asked. \note Collective.
void requireUsable(const Matrix& matrix, DirectMethod method, const DirectOptions& options) {
  if (!DirectSolver::isAvailable(method)) {
    throw BadInput("DirectSolver: Komvos was compiled without " + toString(method));
  }
  if (!Impl::isSquareOnOneMap(matrix)) {
    throw BadInput("DirectSolver: row, domain and range map of the matrix differ");
  }
  const auto rows = static_cast<long long>(matrix.getGlobalNumRows());
  if (rows == 0 || rows > std::numeric_limits<int>::max()) {
    throw BadInput("DirectSolver: the matrix has " + std::to_string(rows) + " rows, not 1 to 2147483647");
  }
  if (options.lookAhead < 1 || options.memoryLimit < 0) {
    throw BadInput("DirectSolver: lookAhead is " + std::to_string(options.lookAhead) + ", memoryLimit " +
                   std::to_string(options.memoryLimit) + "; at least 1 and 0");
  }
}

/// SuperLU_DIST ends the program where it meets one. \note Collective.
void requireFullRowsAndColumns(const Matrix& matrix, MPI_Comm comm) {
  const auto local = matrix.getLocalMatrixHost().graph;
  std::string empty;
  for (int row = 0; row < static_cast<int>(local.numRows()) && empty.empty(); ++row) {
    if (local.row_map(row) == local.row_map(row + 1)) {
      empty = "row " + std::to_string(matrix.getRowMap()->getGlobalElement(row));
    }
  }
  RCP<MultiVector> used;  // a column map that the user made may name columns without entries
  RCP<MultiVector> entries;
  throwOnAllIfAny(comm, Impl::errorIn([&] {
                    used = rcp(new MultiVector(matrix.getColMap(), 1));
                    entries = rcp(new MultiVector(matrix.getDomainMap(), 1));
                  }));
  {
    const auto view = used->getLocalViewHost(Tpetra::Access::OverwriteAll);
    Kokkos::deep_copy(view, 0.0);
    for (std::size_t k = 0; k < local.entries.extent(0); ++k) {
      view(local.entries(k), 0) = 1;
    }
  }
  if (const auto importer = matrix.getCrsGraph()->getImporter(); !importer.is_null()) {
    entries->doExport(*used, *importer, Tpetra::ADD_ASSIGN);
  } else {
    Tpetra::deep_copy(*entries, *used);
  }
  const auto view = entries->getLocalViewHost(Tpetra::Access::ReadOnly);
  for (std::size_t i = 0; i < view.extent(0) && empty.empty(); ++i) {
    if (view(i, 0) == 0) {
      empty = "column " + std::to_string(matrix.getDomainMap()->getGlobalElement(static_cast<int>(i)));
    }
  }
  throwOnAllIfAny(comm, empty.empty() ? ""
                                      : "DirectSolver: the matrix of " + std::to_string(matrix.getGlobalNumRows()) +
                                            " rows is singular, its " + empty + " is empty");
}

std::vector<double> valuesOf(const Matrix& matrix) {
  const auto values = matrix.getLocalMatrixHost().values;
  return {values.data(), values.data() + values.extent(0)};
}

/// \note Collective.
int firstRowOf(const Matrix& matrix, MPI_Comm comm) {
  const int count = static_cast<int>(Impl::localRows(matrix));
  int first = 0;
  mpiCheck(MPI_Exscan(&count, &first, 1, MPI_INT, MPI_SUM, comm), "MPI_Exscan");
  return first;
}

/// \param numbers of the columns here
DistributedRows rowsOf(const Matrix& matrix, int first, const std::vector<int>& numbers) {
  DistributedRows rows;
  const auto local = matrix.getLocalMatrixHost().graph;
  const int count = static_cast<int>(local.numRows());
  rows.first = first;
  rows.whole = static_cast<int>(matrix.getGlobalNumRows());
  rows.offsets.assign(1, 0);
  for (int row = 0; row < count; ++row) {
    for (auto k = local.row_map(row); k < local.row_map(row + 1); ++k) {
      rows.columns.push_back(numbers[local.entries(k)]);
    }
    rows.offsets.push_back(static_cast<int>(rows.columns.size()));
  }
  rows.values = valuesOf(matrix);
  return rows;
}

/// From the rows of the ranks to those that the engine wants.
/// \param[out] known the same as `wanted`
/// \note Collective. \throws BadInput on all ranks if one has no memory for it
std::unique_ptr<Import> makeRedistribution(MPI_Comm comm, const RCP<const Impl::LevelMap>& owned,
                                           const std::vector<int>& wanted, std::vector<int>& known,
                                           const ExchangeOptions& options) {
  std::vector<DefaultGlobalOrdinal> ids;
  throwOnAllIfAny(comm, Impl::errorIn([&] {
                    known = wanted;
                    ids.assign(wanted.begin(), wanted.end());
                  }));
  const auto there = rcp(new Impl::LevelMap(owned->getGlobalNumElements(),
                                            Teuchos::ArrayView<const DefaultGlobalOrdinal>(ids.data(), ids.size()), 0,
                                            owned->getComm()));
  return std::make_unique<Import>(Tpetra::Import<>(owned, there), options);
}

/// Not 0, and with nothing in common with the matrix; the mean is not 0 either.
double probeEntry(int row) {
  const double fraction = std::fmod(0.6180339887498949 * (row + 1.0), 1.0);
  return fraction < 0.5 ? -0.5 - fraction : 0.5 + fraction;
}

/// Rows and columns of a matrix scaled to a largest entry of 1, first rows, then columns: so that its condition does
/// not depend on units.
struct Scaling {
  RCP<Vector> rows, columns;     // largest entries: of rows, then of columns
  RCP<MultiVector> columnsHere;  // those that rows of this rank have
  double norm = 0;               // largest sum of a row, scaled

  /// \note Collective. \throws BadInput on all ranks if one has no memory for it
  Scaling(const Matrix& matrix, MPI_Comm comm) {
    throwOnAllIfAny(comm, Impl::errorIn([&] {
                      rows = rcp(new Vector(matrix.getRangeMap()));
                      columns = rcp(new Vector(matrix.getDomainMap()));
                      columnsHere = rcp(new MultiVector(matrix.getColMap(), 1));
                    }));
    const auto local = matrix.getLocalMatrixHost();
    const auto importer = matrix.getCrsGraph()->getImporter();
    MultiVector& here = *columnsHere;
    const int count = static_cast<int>(local.numRows());
    {
      const auto ofRow = rows->getLocalViewHost(Tpetra::Access::ReadWrite);
      const auto ofColumn = here.getLocalViewHost(Tpetra::Access::ReadWrite);
      for (int row = 0; row < count; ++row) {
        for (auto k = local.graph.row_map(row); k < local.graph.row_map(row + 1); ++k) {
          ofRow(row, 0) = std::max(ofRow(row, 0), std::abs(local.values(k)));
        }
        for (auto k = local.graph.row_map(row); k < local.graph.row_map(row + 1); ++k) {
          double& largest = ofColumn(local.graph.entries(k), 0);
          largest = std::max(largest, std::abs(local.values(k)) / ofRow(row, 0));
        }
      }
    }
    if (importer.is_null()) {
      Tpetra::deep_copy(*columns, here);
    } else {
      columns->doExport(here, *importer, Tpetra::ABSMAX);
      here.doImport(*columns, *importer, Tpetra::INSERT);
    }
    const auto ofRow = rows->getLocalViewHost(Tpetra::Access::ReadOnly);
    const auto ofColumn = here.getLocalViewHost(Tpetra::Access::ReadOnly);
    for (int row = 0; row < count; ++row) {
      double sum = 0;
      for (auto k = local.graph.row_map(row); k < local.graph.row_map(row + 1); ++k) {
        sum += std::abs(local.values(k)) / (ofRow(row, 0) * ofColumn(local.graph.entries(k), 0));
      }
      norm = std::max(norm, sum);
    }
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &norm, 1, MPI_DOUBLE, MPI_MAX, comm), "MPI_Allreduce");
  }

  /// Of this rank's entries, scaled.
  std::vector<double> sizesOf(const Matrix& matrix) const {
    const auto local = matrix.getLocalMatrixHost();
    const auto ofRow = rows->getLocalViewHost(Tpetra::Access::ReadOnly);
    const auto ofColumn = columnsHere->getLocalViewHost(Tpetra::Access::ReadOnly);
    std::vector<double> sizes(local.values.extent(0));
    for (int row = 0; row < static_cast<int>(local.numRows()); ++row) {
      for (auto k = local.graph.row_map(row); k < local.graph.row_map(row + 1); ++k) {
        sizes[k] = std::abs(local.values(k)) / (ofRow(row, 0) * ofColumn(local.graph.entries(k), 0));
      }
    }
    return sizes;
  }
};

/// What it takes to find out whether a solution solves: vectors of one column.
struct Trial {
  RCP<MultiVector> probe, right, residual, scaledByRow;  // on the rows of this rank
  RCP<Vector> byRow;                                     // inverse largest entries of these
  RCP<MultiVector> solutionHere;                         // on the columns of this rank

  /// \note Collective. \throws BadInput on all ranks if one has no memory for it
  Trial(const Matrix& matrix, MPI_Comm comm, const std::function<double(int)>& entryOfProbe) {
    throwOnAllIfAny(comm, Impl::errorIn([&] {
                      probe = Impl::vectorOf(matrix.getRangeMap(), entryOfProbe);
                      for (RCP<MultiVector>* vector : {&right, &residual, &scaledByRow}) {
                        *vector = rcp(new MultiVector(matrix.getRangeMap(), 1));
                      }
                      byRow = rcp(new Vector(matrix.getRangeMap()));
                      solutionHere = rcp(new MultiVector(matrix.getColMap(), 1));
                    }));
  }
};

// Of a vector of one column. Not by getVector(), which allocates.
double normOf(const MultiVector& vector) {
  double norm = 0;
  vector.norm2(Teuchos::ArrayView<double>(&norm, 1));
  return norm;
}
/// Not a number where an entry is none: normInf() alone passes over it.
double largestOf(const MultiVector& vector) {
  double sum = 0, largest = 0;
  vector.norm1(Teuchos::ArrayView<double>(&sum, 1));
  vector.normInf(Teuchos::ArrayView<double>(&largest, 1));
  return std::isfinite(sum) ? largest : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::string toString(DirectMethod method) { return method == DirectMethod::mumps ? "mumps" : "superlu-dist"; }

DirectMethod parseDirectMethod(const std::string& text) {
  for (const DirectMethod method : {DirectMethod::mumps, DirectMethod::superluDist}) {
    if (text == toString(method)) {
      return method;
    }
  }
  throw BadInput("direct method '" + text + "' is not known; there are mumps and superlu-dist");
}

struct DirectSolver::State {
  RCP<const map_type> map;
  RCP<const map_type> numbered;  // the same rows, numbered from rank to rank
  MPI_Comm comm;
  int firstRow = 0;
  std::size_t entries = 0;
  std::uint64_t places = 0;  // of this rank's entries
  ExchangeOptions exchange;
  bool symmetric;  // as was said
  std::unique_ptr<DirectEngine> engine;
  std::vector<int> rows;             // that the engine wanted last
  std::unique_ptr<Import> import;    // to these; null if they are the rank's own
  std::vector<int> rowsOfSolutions;  // where the engine left solutions last
  std::unique_ptr<Import> back;      // to these, for its reverse; null if they are those of right-hand sides
  bool knowsWhereSolutionsAre = false;
  DirectReport report;
  RCP<multivector_type> there, solution;  // where the engine wants them; on the rank's own rows
  RCP<multivector_type> solutionThere;    // where the engine leaves it, if elsewhere

  State(const crs_matrix_type& matrix, DirectMethod method, const DirectOptions& options)
      : map(matrix.getRowMap()),
        comm(Tpetra::Details::extractMpiCommFromTeuchos(*map->getComm())),
        exchange(options.exchange),
        symmetric(options.symmetric) {
    requireUsable(matrix, method, options);
    requireFullRowsAndColumns(matrix, comm);
    numbered = Impl::consecutiveMap(static_cast<int>(Impl::localRows(matrix)), map->getComm());
    engine = makeEngine(comm, method, options);
    requireFewEnoughEntries(matrix);
    firstRow = firstRowOf(matrix, comm);
    const std::vector<int> numbers = Impl::numbersOfColumns(matrix, firstRow);
    const Scaling scaling(matrix, comm);
    throwOnAllIfAny(comm, Impl::errorIn([&] {
                      DistributedRows given = rowsOf(matrix, firstRow, numbers);
                      given.sizes = scaling.sizesOf(matrix);
                      entries = given.values.size();
                      places = Impl::hashOfPlaces(matrix);
                      engine->take(std::move(given));
                    }));
    requireFactors(matrix, scaling, engine->factor());
  }

  /// \note Collective.
  void requireFewEnoughEntries(const crs_matrix_type& matrix) const {
    const auto here = static_cast<long long>(Impl::localEntries(matrix));
    const auto all = static_cast<long long>(matrix.getGlobalNumEntries());
    constexpr long long mostHere = std::numeric_limits<int>::max();
    const bool tooMany = here > mostHere || all > engine->mostEntries();
    throwOnAllIfAny(comm, !tooMany ? ""
                                   : "DirectSolver: the matrix has " + std::to_string(all) + " entries, " +
                                         std::to_string(here) + " on a rank; " + engine->name() + " takes " +
                                         std::to_string(engine->mostEntries()) + " at most, 2147483647 on a rank");
  }

  /// \param error what a factorization returned; where its factors are of no use, others are tried. \note Collective.
  void requireFactors(const crs_matrix_type& matrix, const Scaling& scaling, std::string error) {
    error = useFactors(matrix, scaling, error);
    while (!error.empty() && engine->canFactorOtherwise()) {
      error = useFactors(matrix, scaling, engine->factorOtherwise());
    }
    throwOnAllIfAny(comm, error);
  }

  /// \return an error text on all ranks, or on none \note Collective.
  std::string useFactors(const crs_matrix_type& matrix, const Scaling& scaling, const std::string& error) {
    try {
      throwOnAllIfAny(comm, error);
      report = engine->count();
      double seconds[] = {report.analysisSeconds, report.factorSeconds};
      mpiCheck(MPI_Allreduce(MPI_IN_PLACE, seconds, 2, MPI_DOUBLE, MPI_MAX, comm), "MPI_Allreduce");
      report.analysisSeconds = seconds[0];
      report.factorSeconds = seconds[1];
      redistribute();
      requireUsefulFactors(matrix, scaling);
      return {};
    } catch (const BadInput& thrown) {  // by all ranks
      return thrown.what();
    }
  }

  /// The engine may want other rows than before. \note Collective.
  void redistribute() {
    knowsWhereSolutionsAre = false;
    if (engine->rows() == nullptr) {
      return;
    }
    int changed = import == nullptr || rows != *engine->rows() ? 1 : 0;
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &changed, 1, MPI_INT, MPI_MAX, comm), "MPI_Allreduce");
    if (changed != 0) {
      import.reset();
      there = Teuchos::null;
      import = makeRedistribution(comm, numbered, *engine->rows(), rows, exchange);
    }
  }

  /// After the first solve with new factors. \note Collective.
  void learnWhereSolutionsAre() {
    const std::vector<int>& found = *engine->rowsOfSolutions();
    int differ[] = {found != rows ? 1 : 0, back == nullptr || found != rowsOfSolutions ? 1 : 0};
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, differ, 2, MPI_INT, MPI_MAX, comm), "MPI_Allreduce");
    if (differ[0] == 0) {
      back.reset();
    } else if (differ[1] != 0) {
      back.reset();
      back = makeRedistribution(comm, numbered, found, rowsOfSolutions, exchange);
    }
    solutionThere = Teuchos::null;
    throwOnAllIfAny(comm, Impl::errorIn([&] { makeRoomFor(solution->getNumVectors()); }));
    knowsWhereSolutionsAre = true;
  }

  /// From where the engine has left them.
  void carryBack() {
    if (!back) {
      import->doExport(*there, *solution, Tpetra::INSERT);
      return;
    }
    Kokkos::deep_copy(solutionThere->getLocalViewHost(Tpetra::Access::OverwriteAll),
                      there->getLocalViewHost(Tpetra::Access::ReadOnly));
    back->doExport(*solutionThere, *solution, Tpetra::INSERT);
  }

  /// Vectors for so many columns; they are kept.
  void makeRoomFor(std::size_t columns) {
    if (solution.is_null() || solution->getNumVectors() != columns) {
      solution = rcp(new multivector_type(map, columns));
      there = Teuchos::null;
    }
    if (import && there.is_null()) {
      there = rcp(new multivector_type(import->getOverlappingMap(), columns));
    }
    if (back && (solutionThere.is_null() || solutionThere->getNumVectors() != columns)) {
      solutionThere = rcp(new multivector_type(back->getOverlappingMap(), columns));
    }
  }

  std::string solveIn(multivector_type& vectors) const {
    const auto view = vectors.getLocalViewHost(Tpetra::Access::ReadWrite);
    return engine->solve(view.data(), static_cast<int>(view.stride(1)), static_cast<int>(view.extent(1)));
  }

  /// Right-hand sides become `solution`. \note Collective.
  void solve(const multivector_type& X) {
    std::string error = Impl::errorIn([&] {
      if (X.getLocalLength() != Impl::localLength(*map)) {
        throw PlanMismatch("DirectSolver: the right-hand side has " + std::to_string(X.getLocalLength()) +
                           " rows on rank " + std::to_string(map->getComm()->getRank()) + ", the matrix " +
                           std::to_string(Impl::localLength(*map)));
      }
      makeRoomFor(X.getNumVectors());
      engine->reserve(static_cast<int>(X.getNumVectors()));
      if (!import) {
        Tpetra::deep_copy(*solution, X);
      }
    });
    throwOnAllIfAny(comm, error);
    if (import) {
      error = Impl::errorIn([&] { import->doImport(X, *there, Tpetra::INSERT); });
      throwOnAllIfAny(comm, error);
      throwOnAllIfAny(comm, solveIn(*there));
      if (!knowsWhereSolutionsAre) {
        learnWhereSolutionsAre();
      }
      error = Impl::errorIn([&] { carryBack(); });
      throwOnAllIfAny(comm, error);
    } else {
      throwOnAllIfAny(comm, solveIn(*solution));
    }
  }

  /// Solves twice and looks at what comes out. Solutions that do not solve show that the library is broken. Their
  /// growth is a lower bound of the condition number; the second solve starts from the first solution, which is most of
  /// what the inverse makes large. As in CoarseSolver, no digit but perhaps one is right where the inverse of that
  /// number is at most 10 eps.
  /// \note Collective.
  void requireUsefulFactors(const crs_matrix_type& matrix, const Scaling& scaling) {
    const Trial trial(matrix, comm, [&](int i) { return probeEntry(firstRow + i); });
    multivector_type& probe = *trial.probe;
    double growth = 0;
    for (int round = 0; round < 2; ++round) {
      trial.right->elementWiseMultiply(1, *scaling.rows, probe, 0);
      const double before = normOf(probe);
      solve(*trial.right);
      probe.elementWiseMultiply(1, *scaling.columns, *solution, 0);
      requireSolution(matrix, scaling, trial);
      growth = std::max(growth, normOf(probe) / before);
      probe.scale(1 / normOf(probe));
    }
    const double inverseCondition = 1 / (scaling.norm * growth);
    if (!(inverseCondition > 10 * std::numeric_limits<double>::epsilon())) {
      std::ostringstream text;
      text << report.library << ": the matrix of " << matrix.getGlobalNumRows()
           << " rows is singular to working precision (1 / condition number " << inverseCondition << " or less)";
      throw BadInput(text.str());
    }
  }

  /// `solution` solves for `right`, whatever the condition of the matrix. Of the scaled matrix: without that, a few
  /// large rows would hide that the others are not solved.
  /// \param trial its probe is the solution, scaled as columns are \note Collective.
  void requireSolution(const crs_matrix_type& matrix, const Scaling& scaling, const Trial& trial) const {
    trial.byRow->reciprocal(*scaling.rows);
    trial.scaledByRow->elementWiseMultiply(1, *trial.byRow, *trial.right, 0);
    const double size = largestOf(*trial.scaledByRow) + largestOf(*trial.probe) * scaling.norm;
    // Not matrix.apply(): it makes a vector on the way, for which one rank may have no memory.
    if (const auto importer = matrix.getCrsGraph()->getImporter(); importer.is_null()) {
      Tpetra::deep_copy(*trial.solutionHere, *solution);
    } else {
      trial.solutionHere->doImport(*solution, *importer, Tpetra::INSERT);
    }
    matrix.localApply(*trial.solutionHere, *trial.residual);
    trial.residual->update(1, *trial.right, -1);
    trial.scaledByRow->elementWiseMultiply(1, *trial.byRow, *trial.residual, 0);
    const double error = largestOf(*trial.scaledByRow) / size;
    constexpr double worst = 1e-6;
    if (!(error < worst)) {  // also if it is not a number
      std::ostringstream text;
      text << report.library << " does not solve with the matrix of " << matrix.getGlobalNumRows()
           << " rows: it is singular, " << (symmetric ? "not symmetric, " : "")
           << "or the library is broken (backward error " << error << ")";
      throw BadInput(text.str());
    }
  }
};

bool DirectSolver::isAvailable(DirectMethod method) {
  return method == DirectMethod::mumps ? hasMumps : hasSuperluDist;
}

DirectSolver::DirectSolver(const crs_matrix_type& matrix, DirectMethod method, const DirectOptions& options)
    : state_(std::make_unique<State>(matrix, method, options)) {}
DirectSolver::~DirectSolver() = default;

Teuchos::RCP<const DirectSolver::map_type> DirectSolver::getDomainMap() const { return state_->map; }
Teuchos::RCP<const DirectSolver::map_type> DirectSolver::getRangeMap() const { return state_->map; }
const DirectReport& DirectSolver::report() const { return state_->report; }
std::size_t DirectSolver::factorEntries() const {
  return static_cast<std::size_t>(state_->report.factorEntries / state_->map->getComm()->getSize());
}
const HaloReport* DirectSolver::redistribution() const {
  if (!state_->import) {
    return nullptr;
  }
  const HaloReport& report = state_->import->report();
  return report.standard.total.interNodeMessages + report.standard.total.onNodeMessages > 0 ? &report : nullptr;
}

bool DirectSolver::hasSameGraph(const crs_matrix_type& matrix) const {
  int same = Impl::localRows(matrix) == Impl::localLength(*state_->map) &&
                     Impl::localEntries(matrix) == state_->entries && Impl::hashOfPlaces(matrix) == state_->places
                 ? 1
                 : 0;
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, state_->comm), "MPI_Allreduce");
  return same != 0;
}

void DirectSolver::refactor(const crs_matrix_type& matrix) {
  if (!hasSameGraph(matrix)) {
    throw BadInput("DirectSolver::refactor: the matrix has entries in other places than before");
  }
  const Scaling scaling(matrix, state_->comm);
  throwOnAllIfAny(state_->comm,
                  Impl::errorIn([&] { state_->engine->takeValues(valuesOf(matrix), scaling.sizesOf(matrix)); }));
  state_->requireFactors(matrix, scaling, state_->engine->refactor());
}

void DirectSolver::apply(const multivector_type& X, multivector_type& Y, Teuchos::ETransp mode, DefaultScalar alpha,
                         DefaultScalar beta) const {
  if (mode != Teuchos::NO_TRANS) {
    throw BadInput("DirectSolver::apply: only NO_TRANS");
  }
  state_->solve(X);
  Y.update(alpha, *state_->solution, beta);
}

}  // namespace Komvos
