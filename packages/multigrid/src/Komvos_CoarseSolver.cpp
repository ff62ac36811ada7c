// How the coarsest level is solved.
//
// Some ranks solve, each with a copy of the whole matrix: one, a few, or one on each node, so that nothing has to
// travel back over the network. Rows are numbered in order of ranks, those of a rank as its map has them. Each rank
// that has rows says so to the solvers (one message to each; ranks without rows say nothing); from that both sides know
// three patterns, of which the first two are planned together:
//
//   rows      right-hand sides, from their owners to all solvers
//   back      the solution, from each solver to the ranks it serves
//   entries   entries of the matrix, as rows: first columns, then values; later values only, to factor again
//
// Lengths of rows travel along the first pattern. All of these are imports that copy; nothing is summed, so that the
// solution is the same bits on any route. Solvers that have the same matrix compute the same solution.
//
// KLU factors. An error of a solver abandons what the others wait for.
#include "Komvos_CoarseSolver.hpp"

#include <klu.h>

#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_ContiguousNumbering.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_Exchange.hpp"
#include "Komvos_NodeAwareImport.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_ResolvedOptions.hpp"
#include "Komvos_SetupTransport.hpp"

namespace Komvos {

namespace {

/// A square matrix by rows.
struct Rows {
  std::vector<int> offsets;
  std::vector<int> columns;
  std::vector<double> values;
  int size() const { return static_cast<int>(offsets.size()) - 1; }
};

/// inverse(max |v|), or 1 where there is nothing to scale.
double scaleFor(double largest) { return largest > 0 ? 1 / largest : 1; }

/// KLU's factors of a matrix given by rows. KLU wants columns: it gets the transpose and solves transposed.
///
/// The matrix is scaled first, rows and then columns to a largest entry of 1, so that its condition does not depend on
/// units. It counts as singular if the inverse of its condition number is at most 10 eps: then no digit but perhaps one
/// of a solution is right. (Singular matrices come out below 1 eps, for rounding makes them regular by so little;
/// pivots alone do not tell, theirs are up to some n eps.) KLU's estimate of the condition is Hager's, in the 1-norm of
/// what KLU gets.
class Factors {
 public:
  Factors() { klu_defaults(&common_); }
  ~Factors() {
    klu_free_numeric(&numeric_, &common_);
    klu_free_symbolic(&symbolic_, &common_);
  }
  Factors(const Factors&) = delete;
  Factors& operator=(const Factors&) = delete;

  /// \param matrix with its entries in the same places each time \return an error text, or nothing
  std::string factor(Rows matrix) {
    const int rows = matrix.size();
    if (rows == 0) {
      return {};
    }
    scale(matrix);
    if (symbolic_ == nullptr) {
      symbolic_ = klu_analyze(rows, matrix.offsets.data(), matrix.columns.data(), &common_);
    }
    return factorNumerically(matrix);
  }

  /// The same with other values in the same places; the pivots stay if they are still good.
  /// \return an error text, or nothing
  std::string refactor(Rows matrix) {
    if (numeric_ == nullptr) {
      return factor(std::move(matrix));
    }
    scale(matrix);
    const bool done = klu_refactor(matrix.offsets.data(), matrix.columns.data(), matrix.values.data(), symbolic_,
                                   numeric_, &common_) != 0 &&
                      klu_rgrowth(matrix.offsets.data(), matrix.columns.data(), matrix.values.data(), symbolic_,
                                  numeric_, &common_) != 0;
    constexpr double worstGrowth = 1e-8;  // of entries in elimination, inverted
    return done && common_.rgrowth > worstGrowth ? judge(matrix) : factorNumerically(matrix);
  }

  /// Solves in place. \param x [rows x numColumns], columns `stride` apart
  void solve(double* x, int stride, int numColumns) {
    if (rowScale_.empty()) {
      return;
    }
    multiply(x, stride, numColumns, rowScale_);
    if (klu_tsolve(symbolic_, numeric_, stride, numColumns, x, &common_) == 0) {
      throw Error("CoarseSolver: KLU's solve failed (status " + std::to_string(common_.status) + ")");
    }
    multiply(x, stride, numColumns, columnScale_);
  }

  std::size_t entries() const {
    return numeric_ == nullptr ? 0 : static_cast<std::size_t>(numeric_->lnz) + static_cast<std::size_t>(numeric_->unz);
  }

