// How the coarsest level is solved.
//
// Once: all global indices go to rank 0, which gets a map of them. Tpetra imports the matrix there, KLU factors it, and
// the Import between both maps becomes a NodeAwareImport for right-hand sides. Each apply gathers the right-hand side
// along it, solves on rank 0, and scatters the solution by the reverse exchange; rank 0's values are the only ones that
// are summed there. An error on rank 0 abandons the reverse exchange, so that nobody waits for a solution.
#include "Komvos_CoarseSolver.hpp"

#include <klu.h>

#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <Tpetra_Import.hpp>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_Exchange.hpp"
#include "Komvos_NodeAwareImport.hpp"

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

  /// \return an error text, or nothing
  std::string factor(Rows matrix) {
    const int rows = matrix.size();
    if (rows == 0) {
      return {};
    }
    scale(matrix);
    const std::string what = "CoarseSolver: the coarse matrix of " + std::to_string(rows) + " rows ";
    symbolic_ = klu_analyze(rows, matrix.offsets.data(), matrix.columns.data(), &common_);
    if (symbolic_ != nullptr) {
      numeric_ = klu_factor(matrix.offsets.data(), matrix.columns.data(), matrix.values.data(), symbolic_, &common_);
    }
    if (numeric_ == nullptr && common_.status != KLU_SINGULAR) {
      return what + "cannot be factored (KLU status " + std::to_string(common_.status) + ")";
    }
    double inverseCondition = 0;
    if (numeric_ != nullptr &&
        klu_condest(matrix.offsets.data(), matrix.values.data(), symbolic_, numeric_, &common_) != 0) {
      inverseCondition = 1 / common_.condest;
    }
    if (inverseCondition > 10 * std::numeric_limits<double>::epsilon()) {
      return {};
    }
    std::ostringstream text;
    text << what << "is singular to working precision (1 / condition number " << inverseCondition
         << "); choose an iterative \"coarse: type\", for example RELAXATION";
    return text.str();
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

/// All entries of `map` on rank 0, in order of rank, none elsewhere.
Teuchos::RCP<const Map> gatherMap(const Map& map) {
  const MPI_Comm comm = Tpetra::Details::extractMpiCommFromTeuchos(*map.getComm());
  const auto mine = map.getMyGlobalIndices();
  std::vector<long long> here(mine.extent(0));
  for (std::size_t i = 0; i < here.size(); ++i) {
    here[i] = static_cast<long long>(mine(i));
  }
  const int count = static_cast<int>(here.size());
  std::vector<int> counts(map.getComm()->getSize());
  mpiCheck(MPI_Gather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, comm), "MPI_Gather");
  std::vector<int> offsets(counts.size() + 1, 0);
  const bool root = map.getComm()->getRank() == 0;
  for (std::size_t i = 0; root && i < counts.size(); ++i) {
    offsets[i + 1] = offsets[i] + counts[i];
  }
  std::vector<long long> all(offsets.back());
  mpiCheck(
      MPI_Gatherv(here.data(), count, MPI_LONG_LONG, all.data(), counts.data(), offsets.data(), MPI_LONG_LONG, 0, comm),
      "MPI_Gatherv");
  const std::vector<DefaultGlobalOrdinal> ids(all.begin(), all.end());
  return Teuchos::rcp(new Map(map.getGlobalNumElements(),
                              Teuchos::ArrayView<const DefaultGlobalOrdinal>(ids.data(), static_cast<int>(ids.size())),
                              map.getIndexBase(), map.getComm()));
}

}  // namespace

struct CoarseSolver::State {
  Teuchos::RCP<const map_type> map, rootMap;
  std::unique_ptr<NodeAwareImport<>> gather;
  Factors factors;
  Teuchos::RCP<multivector_type> onRoot, solution;

  State(const crs_matrix_type& matrix, const ExchangeOptions& options) : map(matrix.getRowMap()) {
    const MPI_Comm comm = Tpetra::Details::extractMpiCommFromTeuchos(*map->getComm());
    const bool square = matrix.getDomainMap()->isSameAs(*map) && matrix.getRangeMap()->isSameAs(*map);
    throwOnAllIfAny(comm, square ? "" : "CoarseSolver: row, domain and range map of the coarse matrix differ");
    rootMap = gatherMap(*map);
    const Tpetra::Import<DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode> import(map, rootMap);
    gather = std::make_unique<NodeAwareImport<>>(import, options);
    crs_matrix_type whole(rootMap, matrix.getGlobalMaxNumRowEntries());
    whole.doImport(matrix, import, Tpetra::INSERT);
    whole.fillComplete(rootMap, rootMap);
    throwOnAllIfAny(comm, factor(whole));
  }

  /// Vectors for so many columns; they are kept.
  void makeRoomFor(std::size_t columns) {
    if (solution.is_null() || solution->getNumVectors() != columns) {
      solution = Teuchos::null;
      onRoot = Teuchos::rcp(new multivector_type(rootMap, columns));
      solution = Teuchos::rcp(new multivector_type(map, columns));
    }
  }

  std::string factor(const crs_matrix_type& whole) {
    const auto local = whole.getLocalMatrixHost();
    const int rows = static_cast<int>(local.numRows());
    const auto toRow = whole.getColMap();
    Rows matrix;
    matrix.offsets.push_back(0);
    for (int row = 0; row < rows; ++row) {
      for (auto k = local.graph.row_map(row); k < local.graph.row_map(row + 1); ++k) {
        matrix.columns.push_back(rootMap->getLocalElement(toRow->getGlobalElement(local.graph.entries(k))));
        matrix.values.push_back(local.values(k));
      }
      matrix.offsets.push_back(static_cast<int>(matrix.columns.size()));
    }
    return factors.factor(std::move(matrix));
  }
};

CoarseSolver::CoarseSolver(const crs_matrix_type& matrix, const ExchangeOptions& options)
    : state_(std::make_unique<State>(matrix, options)) {}
CoarseSolver::~CoarseSolver() = default;

Teuchos::RCP<const CoarseSolver::map_type> CoarseSolver::getDomainMap() const { return state_->map; }
Teuchos::RCP<const CoarseSolver::map_type> CoarseSolver::getRangeMap() const { return state_->map; }
std::size_t CoarseSolver::factorEntries() const { return state_->factors.entries(); }

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
    state.gather->abandonForward<DefaultScalar>();
    state.gather->abandonReverse<DefaultScalar>();
    throw;
  }
  try {
    state.gather->doImport(X, *state.onRoot, Tpetra::INSERT);
    const auto x = state.onRoot->getLocalViewHost(Tpetra::Access::ReadWrite);
    state.factors.solve(x.data(), static_cast<int>(x.stride(1)), static_cast<int>(columns));
    state.solution->putScalar(0.0);
  } catch (...) {  // the others wait for the solution
    state.gather->abandonReverse<DefaultScalar>();
    throw;
  }
  state.gather->doExport(*state.onRoot, *state.solution, Tpetra::ADD_ASSIGN);
  Y.update(alpha, *state.solution, beta);
}

}  // namespace Komvos
