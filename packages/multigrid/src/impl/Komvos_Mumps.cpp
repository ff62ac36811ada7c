// MUMPS 5.4 and newer, by its C interface.
//
// The matrix goes in by rows as they are distributed (ICNTL(18) = 3), its upper triangle only if it is symmetric. After
// the factorization, job 9 says which rows of a right-hand side MUMPS wants on which rank (ICNTL(20) = 11); it leaves
// as many rows of the solution there (ICNTL(21) = 1): the same ones in the same order where all pivots are on the
// diagonal. So vectors never meet on one rank, and how they get there is not MUMPS' business.
#include <dmumps_c.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "Komvos_DirectEngine.hpp"
#include "Komvos_Error.hpp"

namespace Komvos::Impl {

namespace {

enum Job { analyse = 1, factorize = 2, solveForward = 3, distribute = 9, begin = -1, end = -2 };

class Mumps : public DirectEngine {
 public:
  Mumps(MPI_Comm comm, const DirectOptions& options) : comm_(comm) {
    mumps_.sym = options.symmetric ? 2 : 0;  // 2: indefinite as well
    mumps_.par = 1;                          // rank 0 works, too
    mumps_.comm_fortran = static_cast<MUMPS_INT>(MPI_Comm_c2f(comm));
    call(begin);
    for (const int stream : {1, 2, 3}) {
      icntl(stream) = -1;
    }
    icntl(4) = 0;
    icntl(18) = 3;
    icntl(20) = 11;
    icntl(21) = 1;
    constexpr long long megabyte = 1000000;
    limit_ = static_cast<int>((options.memoryLimit + megabyte - 1) / megabyte);
  }
  ~Mumps() override { call(end); }

  std::string name() const override { return std::string("MUMPS ") + mumps_.version_number; }

  long long mostEntries() const override { return std::numeric_limits<long long>::max(); }

  void take(DistributedRows rows) override {
    whole_ = rows.whole;
    rowNumbers_.clear();
    columnNumbers_.clear();
    kept_.clear();
    for (int row = 0; row < rows.count(); ++row) {
      for (int k = rows.offsets[row]; k < rows.offsets[row + 1]; ++k) {
        if (mumps_.sym == 0 || rows.columns[k] >= rows.first + row) {
          rowNumbers_.push_back(rows.first + row + 1);
          columnNumbers_.push_back(rows.columns[k] + 1);
          kept_.push_back(k);
        }
      }
    }
    mumps_.n = rows.whole;
    mumps_.nnz_loc = static_cast<MUMPS_INT8>(kept_.size());
    mumps_.irn_loc = rowNumbers_.data();
    mumps_.jcn_loc = columnNumbers_.data();
    takeValues(std::move(rows.values), {});
  }

  std::string factor() override {
    const double start = MPI_Wtime();
    call(analyse);
    analysisSeconds_ = MPI_Wtime() - start;
    return failed() ? errorText() : factorNumerically();
  }

  void takeValues(std::vector<double> values, std::vector<double>) override {
    values_.resize(kept_.size());
    std::transform(kept_.begin(), kept_.end(), values_.begin(), [&](int k) { return values[k]; });
    mumps_.a_loc = values_.data();
  }

  std::string refactor() override { return factorNumerically(); }

  DirectReport count() const override {
    DirectReport report;
    report.library = name();
    constexpr double million = 1e6;
    report.factorEntries =
        mumps_.infog[28] >= 0 ? mumps_.infog[28] : static_cast<long long>(-million * mumps_.infog[28]);
    report.operations = mumps_.rinfog[2];
    report.analysisSeconds = analysisSeconds_;
    report.factorSeconds = factorSeconds_;
    report.largestMemory = static_cast<long long>(million * mumps_.infog[20]);
    return report;
  }

  const std::vector<int>* rows() const override { return &rows_; }
  const std::vector<int>* rowsOfSolutions() const override { return &rowsOfSolutions_; }

  void reserve(int columns) override { solution_.resize(std::max<std::size_t>(1, rows_.size() * columns)); }