 private:
  std::string factorNumerically(Rows& matrix) {
    klu_free_numeric(&numeric_, &common_);
    if (symbolic_ != nullptr) {
      numeric_ = klu_factor(matrix.offsets.data(), matrix.columns.data(), matrix.values.data(), symbolic_, &common_);
    }
    if (numeric_ == nullptr && common_.status == KLU_OUT_OF_MEMORY) {
      return nameOf(matrix) + "needs more memory for its factors than there is";
    }
    if (numeric_ == nullptr && common_.status != KLU_SINGULAR) {
      return nameOf(matrix) + "cannot be factored (KLU status " + std::to_string(common_.status) + ")";
    }
    return judge(matrix);
  }

  static std::string nameOf(const Rows& matrix) {
    return "CoarseSolver: the coarse matrix of " + std::to_string(matrix.size()) + " rows ";
  }

  /// \return why the factors are useless, or nothing
  std::string judge(Rows& matrix) {
    double inverseCondition = 0;
    if (numeric_ != nullptr &&
        klu_condest(matrix.offsets.data(), matrix.values.data(), symbolic_, numeric_, &common_) != 0) {
      inverseCondition = 1 / common_.condest;
    }
    if (inverseCondition > 10 * std::numeric_limits<double>::epsilon()) {
      return {};
    }
    std::ostringstream text;
    text << nameOf(matrix) << "is singular to working precision (1 / condition number " << inverseCondition
         << "); choose an iterative \"coarse: type\", for example RELAXATION";
    return text.str();
  }

  void scale(Rows& matrix) {
    const int rows = matrix.size();
    rowScale_.assign(rows, 0);
    columnScale_.assign(rows, 0);
    for (int row = 0; row < rows; ++row) {
      double largest = 0;
      for (int k = matrix.offsets[row]; k < matrix.offsets[row + 1]; ++k) {
        largest = std::max(largest, std::abs(matrix.values[k]));
      }
      rowScale_[row] = scaleFor(largest);
      for (int k = matrix.offsets[row]; k < matrix.offsets[row + 1]; ++k) {
        matrix.values[k] *= rowScale_[row];
        double& largestOfColumn = columnScale_[matrix.columns[k]];
        largestOfColumn = std::max(largestOfColumn, std::abs(matrix.values[k]));
      }
    }
    std::transform(columnScale_.begin(), columnScale_.end(), columnScale_.begin(), scaleFor);
    for (std::size_t k = 0; k < matrix.values.size(); ++k) {
      matrix.values[k] *= columnScale_[matrix.columns[k]];
    }
  }

  static void multiply(double* x, int stride, int numColumns, const std::vector<double>& scale) {
    for (int j = 0; j < numColumns; ++j) {
      double* const column = x + static_cast<std::ptrdiff_t>(j) * stride;
      std::transform(scale.begin(), scale.end(), column, column, std::multiplies<>());
    }
  }

