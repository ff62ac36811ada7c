// SuperLU_DIST 8, by its expert driver pdgssvx.
//
// The driver takes the rows, and right-hand sides, as they are distributed, with consecutive numbers; so nothing has to
// travel before it. It keeps a matrix that it has scaled and permuted, and factors on a grid of all ranks, as square as
// their number allows. Fact says what a call finds there: DOFACT nothing, SamePattern the analysis, FACTORED all.
#include <superlu_ddefs.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>

#include "Komvos_BlasThreads.hpp"
#include "Komvos_DirectEngine.hpp"
#include "Komvos_Error.hpp"

namespace Komvos::Impl {

namespace {

/// SuperLU_DIST computes with one thread while this lives, unless the user says how many. Its threads call the BLAS, so
/// there is one too where the BLAS serves only one.
class OneThread {
 public:
#ifdef _OPENMP
  OneThread() {
    if (std::getenv("OMP_NUM_THREADS") == nullptr || !threadsMayCallBlas()) {
      before_ = omp_get_max_threads();
      omp_set_num_threads(1);
    }
  }
  ~OneThread() {
    if (before_ > 0) {
      omp_set_num_threads(before_);
    }
  }

 private:
  int before_ = 0;
#endif
};

/// The number of rows of the most nearly square grid of so many ranks; at most that of columns.
int rowsOfGrid(int ranks) {
  int rows = static_cast<int>(std::sqrt(static_cast<double>(ranks)));
  while (ranks % rows != 0) {
    --rows;
  }
  return rows;
}

class SuperluDist : public DirectEngine {
 public:
  SuperluDist(MPI_Comm comm, const DirectOptions& options) {
    int ranks = 0;
    mpiCheck(MPI_Comm_size(comm, &ranks), "MPI_Comm_size");
    const int rows = rowsOfGrid(ranks);
    superlu_gridinit(comm, rows, ranks / rows, &grid_);
    set_default_options_dist(&options_);
    options_.PrintStat = NO;
    options_.num_lookaheads = std::max(1, options.lookAhead);
  }
  ~SuperluDist() override {
    freeFactors();
    freeMatrix();
    if (initialized_) {
      dScalePermstructFree(&permutation_);
      dLUstructFree(&factors_);
    }
    superlu_gridexit(&grid_);
  }

  std::string name() const override {
    return "SuperLU_DIST " + std::to_string(SUPERLU_DIST_MAJOR_VERSION) + "." +
           std::to_string(SUPERLU_DIST_MINOR_VERSION) + "." + std::to_string(SUPERLU_DIST_PATCH_VERSION);
  }

  long long mostEntries() const override { return std::numeric_limits<int_t>::max(); }

  void take(DistributedRows rows) override { given_ = std::move(rows); }

  std::string factor() override {
    dScalePermstructInit(given_.whole, given_.whole, &permutation_);
    dLUstructInit(given_.whole, &factors_);
    initialized_ = true;
    return factorAs(DOFACT);
  }

  void takeValues(std::vector<double> values) override { given_.values = std::move(values); }

  std::string refactor() override {
    freeFactors();
    freeMatrix();
    return factorAs(factored_ ? SamePattern : DOFACT);
  }

  DirectReport count() const override { return report_; }
  const std::vector<int>* rows() const override { return nullptr; }

  void reserve(int) override {}

  std::string solve(double* x, int stride, int columns) override {
    options_.Fact = FACTORED;
    // One by one: with several at once, solutions are wrong on two ranks and more after a solve with another number.
    int info = 0;
    for (int j = 0; j < columns && info == 0; ++j) {
      SuperLUStat_t statistics;
      PStatInit(&statistics);
      double backwardError = 0;
      info = drive(x + static_cast<std::ptrdiff_t>(j) * stride, stride, 1, &backwardError, statistics);
      PStatFree(&statistics);
    }
    return errorText(info);
  }

