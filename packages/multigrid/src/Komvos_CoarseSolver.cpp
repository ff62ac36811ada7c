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
#include <limits>
#include <sstream>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_Exchange.hpp"
#include "Komvos_NodeAwareImport.hpp"

namespace Komvos {

namespace {

/// KLU's factors of a matrix given by rows. KLU wants columns: it gets the transpose and solves transposed.
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
  std::string factor(std::vector<int> offsets, std::vector<int> columns, std::vector<double> values) {
    rows_ = static_cast<int>(offsets.size()) - 1;
    if (rows_ == 0) {
      return {};
    }
    const std::string what = "CoarseSolver: the coarse matrix of " + std::to_string(rows_) + " rows ";
    symbolic_ = klu_analyze(rows_, offsets.data(), columns.data(), &common_);
    if (symbolic_ != nullptr) {
      numeric_ = klu_factor(offsets.data(), columns.data(), values.data(), symbolic_, &common_);
    }
    if (numeric_ == nullptr && common_.status != KLU_SINGULAR) {
      return what + "cannot be factored (KLU status " + std::to_string(common_.status) + ")";
    }
    double rcond = 0;
    if (numeric_ != nullptr && klu_rcond(symbolic_, numeric_, &common_) != 0) {
      rcond = common_.rcond;
    }
    // Rounding leaves a singular matrix with a smallest pivot of about this size.
    const double singular = rows_ * std::numeric_limits<double>::epsilon();
    if (rcond > singular) {
      return {};
    }
    std::ostringstream text;
    text << what << "is singular (smallest over largest pivot " << rcond
         << "); choose an iterative \"coarse: type\", for example RELAXATION";
    return text.str();
  }

  /// Solves in place. \param x [rows x numColumns], columns `stride` apart
  void solve(double* x, int stride, int numColumns) {
    if (rows_ > 0 && klu_tsolve(symbolic_, numeric_, stride, numColumns, x, &common_) == 0) {
      throw Error("CoarseSolver: KLU's solve failed (status " + std::to_string(common_.status) + ")");
    }
  }

  std::size_t entries() const {
    return numeric_ == nullptr ? 0 : static_cast<std::size_t>(numeric_->lnz) + static_cast<std::size_t>(numeric_->unz);
  }

 private:
  klu_common common_;
  klu_symbolic* symbolic_ = nullptr;
  klu_numeric* numeric_ = nullptr;
  int rows_ = 0;
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
  mutable Teuchos::RCP<multivector_type> onRoot, solution;

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

  std::string factor(const crs_matrix_type& whole) {
    const auto local = whole.getLocalMatrixHost();
    const int rows = static_cast<int>(local.numRows());
    const auto toRow = whole.getColMap();
    std::vector<int> offsets(rows + 1, 0);
    std::vector<int> columns;
    std::vector<double> values;
    for (int row = 0; row < rows; ++row) {
      for (auto k = local.graph.row_map(row); k < local.graph.row_map(row + 1); ++k) {
        columns.push_back(rootMap->getLocalElement(toRow->getGlobalElement(local.graph.entries(k))));
        values.push_back(local.values(k));
      }
      offsets[row + 1] = static_cast<int>(columns.size());
    }
    return factors.factor(std::move(offsets), std::move(columns), std::move(values));
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
  if (state.onRoot.is_null() || state.onRoot->getNumVectors() != columns) {
    state.onRoot = Teuchos::rcp(new multivector_type(state.rootMap, columns));
    state.solution = Teuchos::rcp(new multivector_type(state.map, columns));
  }
  try {
    state.gather->doImport(X, *state.onRoot, Tpetra::INSERT);
    const auto x = state.onRoot->getLocalViewHost(Tpetra::Access::ReadWrite);
    state.factors.solve(x.data(), static_cast<int>(x.stride(1)), static_cast<int>(columns));
  } catch (...) {  // the others wait for the solution
    state.gather->exchange<DefaultScalar>().abandonReverse();
    throw;
  }
  state.solution->putScalar(0.0);
  state.gather->doExport(*state.onRoot, *state.solution, Tpetra::ADD_ASSIGN);
  Y.update(alpha, *state.solution, beta);
}

}  // namespace Komvos