  klu_common common_;
  klu_symbolic* symbolic_ = nullptr;
  klu_numeric* numeric_ = nullptr;
  std::vector<double> rowScale_, columnScale_;  // what KLU factors is row scale * A * column scale
};

using Map = CoarseSolver::map_type;
using Matrix = CoarseSolver::crs_matrix_type;
using MultiVector = CoarseSolver::multivector_type;
using Import = NodeAwareImport<>;
using Impl::consecutiveMap;
using Impl::vectorOf;
using Teuchos::RCP;
using Teuchos::rcp;

MPI_Comm mpiOf(const Map& map) { return Tpetra::Details::extractMpiCommFromTeuchos(*map.getComm()); }

/// The rows of one rank, in the numbers of the whole matrix.
struct RankRows {
  int rank, first, count;
  int entries;
};

/// Where things are: what this rank has, and on a solver what all ranks have.
struct Layout {
  RankRows mine;
  std::vector<RankRows> all;  // ascending; on solvers only, ranks without rows are not listed
  bool solves = false;
  int rows = 0;  // of the whole matrix, on solvers; else 0
  int entries = 0;
};

Layout makeLayout(MPI_Comm comm, const CoarseSolverRanks& solvers, const Matrix& matrix) {
  MpiSetupTransport transport(comm);
  Layout layout;
  const int rank = transport.myRanks().front();
  const int rows = static_cast<int>(Impl::localRows(matrix));
  const int entries = static_cast<int>(Impl::localEntries(matrix));
  int first = 0;
  mpiCheck(MPI_Exscan(&rows, &first, 1, MPI_INT, MPI_SUM, comm), "MPI_Exscan");
  layout.mine = {rank, rank == 0 ? 0 : first, rows, entries};
  std::vector<SetupMessage> told;
  for (int s = 0; s < solvers.count(); ++s) {
    layout.solves = layout.solves || solvers.rank(s) == rank;
    if (solvers.rank(s) != rank && rows > 0) {
      told.push_back({solvers.rank(s), {layout.mine.first, rows, entries}});
    }
  }
  const auto heard = transport.exchange({std::move(told)});
  for (const SetupMessage& one : heard.front()) {
    layout.all.push_back({one.peer, one.data[0], one.data[1], one.data[2]});
  }
  if (layout.solves) {
    if (rows > 0) {
      const auto before = [rank](const RankRows& one) { return one.rank < rank; };
      layout.all.insert(std::find_if_not(layout.all.begin(), layout.all.end(), before), layout.mine);
    }
    for (const RankRows& one : layout.all) {
      layout.rows += one.count;
      layout.entries += one.entries;
    }
  }
  return layout;
}

/// From owners to all solvers: `mine` entries of this rank. \param lengthOf of a rank
template <class Length>
Import::PatternTransfer toSolvers(const Layout& layout, const CoarseSolverRanks& solvers, const RCP<const Map>& owned,
                                  const RCP<const Map>& whole, const Length& lengthOf) {
  Import::PatternTransfer transfer{owned, whole, {}, {}, {}};
  Pattern& pattern = transfer.pattern;
  pattern.rank = layout.mine.rank;
  pattern.numOwned = lengthOf(layout.mine);
  for (int s = 0; s < solvers.count(); ++s) {
    for (int i = 0; i < pattern.numOwned && solvers.rank(s) != pattern.rank; ++i) {
      pattern.sends.push_back({solvers.rank(s), i});
    }
  }
  for (const RankRows& one : layout.all) {
    for (int i = 0; i < lengthOf(one); ++i, ++pattern.numTarget) {
      if (one.rank == pattern.rank) {
        transfer.staysFrom.push_back(i);
        transfer.staysTo.push_back(pattern.numTarget);
      } else {
        pattern.receives.push_back({{one.rank, i}, pattern.numTarget});
      }
    }
  }
  return transfer;
}

/// From each solver to those it serves.
Import::PatternTransfer fromSolvers(const Layout& layout, const CoarseSolverRanks& solvers, const RCP<const Map>& owned,
                                    const RCP<const Map>& whole) {
  Import::PatternTransfer transfer{whole, owned, {}, {}, {}};
  Pattern& pattern = transfer.pattern;
  pattern.rank = layout.mine.rank;
  pattern.numOwned = layout.rows;
  pattern.numTarget = layout.mine.count;
  for (const RankRows& one : layout.all) {
    for (int i = 0;
         i < one.count && one.rank != pattern.rank && solvers.rank(solvers.solverOf(one.rank)) == pattern.rank; ++i) {
      pattern.sends.push_back({one.rank, one.first + i});
    }
  }
  for (int i = 0; i < layout.mine.count; ++i) {
    if (layout.solves) {
      transfer.staysFrom.push_back(layout.mine.first + i);
      transfer.staysTo.push_back(i);
    } else {
      pattern.receives.push_back({{solvers.rank(solvers.solverOf(pattern.rank)), layout.mine.first + i}, i});
    }
  }
  return transfer;
}

}  // namespace

CoarseSolverRanks::CoarseSolverRanks(const NodeTopology& nodes, int solvers) : nodes_(nodes) {
  const int unasked = nodes.numNodes() <= CoarseSolver::mostCopies ? nodes.numNodes() : 1;
  count_ = solvers == CoarseSolver::automatic ? unasked : std::min(solvers, nodes.numNodes());
}

int CoarseSolverRanks::rank(int solver) const {
  return nodes_.leaderOf(static_cast<int>(static_cast<std::int64_t>(solver) * nodes_.numNodes() / count_));
}

int CoarseSolverRanks::solverOf(int rank) const {
  // The last one whose node is not behind that of the rank.
  const std::int64_t node = nodes_.nodeOf(rank);
  return static_cast<int>(((node + 1) * count_ - 1) / nodes_.numNodes());
}

struct CoarseSolver::State {
  RCP<const map_type> map, wholeMap, entryMap, wholeEntryMap;
  std::unique_ptr<Import> rows, back, entries;
  Rows structure;                    // of the whole matrix, on solvers; without values
  std::uint64_t localStructure = 0;  // a hash of the rows of this rank
  Factors factors;
  RCP<multivector_type> right, solution;  // on solvers the whole vectors; the rows of this rank