 private:
  std::string factorAs(fact_t fact) {
    setMatrix();
    options_.Fact = fact;
    SuperLUStat_t statistics;
    PStatInit(&statistics);
    double nothing = 0;
    const double start = MPI_Wtime();
    const int info = drive(&nothing, std::max(1, given_.count()), 0, &nothing, statistics);
    report_.factorSeconds = statistics.utime[FACT];
    report_.analysisSeconds = MPI_Wtime() - start - report_.factorSeconds;
    factored_ = info == 0;
    hasFactors_ = info <= given_.whole;
    if (factored_) {
      count(statistics);
    }
    PStatFree(&statistics);
    return errorText(info);
  }

  int drive(double* x, int stride, int columns, double* backwardError, SuperLUStat_t& statistics) {
    const OneThread oneThread;
    int info = 0;
    pdgssvx(&options_, &matrix_, &permutation_, x, std::max(1, stride), columns, &grid_, &factors_, &solve_,
            backwardError, &statistics, &info);
    return info;
  }

  /// The library frees what it is given, and changes it.
  void setMatrix() {
    const auto entries = static_cast<int_t>(given_.values.size());
    const int rows = given_.count();
    auto* const offsets = static_cast<int_t*>(intMalloc_dist(rows + 1));
    auto* const columns = static_cast<int_t*>(intMalloc_dist(std::max<int_t>(1, entries)));
    auto* const values = static_cast<double*>(doubleMalloc_dist(std::max<int_t>(1, entries)));
    std::copy(given_.offsets.begin(), given_.offsets.end(), offsets);
    std::copy(given_.columns.begin(), given_.columns.end(), columns);
    std::copy(given_.values.begin(), given_.values.end(), values);
    dCreate_CompRowLoc_Matrix_dist(&matrix_, given_.whole, given_.whole, entries, rows, given_.first, values, columns,
                                   offsets, SLU_NR_loc, SLU_D, SLU_GE);
    hasMatrix_ = true;
  }

  void freeMatrix() {
    if (hasMatrix_) {
      Destroy_CompRowLoc_Matrix_dist(&matrix_);
      hasMatrix_ = false;
    }
  }

  void freeFactors() {
    if (options_.SolveInitialized == YES) {
      dSolveFinalize(&options_, &solve_);
    }
    if (hasFactors_) {
      dDestroy_LU(given_.whole, &grid_, &factors_);
      hasFactors_ = false;
    }
  }

  void count(const SuperLUStat_t& statistics) {
    superlu_dist_mem_usage_t memory;
    dQuerySpace_dist(given_.whole, &factors_, &grid_, const_cast<SuperLUStat_t*>(&statistics), &memory);
    double sums[2] = {statistics.ops[FACT], 0};
    double most = memory.total;
    sums[1] = static_cast<double>(memory.for_lu) / sizeof(double);
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, grid_.comm), "MPI_Allreduce");
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, grid_.comm), "MPI_Allreduce");
    report_.library = name();
    report_.operations = sums[0];
    report_.factorEntries = static_cast<long long>(sums[1]);
    report_.largestMemory = static_cast<long long>(most);
  }

  std::string errorText(int info) const {
    const std::string start = "SuperLU_DIST: the matrix of " + std::to_string(given_.whole) + " rows ";
    if (info == 0) {
      return {};
    }
    if (info > 0 && info <= given_.whole) {
      return start + "is singular to working precision (pivot " + std::to_string(info) + " is zero)";
    }
    return info > 0 ? start + "needs more memory for its factors than there is (" +
                          std::to_string(info - given_.whole) + " bytes were refused)"
                    : start + "is refused (info = " + std::to_string(info) + ")";
  }

  DistributedRows given_;
  gridinfo_t grid_{};
  superlu_dist_options_t options_{};
  SuperMatrix matrix_{};
  dScalePermstruct_t permutation_{};
  dLUstruct_t factors_{};
  dSOLVEstruct_t solve_{};
  bool initialized_ = false;
  bool hasMatrix_ = false;
  bool hasFactors_ = false;
  bool factored_ = false;
  DirectReport report_;
};

}  // namespace

std::unique_ptr<DirectEngine> makeSuperluDist(MPI_Comm comm, const DirectOptions& options) {
  return std::make_unique<SuperluDist>(comm, options);
}

}  // namespace Komvos::Impl
