// SuperLU_DIST 8, by its expert driver pdgssvx.
//
// The driver takes the rows, and right-hand sides, as they are distributed, with consecutive numbers; so nothing has to
// travel before it. It keeps a matrix that it has scaled and permuted, and factors on a grid of all ranks, as square as
// their number allows. Fact says what a call finds there: DOFACT nothing, SamePattern the analysis, FACTORED all.
//
// It does not pivot while it factors: rows must be permuted before, so that the diagonal is large. Its own way to find
// the permutation, MC64, is left out of Debian's library for its licence, and the one of CombBLAS needs a square grid
// of ranks. So RowMatching finds one on rank 0: SuiteSparse's BTF matches rows with columns in which they have entries
// that are large with rows and columns scaled. Where the diagonal is strong, as of most discretizations, rows stay, and
// nothing is gathered. Else those rows stay whose diagonal is strong, if they can. Where solutions are wrong all the
// same, which DirectSolver finds out, factorOtherwise() permutes more. When values change, rows are matched anew only
// where the chosen entries have become weak.
#include <btf.h>
#include <superlu_ddefs.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

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

/// Scaled, an entry that may be a pivot.
const double strongPivot = 0.01;

/// Matches rows with columns, on rank 0.
class RowMatching {
 public:
  /// \note Collective. \throws BadInput on all ranks if rank 0 has no memory for the matrix, or it has more than 2^31 -
  /// 1 entries
  RowMatching(MPI_Comm comm, const DistributedRows& rows, bool diagonalFirst) : comm_(comm), numRows_(rows.whole) {
    int ranks = 0;
    mpiCheck(MPI_Comm_size(comm, &ranks), "MPI_Comm_size");
    mpiCheck(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
    const int count = rows.count(), entries = static_cast<int>(rows.columns.size());
    std::vector<int> lengths;
    Place byRow, byEntry;
    throwOnAllIfAny(comm, errorIn([&] {
                      byRow = Place(ranks);
                      byEntry = Place(ranks);
                      columnOf_.resize(numRows_);
                      for (int row = 0; row < count; ++row) {
                        lengths.push_back(rows.offsets[row + 1] - rows.offsets[row]);
                      }
                    }));
    requireFewEnough(entries);
    byRow.gather(comm, count);
    byEntry.gather(comm, entries);
    throwOnAllIfAny(comm, errorIn([&] {
                      if (rank_ == 0) {
                        offsets_.resize(static_cast<std::size_t>(numRows_) + 1);
                        columns_.resize(byEntry.total());
                        sizes_.resize(byEntry.total());
                        large_.reserve(byEntry.total());
                        largeOffsets_.resize(static_cast<std::size_t>(numRows_) + 1);
                        match_.resize(numRows_);
                        work_.resize(5 * static_cast<std::size_t>(numRows_));
                      }
                    }));
    mpiCheck(MPI_Gatherv(lengths.data(), count, MPI_INT, rank_ == 0 ? offsets_.data() + 1 : nullptr,
                         byRow.counts.data(), byRow.first.data(), MPI_INT, 0, comm),
             "MPI_Gatherv");
    mpiCheck(MPI_Gatherv(rows.columns.data(), entries, MPI_INT, columns_.data(), byEntry.counts.data(),
                         byEntry.first.data(), MPI_INT, 0, comm),
             "MPI_Gatherv");
    mpiCheck(MPI_Gatherv(rows.sizes.data(), entries, MPI_DOUBLE, sizes_.data(), byEntry.counts.data(),
                         byEntry.first.data(), MPI_DOUBLE, 0, comm),
             "MPI_Gatherv");
    for (std::size_t row = 1; row < offsets_.size(); ++row) {
      offsets_[row] += offsets_[row - 1];
    }
    throwOnAllIfAny(comm, errorIn([&] { sortRows(diagonalFirst); }));
  }

  /// \param keepsDiagonal leaves rows where they are if their diagonal is strong, as far as possible, and looks for
  /// strong entries only; else, or where not all can be strong, the smallest one that is chosen is as large as can be,
  /// but for a factor of 2 \return how many rows are matched: all, or the matrix is singular \note Collective.
  int match(bool keepsDiagonal) {
    int matched = 0;
    if (rank_ == 0) {
      const double most = keepsDiagonal ? strongPivot : 1;
      matched = matchWith(0);
      int can = maxHalvings, cannot = -1;
      for (int halvings = 0; matched == numRows_ && can - cannot > 1; halvings = (can + cannot) / 2) {
        (matchWith(std::ldexp(most, -halvings)) == numRows_ ? can : cannot) = halvings;
      }
      if (matched == numRows_) {
        matchWith(can == maxHalvings ? 0 : std::ldexp(most, -can));
        for (int column = 0; column < numRows_; ++column) {
          columnOf_[match_[column]] = column;
        }
      }
    }
    mpiCheck(MPI_Bcast(&matched, 1, MPI_INT, 0, comm_), "MPI_Bcast");
    mpiCheck(MPI_Bcast(columnOf_.data(), numRows_, MPI_INT, 0, comm_), "MPI_Bcast");
    return matched;
  }

  /// By row, after all have been matched.
  std::vector<int> takeColumns() { return std::move(columnOf_); }

 private:
  static constexpr int maxHalvings = 64;

  /// How much comes from each rank, and where it goes on rank 0.
  struct Place {
    std::vector<int> counts, first;
    Place() = default;
    explicit Place(int ranks) : counts(ranks), first(ranks) {}
    void gather(MPI_Comm comm, int mine) {
      mpiCheck(MPI_Gather(&mine, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, comm), "MPI_Gather");
      for (std::size_t rank = 1; rank < counts.size(); ++rank) {
        first[rank] = first[rank - 1] + counts[rank - 1];
      }
    }
    std::size_t total() const {
      return static_cast<std::size_t>(first.back()) + static_cast<std::size_t>(counts.back());
    }
  };

  void requireFewEnough(long long entries) const {
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &entries, 1, MPI_LONG_LONG, MPI_SUM, comm_), "MPI_Allreduce");
    if (entries > std::numeric_limits<int>::max()) {
      throw BadInput("SuperLU_DIST: pivots of the matrix of " + std::to_string(numRows_) + " rows and " +
                     std::to_string(entries) + " entries cannot be chosen; at most 2147483647 are possible");
    }
  }

  /// Large entries first: BTF takes the first column that is free. \param diagonalFirst before them, if it is strong
  void sortRows(bool diagonalFirst) {
    std::vector<std::pair<double, int>> row;
    for (int i = 0; i < static_cast<int>(offsets_.size()) - 1; ++i) {
      row.clear();
      for (int k = offsets_[i]; k < offsets_[i + 1]; ++k) {
        row.emplace_back(sizes_[k] > 0 ? sizes_[k] : 0.0, columns_[k]);  // nothing that is not a number
      }
      const auto rank = [&](const auto& entry) {
        return diagonalFirst && entry.second == i && entry.first >= strongPivot ? 2.0 : entry.first;
      };
      std::stable_sort(row.begin(), row.end(), [&](const auto& a, const auto& b) { return rank(a) > rank(b); });
      for (std::size_t k = 0; k < row.size(); ++k) {
        std::tie(sizes_[offsets_[i] + k], columns_[offsets_[i] + k]) = row[k];
      }
    }
  }

  /// With entries that are not 0, and at least this large. BTF's columns are our rows. It searches without end where
  /// many rows cannot be matched: then as if fewer could be.
  int matchWith(double smallest) {
    large_.clear();
    std::fill(match_.begin(), match_.end(), 0);
    int rows = 0, columns = 0;  // with such an entry
    for (int row = 0; row < numRows_; ++row) {
      for (int k = offsets_[row]; k < offsets_[row + 1]; ++k) {
        if (sizes_[k] == 0 || sizes_[k] < smallest) {
          continue;
        }
        large_.push_back(columns_[k]);
        columns += match_[columns_[k]] == 0 ? 1 : 0;
        match_[columns_[k]] = 1;
      }
      largeOffsets_[row + 1] = static_cast<int>(large_.size());
      rows += largeOffsets_[row + 1] > largeOffsets_[row] ? 1 : 0;
    }
    if (std::min(rows, columns) < numRows_) {
      return std::min(rows, columns);
    }
    const double mostWork = smallest > 0 ? 20 : 0;  // for each entry; 0: no limit
    double work = 0;
    return btf_maxtrans(numRows_, numRows_, largeOffsets_.data(), large_.data(), mostWork, &work, match_.data(),
                        work_.data());
  }

  MPI_Comm comm_;
  int rank_ = 0, numRows_;
  std::vector<int> offsets_, columns_, large_, largeOffsets_, match_, work_, columnOf_;
  std::vector<double> sizes_;
};

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

  void takeValues(std::vector<double> values, std::vector<double> sizes) override {
    given_.values = std::move(values);
    given_.sizes = std::move(sizes);
  }

  std::string refactor() override {
    const bool isNew = onAnyRank(!factored_ || smallestPivot() < leastPivot_);
    pivots_ = isNew ? Pivots::notChosen : pivots_;
    pivotsAreOfTheseValues_ = false;
    return factorAnew(isNew ? DOFACT : SamePattern);
  }

  bool canFactorOtherwise() const override {
    return !isHopeless_ && (!pivotsAreOfTheseValues_ || pivots_ != Pivots::largest);
  }

  std::string factorOtherwise() override {
    pivots_ = !pivotsAreOfTheseValues_      ? Pivots::notChosen
              : pivots_ == Pivots::diagonal ? Pivots::strong
                                            : Pivots::largest;
    return factorAnew(DOFACT);
  }

  DirectReport count() const override { return report_; }
  const std::vector<int>* rows() const override { return nullptr; }

  void reserve(int) override {}

  std::string solve(double* x, int stride, int columns) override {
    if (!factored_) {  // on no rank
      return "SuperLU_DIST: there are no factors, the last factorization failed";
    }
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
  enum class Pivots { notChosen, diagonal, strong, largest };

  std::string factorAnew(fact_t fact) {
    freeFactors();
    freeMatrix();
    return factorAs(fact);
  }

  std::string factorAs(fact_t fact) {
    factored_ = false;
    if (fact == DOFACT) {
      if (std::string error = permuteRows(); !error.empty()) {
        return error;
      }
    }
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
    isHopeless_ = info < 0 || info > given_.whole;
    if (factored_) {
      count(statistics);
    }
    PStatFree(&statistics);
    return errorText(info);
  }

  bool onAnyRank(bool mine) const {
    int any = mine ? 1 : 0;
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, grid_.comm), "MPI_Allreduce");
    return any != 0;
  }

  /// Of the rows of this rank: scaled, the smallest entry in a column that a row is matched with. 0: one has none.
  double smallestPivot() const {
    double smallest = 1;
    for (int row = 0; row < given_.count(); ++row) {
      const int column = columnOf_.empty() ? given_.first + row : columnOf_[given_.first + row];
      double pivot = 0;
      for (int k = given_.offsets[row]; k < given_.offsets[row + 1]; ++k) {
        pivot = given_.columns[k] == column && given_.sizes[k] > 0 ? given_.sizes[k] : pivot;
      }
      smallest = std::min(smallest, pivot);
    }
    return smallest;
  }

  /// \return an error text on all ranks, or nothing \note Collective.
  std::string permuteRows() {
    columnOf_.clear();
    leastPivot_ = strongPivot;
    options_.RowPerm = NOROWPERM;
    pivotsAreOfTheseValues_ = true;
    if (pivots_ == Pivots::notChosen) {
      pivots_ = onAnyRank(smallestPivot() < strongPivot) ? Pivots::strong : Pivots::diagonal;
    }
    if (pivots_ == Pivots::diagonal) {
      return {};
    }
    const bool keepsDiagonal = pivots_ == Pivots::strong;
    RowMatching matching(grid_.comm, given_, keepsDiagonal);
    const int matched = matching.match(keepsDiagonal);
    if (matched < given_.whole) {
      isHopeless_ = true;
      return "SuperLU_DIST: the matrix of " + std::to_string(given_.whole) + " rows is singular, not more than " +
             std::to_string(matched) + " of its rows can be matched with columns in which they have entries";
    }
    columnOf_ = matching.takeColumns();
    options_.RowPerm = MY_PERMR;
    std::copy(columnOf_.begin(), columnOf_.end(), permutation_.perm_r);
    double smallest = smallestPivot();
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &smallest, 1, MPI_DOUBLE, MPI_MIN, grid_.comm), "MPI_Allreduce");
    leastPivot_ = std::min(strongPivot, smallest / 2);  // else rows would be matched anew each time
    return {};
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

  std::vector<int> columnOf_;  // that a row is matched with, by row of the whole matrix; empty: its diagonal
  DistributedRows given_;
  double leastPivot_ = strongPivot;  // below this, rows are matched anew
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
  Pivots pivots_ = Pivots::notChosen;
  bool pivotsAreOfTheseValues_ = false;  // not of those of an earlier factorization
  bool isHopeless_ = false;              // however rows are permuted
  DirectReport report_;
};

}  // namespace

std::unique_ptr<DirectEngine> makeSuperluDist(MPI_Comm comm, const DirectOptions& options) {
  return std::make_unique<SuperluDist>(comm, options);
}

}  // namespace Komvos::Impl