  State(const crs_matrix_type& matrix, const ExchangeOptions& options, int most) : map(matrix.getRowMap()) {
    const MPI_Comm comm = mpiOf(*map);
    const bool square = Impl::isSquareOnOneMap(matrix);
    const auto entriesOfAll = static_cast<long long>(matrix.getGlobalNumEntries());
    if (most < 0) {  // the same on all ranks
      throw BadInput("CoarseSolver: " + std::to_string(most) + " ranks cannot solve");
    }
    if (!square) {  // the same on all ranks, as the number of entries is
      throw BadInput("CoarseSolver: row, domain and range map of the coarse matrix differ");
    }
    if (entriesOfAll > std::numeric_limits<int>::max()) {
      throw BadInput("CoarseSolver: the coarse matrix has " + std::to_string(entriesOfAll) +
                     " entries, too many for one rank");
    }
    const auto nodes = Impl::resolveTopology(*Impl::PrivateComm::of(comm), options.topology, options.sockets).nodes;
    const CoarseSolverRanks solvers(*nodes, most);
    const Layout layout = makeLayout(comm, solvers, matrix);
    plan(comm, layout, solvers, options, nodes->numNodes() > 1);
    std::string error;
    gatherStructure(matrix, layout, error);
    throwOnAllIfAny(comm, factor(matrix, false, error));
  }

  void plan(MPI_Comm comm, const Layout& layout, const CoarseSolverRanks& solvers, const ExchangeOptions& options,
            bool severalNodes) {
    wholeMap = consecutiveMap(layout.rows, map->getComm());
    entryMap = consecutiveMap(layout.mine.entries, map->getComm());
    wholeEntryMap = consecutiveMap(layout.entries, map->getComm());
    std::vector<Import::PatternTransfer> ofVectors, ofEntries;
    throwOnAllIfAny(
        comm, Impl::errorIn([&] {
          ofVectors.push_back(toSolvers(layout, solvers, map, wholeMap, [](const RankRows& one) { return one.count; }));
          ofVectors.push_back(fromSolvers(layout, solvers, map, wholeMap));
          ofEntries.push_back(
              toSolvers(layout, solvers, entryMap, wholeEntryMap, [](const RankRows& one) { return one.entries; }));
        }));
    auto vectors = Import::several(comm, std::move(ofVectors), options);
    rows = std::move(vectors[0]);
    back = std::move(vectors[1]);
    ExchangeOptions untuned = options;  // used two or three times
    untuned.tuning = Tuning::off;
    untuned.route = severalNodes ? RouteChoice::threeStep : RouteChoice::standard;
    untuned.pairing.reset();
    untuned.intraNode = IntraNode::messages;
    untuned.tuningCache.reset();
    untuned.record.reset();
    entries = std::move(Import::several(comm, std::move(ofEntries), untuned).front());
  }

  /// What owners have, on solvers. Takes part also where this rank has an error or gets one: then without values.
  static std::vector<double> gather(const Import& import, const std::function<double(int)>& entry, std::string& error) {
    RCP<MultiVector> mine, all;
    try {
      mine = vectorOf(import.getOwnedMap(), entry);
      all = rcp(new MultiVector(import.getOverlappingMap(), 1));
    } catch (...) {
      error = error.empty() ? Impl::textOf(std::current_exception()) : error;
    }
    try {
      if (!error.empty()) {
        import.abandonForward<DefaultScalar>();
        return {};
      }
      import.doImport(*mine, *all, Tpetra::INSERT);
      const auto view = all->getLocalViewHost(Tpetra::Access::ReadOnly);
      return {view.data(), view.data() + view.extent(0)};
    } catch (...) {
      error = error.empty() ? Impl::textOf(std::current_exception()) : error;
    }
    return {};
  }