  std::string solve(double* x, int stride, int columns) override {
    const auto length = static_cast<std::size_t>(rows_.size());
    mumps_.nrhs = columns;
    mumps_.rhs_loc = x;
    mumps_.lrhs_loc = std::max(1, stride);
    mumps_.sol_loc = solution_.data();
    mumps_.lsol_loc = static_cast<MUMPS_INT>(std::max<std::size_t>(1, length));
    call(solveForward);
    if (failed()) {
      return errorText();
    }
    std::transform(solutionNumbers_.begin(), solutionNumbers_.begin() + static_cast<std::ptrdiff_t>(length),
                   rowsOfSolutions_.begin(), [](int number) { return number - 1; });
    for (int j = 0; j < columns; ++j) {
      std::copy_n(solution_.begin() + static_cast<std::ptrdiff_t>(j * length), length,
                  x + static_cast<std::ptrdiff_t>(j) * stride);
    }
    return {};
  }

 private:
  MUMPS_INT& icntl(int number) { return mumps_.icntl[number - 1]; }
  int infog(int number) const { return mumps_.infog[number - 1]; }
  bool failed() const { return infog(1) < 0; }
  void call(Job job) {
    mumps_.job = job;
    dmumps_c(&mumps_);
  }

  std::string factorNumerically() {
    constexpr int mostTries = 6;
    for (int tries = 0; tries < mostTries; ++tries) {
      icntl(23) = limit_;
      const double start = MPI_Wtime();
      call(factorize);
      factorSeconds_ = MPI_Wtime() - start;
      if (!isTooLittleWorkspace(infog(1))) {
        break;
      }
      icntl(14) = 2 * std::max<MUMPS_INT>(icntl(14), 20);  // per cent more than it had expected
    }
    if (failed()) {
      return errorText();
    }
    return distributeVectors();
  }

  /// Of the work arrays, or of the buffers for messages.
  static bool isTooLittleWorkspace(int code) { return code == -8 || code == -9 || code == -17 || code == -20; }

  /// Asks for the rows of right-hand sides on this rank.
  std::string distributeVectors() {
    const int length = mumps_.info[22];
    std::vector<int> wanted;
    throwOnAllIfAny(comm_, errorIn([&] {
                      wanted.resize(std::max(1, length));
                      rows_.resize(length);
                      rowsOfSolutions_.assign(rows_.size(), 0);
                      solutionNumbers_.assign(wanted.size(), 0);
                    }));
    mumps_.nloc_rhs = length;
    mumps_.lrhs_loc = std::max(1, length);
    mumps_.irhs_loc = wanted.data();
    call(distribute);
    if (failed()) {
      return errorText();
    }
    std::transform(wanted.begin(), wanted.begin() + length, rows_.begin(), [](int number) { return number - 1; });
    rhsNumbers_ = std::move(wanted);
    mumps_.irhs_loc = rhsNumbers_.data();
    mumps_.isol_loc = solutionNumbers_.data();
    return {};
  }

  std::string errorText() const {
    const int code = infog(1);
    const std::string start = "MUMPS: the matrix of " + std::to_string(whole_) + " rows ";
    switch (code) {
      case -6:
        return start + "is singular in its structure, of rank " + std::to_string(infog(2));
      case -10:
        return start + "is singular to working precision, after " + std::to_string(infog(2)) + " pivots";
      case -13:
      case -7:
        return start + "needs more memory for its factors than there is (" + amount(infog(2)) + " were refused)";
      case -8:
      case -9:
      case -19:
        return start + "needs more memory for its factors than " +
               (limit_ > 0 ? "it may take on a rank (" + std::to_string(limit_) + " MB; " : "MUMPS has asked for (") +
               amount(infog(2)) + " missing)";
      default:
        return start + "cannot be factored or solved (INFOG(1) = " + std::to_string(code) +
               ", INFOG(2) = " + std::to_string(infog(2)) + ")";
    }
  }

  /// INFO(2) counts entries, millions of them if negative.
  static std::string amount(int entries) {
    return entries >= 0 ? std::to_string(entries) + " entries" : std::to_string(-entries) + " million entries";
  }

  MPI_Comm comm_;
  DMUMPS_STRUC_C mumps_{};
  int whole_ = 0;
  double analysisSeconds_ = 0;
  double factorSeconds_ = 0;
  int limit_ = 0;          // megabytes
  std::vector<int> kept_;  // of the given entries, those that MUMPS gets
  std::vector<int> rowNumbers_, columnNumbers_;
  std::vector<double> values_;
  std::vector<int> rows_, rowsOfSolutions_;
  std::vector<int> rhsNumbers_, solutionNumbers_;  // the same, counted from 1
  std::vector<double> solution_;
};

}  // namespace

std::unique_ptr<DirectEngine> makeMumps(MPI_Comm comm, const DirectOptions& options) {
  return std::make_unique<Mumps>(comm, options);
}

}  // namespace Komvos::Impl