  /// Lengths of rows, and columns.
  void gatherStructure(const crs_matrix_type& matrix, const Layout& layout, std::string& error) {
    const auto local = matrix.getLocalMatrixHost().graph;
    const std::vector<int> columnNumber = Impl::numbersOfColumns(matrix, layout.mine.first);
    const std::vector<double> lengths = gather(
        *rows, [&](int row) { return static_cast<double>(local.row_map(row + 1) - local.row_map(row)); }, error);
    const std::vector<double> columns = gather(
        *entries, [&](int entry) { return static_cast<double>(columnNumber[local.entries(entry)]); }, error);
    try {
      structure.offsets.assign(1, 0);
      for (const double length : lengths) {
        structure.offsets.push_back(structure.offsets.back() + static_cast<int>(length));
      }
      structure.columns.assign(columns.begin(), columns.end());
    } catch (...) {
      error = error.empty() ? Impl::textOf(std::current_exception()) : error;
    }
    localStructure = Impl::hashOfPlaces(matrix);
  }

  /// Factors the whole matrix on solvers. \return an error of this rank, or nothing
  std::string factor(const crs_matrix_type& matrix, bool again, std::string error) {
    const auto local = matrix.getLocalMatrixHost();
    std::vector<double> values = gather(
        *entries, [&](int entry) { return local.values(entry); }, error);
    try {
      if (error.empty()) {
        Rows whole{structure.offsets, structure.columns, std::move(values)};
        error = again ? factors.refactor(std::move(whole)) : factors.factor(std::move(whole));
      }
    } catch (...) {
      error = Impl::textOf(std::current_exception());
    }
    return error;
  }

  /// Vectors for so many columns; they are kept.
  void makeRoomFor(std::size_t columns) {
    if (solution.is_null() || solution->getNumVectors() != columns) {
      solution = Teuchos::null;
      right = rcp(new multivector_type(wholeMap, columns));
      solution = rcp(new multivector_type(map, columns));
    }
  }
};

CoarseSolver::CoarseSolver(const crs_matrix_type& matrix, const ExchangeOptions& options, int solvers)
    : state_(std::make_unique<State>(matrix, options, solvers)) {}
CoarseSolver::~CoarseSolver() = default;

Teuchos::RCP<const CoarseSolver::map_type> CoarseSolver::getDomainMap() const { return state_->map; }
Teuchos::RCP<const CoarseSolver::map_type> CoarseSolver::getRangeMap() const { return state_->map; }
std::size_t CoarseSolver::factorEntries() const { return state_->factors.entries(); }

bool CoarseSolver::hasSameGraph(const crs_matrix_type& matrix) const {
  const int same = Impl::localRows(matrix) == Impl::localLength(*state_->map) &&
                           Impl::localEntries(matrix) == Impl::localLength(*state_->entryMap) &&
                           Impl::hashOfPlaces(matrix) == state_->localStructure
                       ? 1
                       : 0;
  int onAll = 0;
  mpiCheck(MPI_Allreduce(&same, &onAll, 1, MPI_INT, MPI_MIN, mpiOf(*state_->map)), "MPI_Allreduce");
  return onAll != 0;
}

void CoarseSolver::refactor(const crs_matrix_type& matrix) {
  if (!hasSameGraph(matrix)) {
    throw BadInput("CoarseSolver::refactor: the matrix has entries in other places than before");
  }
  throwOnAllIfAny(mpiOf(*state_->map), state_->factor(matrix, true, {}));
}

void CoarseSolver::apply(const multivector_type& X, multivector_type& Y, Teuchos::ETransp mode, DefaultScalar alpha,
                         DefaultScalar beta) const {
  if (mode != Teuchos::NO_TRANS) {
    throw BadInput("CoarseSolver::apply: only NO_TRANS");
  }
  State& state = *state_;
  const std::size_t columns = X.getNumVectors();
  try {
    state.makeRoomFor(columns);
  } catch (...) {  // the others wait for right-hand sides and for the solution
    state.rows->abandonForward<DefaultScalar>();
    state.back->abandonForward<DefaultScalar>();
    throw;
  }
  try {
    state.rows->doImport(X, *state.right, Tpetra::INSERT);
    const auto x = state.right->getLocalViewHost(Tpetra::Access::ReadWrite);
    state.factors.solve(x.data(), static_cast<int>(x.stride(1)), static_cast<int>(columns));
  } catch (...) {  // the others wait for the solution
    state.back->abandonForward<DefaultScalar>();
    throw;
  }
  state.back->doImport(*state.right, *state.solution, Tpetra::INSERT);
  Y.update(alpha, *state.solution, beta);
}

}  // namespace Komvos
