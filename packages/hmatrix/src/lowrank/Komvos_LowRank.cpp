/// \file Komvos_LowRank.cpp
/// How it works: crosses (a column of the residual times a row of it) are taken off until what is left is small. The
/// norm of their sum is kept up to date from scalar products with earlier ones. Crosses are taken to 0.3 of the
/// accuracy, for that is an estimate. What recompression drops is orthogonal to what it keeps, and has nothing to do
/// with what crosses left, so it gets the rest in squares: 0.95 of the accuracy.
#include "Komvos_LowRank.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <numeric>

#include "Komvos_Lapack.hpp"

namespace Komvos {
namespace {

double squareOf(double value) { return value * value; }  // of floats, too: their squares may be no floats
double squareOf(std::complex<double> value) { return std::norm(value); }

/// a^H b
template <class Real>
double dot(const Real* a, const Real* b, std::size_t n) {
  std::array<double, 4> sums{};  // side by side, so that additions need not wait for each other
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (std::size_t s = 0; s < 4; ++s) {
      sums[s] += static_cast<double>(a[i + s]) * static_cast<double>(b[i + s]);
    }
  }
  for (; i < n; ++i) {
    sums[0] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}
std::complex<double> dot(const std::complex<double>* a, const std::complex<double>* b, std::size_t n) {
  double real = 0, imaginary = 0;
  for (std::size_t i = 0; i < n; ++i) {
    real += a[i].real() * b[i].real() + a[i].imag() * b[i].imag();
    imaginary += a[i].real() * b[i].imag() - a[i].imag() * b[i].real();
  }
  return {real, imaginary};
}

template <class Scalar>
double squaredNorm(const std::vector<Scalar>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0,
                         [](double sum, const Scalar& value) { return sum + squareOf(value); });
}

/// Takes crosses of one block.
template <class Scalar>
class CrossSearch {
 public:
  CrossSearch(const EntryKernel<Scalar>& kernel, const std::vector<int>& rows, const std::vector<int>& columns,
              bool willRecompress)
      : kernel_(kernel),
        rows_(rows),
        columns_(columns),
        rowUsed_(rows.size()),
        columnUsed_(columns.size()),
        rowSeen_(rows.size()),
        columnSeen_(columns.size()) {
    result_.rows = static_cast<int>(rows.size());
    result_.columns = static_cast<int>(columns.size());
    // From this rank on, the factors take as much memory as the block; recompression may bring them below it.
    const auto entries = static_cast<double>(rows.size()) * static_cast<double>(columns.size());
    const double evenRank = entries / static_cast<double>(rows.size() + columns.size());
    most_ = willRecompress ? std::min({result_.rows, result_.columns, static_cast<int>(1.6 * evenRank)})
                           : static_cast<int>(std::ceil(evenRank)) - 1;
  }

  /// \return whether the accuracy was reached
  bool search(double accuracy, bool plus) {
    Place next = plus ? Place{} : Place{0, -1};
    while (true) {
      if (next.isNone()) {
        next = plus && result_.rank > 0 ? referencePivot() : Place{};
        if (next.isNone()) {
          next = worstSample(accuracy);
        }
        if (next.isNone()) {
          return true;
        }
      }
      const Place pivot = complete(next);
      if (pivot.isNone()) {  // what is left there is rounding; perhaps it is everywhere
        next = worstSample(accuracy);
        if (next.isNone()) {
          return true;
        }
        continue;
      }
      if (result_.rank == most_) {
        return false;
      }
      const double step = takeCross(pivot);
      if (std::isnan(step)) {
        next = worstSample(accuracy);
        if (next.isNone()) {
          return true;
        }
        continue;
      }
      const bool isSmall = step <= accuracy * std::sqrt(squaredNorm_);
      next = isSmall || plus ? Place{} : Place{largestUnused(columnAt(result_.rank - 1), rowUsed_), -1};
      if (isSmall) {
        next = worstSample(accuracy);
        if (next.isNone()) {
          return true;
        }
      }
    }
  }

  LowRank<Scalar> result() && { return std::move(result_); }

 private:
  /// A row, a column, or both, of the block. -1: none.
  struct Place {
    int row = -1, column = -1;
    bool isNone() const { return row < 0 && column < 0; }
  };

  const Scalar* columnAt(int l) const { return result_.u.data() + static_cast<std::size_t>(l) * result_.rows; }
  const Scalar* rowAt(int l) const { return result_.v.data() + static_cast<std::size_t>(l) * result_.columns; }

  const std::vector<Scalar>& residualRow(int row) {
    if (heldRow_ == row) {
      return residualRow_;
    }
    heldRow_ = row;
    residualRow_.resize(columns_.size());
    kernel_.block(&rows_[row], 1, columns_.data(), result_.columns, residualRow_.data());
    Impl::requireFinite(residualRow_, &rows_[row], 1, columns_.data());
    for (int l = 0; l < result_.rank; ++l) {
      const Scalar factor = columnAt(l)[row];
      const Scalar* v = rowAt(l);
      for (int j = 0; j < result_.columns; ++j) {
        residualRow_[j] -= factor * v[j];
      }
    }
    return residualRow_;
  }
  const std::vector<Scalar>& residualColumn(int column) {
    if (heldColumn_ == column) {
      return residualColumn_;
    }
    heldColumn_ = column;
    residualColumn_.resize(rows_.size());
    kernel_.block(rows_.data(), result_.rows, &columns_[column], 1, residualColumn_.data());
    Impl::requireFinite(residualColumn_, rows_.data(), result_.rows, &columns_[column]);
    for (int l = 0; l < result_.rank; ++l) {
      const Scalar factor = rowAt(l)[column];
      const Scalar* u = columnAt(l);
      for (int i = 0; i < result_.rows; ++i) {
        residualColumn_[i] -= factor * u[i];
      }
    }
    return residualColumn_;
  }

  static int largestUnused(const Scalar* values, const std::vector<char>& used) {
    int place = -1;
    double most = -1;
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!used[i] && squareOf(values[i]) > most) {
        most = squareOf(values[i]);
        place = static_cast<int>(i);
      }
    }
    return place;
  }

  /// The largest entry of the residual in the row, or the column, that is given. None if all of it is zero, or so small
  /// that it is rounding of what was taken off.
  Place complete(Place place) {
    if (place.row >= 0) {
      rowUsed_[place.row] = 1;
      const auto& row = residualRow(place.row);
      place.column = largestUnused(row.data(), columnUsed_);
      return place.column >= 0 && isPivot(row[place.column]) ? place : Place{};
    }
    columnUsed_[place.column] = 1;
    const auto& column = residualColumn(place.column);
    place.row = largestUnused(column.data(), rowUsed_);
    return place.row >= 0 && isPivot(column[place.row]) ? place : Place{};
  }
  bool isPivot(Scalar value) const {
    const double rounding =
        8 * static_cast<double>(std::numeric_limits<typename Impl::RealOf<Scalar>::type>::epsilon());
    const auto entries = static_cast<double>(result_.rows) * static_cast<double>(result_.columns);
    const auto least = static_cast<double>(std::numeric_limits<typename Impl::RealOf<Scalar>::type>::min());
    return squareOf(value) > rounding * rounding * squaredNorm_ / entries && squareOf(value) >= least * least &&
           squareOf(value) > 0;  // its inverse is a number
  }

  /// Takes off the cross at a pivot.
  /// \return its norm; not a number where it would overflow: the row is used then, and nothing is taken off
  double takeCross(Place pivot) {
    std::vector<Scalar> v = residualRow(pivot.row);
    std::vector<Scalar> u = residualColumn(pivot.column);
    const Scalar scale = Scalar(1) / v[pivot.column];
    for (Scalar& value : u) {
      value *= scale;
    }
    const double ofU = squaredNorm(u), ofV = squaredNorm(v), square = ofU * ofV;
    rowUsed_[pivot.row] = 1;
    columnUsed_[pivot.column] = std::isfinite(square) ? 1 : 0;  // the column has much larger entries than the pivot
    if (!std::isfinite(square)) {
      return std::nan("");
    }
    heldRow_ = heldColumn_ = -1;  // they change by this cross
    double mixed = 0;
    for (int l = 0; l < result_.rank; ++l) {
      mixed += std::real(dot(columnAt(l), u.data(), u.size()) * dot(rowAt(l), v.data(), v.size()));
    }
    for (int i = 0; i < result_.rows; ++i) {
      rowSeen_[i].add(squareOf(u[i]) * ofV, square / result_.rows);
    }
    for (int j = 0; j < result_.columns; ++j) {
      columnSeen_[j].add(squareOf(v[j]) * ofU, square / result_.columns);
    }
    squaredNorm_ = std::max(squaredNorm_ + 2 * mixed + square, square * std::numeric_limits<double>::epsilon());
    result_.u.insert(result_.u.end(), u.begin(), u.end());
    result_.v.insert(result_.v.end(), v.begin(), v.end());
    ++result_.rank;
    return std::sqrt(square);
  }

  /// What crosses have taken off in a row or a column. Where the kernel does not couple the components of a field,
  /// crosses of one component have nothing in rows of another, and say nothing about these.
  struct Seen {
    double all = 0, last = HUGE_VAL;  ///< squared norms; of the last cross that had something here
    bool isReached() const { return last != HUGE_VAL; }
    /// \param mean of the cross in all rows, or columns
    void add(double square, double mean) {
      last = square > 1e-24 * std::max(all, mean) ? square : last;
      all += square;
    }
  };

  /// Of the unused rows, or columns, that crosses have reached, the one whose last cross was largest, if that is more
  /// than others leave behind.
  int leastSettled(const std::vector<Seen>& seen, const std::vector<char>& used, double accuracy) const {
    int place = -1;
    double most = 10 * accuracy * accuracy * squaredNorm_ / static_cast<double>(seen.size());
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!used[i] && seen[i].isReached() && seen[i].last > most) {
        most = seen[i].last;
        place = static_cast<int>(i);
      }
    }
    return place;
  }

  static std::vector<int> unused(const std::vector<char>& used, const std::vector<Seen>& seen, bool reachedToo) {
    std::vector<int> places;
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!used[i] && (reachedToo || !seen[i].isReached())) {
        places.push_back(static_cast<int>(i));
      }
    }
    return places;
  }

  /// A few of them, spread evenly; others each time, but the same in each run.
  std::vector<int> some(const std::vector<int>& places) {
    constexpr std::size_t most = 16;
    const std::size_t count = std::min(most, places.size());
    const std::size_t start = places.empty() ? 0 : (sampled_++ * 2654435761U >> 8) % places.size();
    std::vector<int> chosen;
    for (std::size_t s = 0; s < count; ++s) {
      chosen.push_back(places[(start + places.size() * s / count) % places.size()]);
    }
    return chosen;
  }

  /// Of the rows, or columns, that no cross has reached, the one with most in a few places, which no cross has reached
  /// either if there are such. All of them may be zero: to look at each as a whole would cost as much as the block.
  /// \return -1 if there is none, or nothing in these places
  int largestUnreached(bool isRow) {
    std::vector<int> rows = unused(rowUsed_, rowSeen_, false), columns = unused(columnUsed_, columnSeen_, false);
    const std::vector<int> places = isRow ? rows : columns;
    if (places.empty()) {
      return -1;
    }
    if (isRow) {
      columns = some(columns.empty() ? unused(columnUsed_, columnSeen_, true) : columns);
    } else {
      rows = some(rows.empty() ? unused(rowUsed_, rowSeen_, true) : rows);
    }
    const auto inKernel = [](std::vector<int>& chosen, const std::vector<int>& indices) {
      std::transform(chosen.begin(), chosen.end(), chosen.begin(), [&](int place) { return indices[place]; });
    };
    inKernel(rows, rows_);
    inKernel(columns, columns_);
    std::vector<Scalar> entries(rows.size() * columns.size());
    kernel_.block(rows.data(), static_cast<int>(rows.size()), columns.data(), static_cast<int>(columns.size()),
                  entries.data());
    Impl::requireFinite(entries, rows.data(), static_cast<int>(rows.size()), columns.data());
    std::vector<double> squares(places.size(), 0);  // nothing was taken off there
    for (std::size_t j = 0; j < columns.size(); ++j) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        squares[isRow ? i : j] += squareOf(entries[j * rows.size() + i]);
      }
    }
    const auto largest = std::max_element(squares.begin(), squares.end());
    return *largest > 0 ? places[largest - squares.begin()] : -1;
  }

  /// Looks at unused rows and columns, one in each of a few equal parts of the block, at the one that is least settled,
  /// and at one that no cross has reached.
  /// \return the worst of them, or none if, judged by these, the residual is below the accuracy
  Place worstSample(double accuracy) {
    const int most = squaredNorm_ > 0 ? 2 : 8;  // nothing was found yet: look closer
    Place worst;
    double worstSquare = 0;
    const auto entries = static_cast<double>(result_.rows) * static_cast<double>(result_.columns);
    const auto examine = [&](int place, bool isRow) {
      const auto& residual = isRow ? residualRow(place) : residualColumn(place);
      const double square = squaredNorm(residual) / static_cast<double>(residual.size());  // of one entry
      if (square > worstSquare) {
        worstSquare = square;
        worst = isRow ? Place{place, -1} : Place{-1, place};
      }
    };
    const auto look = [&](const std::vector<char>& used, const std::vector<Seen>& seen, bool isRow) {
      if (squaredNorm_ > 0) {
        for (const int place : {leastSettled(seen, used, accuracy), largestUnreached(isRow)}) {
          if (place >= 0) {
            examine(place, isRow);
          }
        }
      }
      const int length = static_cast<int>(used.size());
      const int samples = std::min(length, most);
      for (int s = 0; s < samples; ++s) {
        const int begin = static_cast<int>(static_cast<std::int64_t>(length) * s / samples);
        const int end = static_cast<int>(static_cast<std::int64_t>(length) * (s + 1) / samples);
        // Another place each time, but the same in each run.
        const int start = static_cast<int>((sampled_++ * 2654435761U >> 8) % static_cast<unsigned>(end - begin));
        for (int k = 0; k < end - begin; ++k) {
          const int place = begin + (start + k) % (end - begin);
          if (used[place]) {
            continue;
          }
          examine(place, isRow);
          break;
        }
      }
    };
    look(rowUsed_, rowSeen_, true);
    look(columnUsed_, columnSeen_, false);
    return worstSquare * entries > accuracy * accuracy * squaredNorm_ ? worst : Place{};
  }

  /// ACA+: the row or column with the larger entry of the residual in a reference row and a reference column, which are
  /// the unused ones in which what was taken off so far is smallest.
  Place referencePivot() {
    const auto smallestUnused = [](const Scalar* values, const std::vector<char>& used) {
      int place = -1;
      double least = 0;
      for (std::size_t i = 0; i < used.size(); ++i) {
        if (!used[i] && (place < 0 || squareOf(values[i]) < least)) {
          least = squareOf(values[i]);
          place = static_cast<int>(i);
        }
      }
      return place;
    };
    const int row = smallestUnused(columnAt(result_.rank - 1), rowUsed_);
    const int column = smallestUnused(rowAt(result_.rank - 1), columnUsed_);
    Place pivot;
    double most = 0;
    if (row >= 0) {
      const auto& values = residualRow(row);
      const int j = largestUnused(values.data(), columnUsed_);
      if (j >= 0 && squareOf(values[j]) > most) {
        most = squareOf(values[j]);
        pivot = {-1, j};
      }
    }
    if (column >= 0) {
      const auto& values = residualColumn(column);
      const int i = largestUnused(values.data(), rowUsed_);
      if (i >= 0 && squareOf(values[i]) > most) {
        pivot = {i, -1};
      }
    }
    return pivot;
  }

  const EntryKernel<Scalar>& kernel_;
  const std::vector<int>&rows_, &columns_;
  std::vector<char> rowUsed_, columnUsed_;
  std::vector<Seen> rowSeen_, columnSeen_;
  LowRank<Scalar> result_;
  double squaredNorm_ = 0;  ///< of the sum of the crosses
  int most_ = 0;
  unsigned sampled_ = 0;
  std::vector<Scalar> residualRow_, residualColumn_;
  int heldRow_ = -1, heldColumn_ = -1;  ///< whose residuals these are
};

/// The whole block as u = block, v = identity.
template <class Scalar>
LowRank<Scalar> wholeBlock(const EntryKernel<Scalar>& kernel, const std::vector<int>& rows,
                           const std::vector<int>& columns) {
  const std::size_t n = columns.size();
  LowRank<Scalar> block{static_cast<int>(rows.size()), static_cast<int>(n), static_cast<int>(n), {}, {}};
  block.u.resize(rows.size() * n);
  kernel.block(rows.data(), block.rows, columns.data(), block.columns, block.u.data());
  Impl::requireFinite(block.u, rows.data(), block.rows, columns.data());
  block.v.resize(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    block.v[i * n + i] = 1;
  }
  return block;
}

}  // namespace

template <class Scalar>
void recompress(LowRank<Scalar>& block, double accuracy) {
  if (block.rank == 0) {
    return;
  }
  const int k = block.rank;
  std::vector<Scalar> ru, rv;
  const std::vector<Scalar> qu = Impl::qr(std::move(block.u), block.rows, k, ru);
  const std::vector<Scalar> qv = Impl::qr(std::move(block.v), block.columns, k, rv);
  const int m = std::min(block.rows, k), n = std::min(block.columns, k), least = std::min(m, n);
  auto core = Impl::svd(Impl::product(m, n, k, ru.data(), rv.data(), true), m, n);
  double all = 0;
  for (const auto s : core.values) {
    all += static_cast<double>(s) * s;
  }
  int rank = least;
  for (double dropped = 0; rank > 0; --rank) {
    dropped += static_cast<double>(core.values[rank - 1]) * core.values[rank - 1];
    if (dropped > accuracy * accuracy * all) {
      break;
    }
  }
  for (int l = 0; l < rank; ++l) {
    const auto root = std::sqrt(core.values[l]);
    for (int i = 0; i < m; ++i) {
      core.left[static_cast<std::size_t>(l) * m + i] *= root;
    }
    for (int j = 0; j < n; ++j) {
      core.right[static_cast<std::size_t>(j) * least + l] *= root;
    }
  }
  // The first `rank` rows of `right`, as columns.
  std::vector<Scalar> right(static_cast<std::size_t>(n) * rank);
  for (int l = 0; l < rank; ++l) {
    for (int j = 0; j < n; ++j) {
      right[static_cast<std::size_t>(l) * n + j] = core.right[static_cast<std::size_t>(j) * least + l];
    }
  }
  block.rank = rank;
  block.u = Impl::product(block.rows, rank, m, qu.data(), core.left.data(), false);
  block.v = Impl::product(block.columns, rank, n, qv.data(), right.data(), false);
}

template <class Scalar>
std::optional<LowRank<Scalar>> approximate(const EntryKernel<Scalar>& kernel, const std::vector<int>& rows,
                                           const std::vector<int>& columns, const LowRankOptions& options) {
  LowRank<Scalar> block;
  if (options.approximation == Approximation::Svd) {
    block = wholeBlock(kernel, rows, columns);
    recompress(block, options.accuracy);
  } else {
    CrossSearch<Scalar> search(kernel, rows, columns, options.recompress);
    const double part = 0.3;
    if (!search.search(part * options.accuracy, options.approximation == Approximation::AcaPlus)) {
      return std::nullopt;
    }
    block = std::move(search).result();
    if (options.recompress) {
      recompress(block, std::sqrt(1 - part * part) * options.accuracy);
    }
  }
  const auto factors = static_cast<std::size_t>(block.rank) * (rows.size() + columns.size());
  return factors < rows.size() * columns.size() ? std::make_optional(std::move(block)) : std::nullopt;
}

#define KOMVOS_INSTANTIATE_LOW_RANK(S)                                                           \
  template void recompress(LowRank<S>&, double);                                                 \
  template std::optional<LowRank<S>> approximate(const EntryKernel<S>&, const std::vector<int>&, \
                                                 const std::vector<int>&, const LowRankOptions&);
KOMVOS_INSTANTIATE_LOW_RANK(float)
KOMVOS_INSTANTIATE_LOW_RANK(double)
KOMVOS_INSTANTIATE_LOW_RANK(std::complex<double>)
#undef KOMVOS_INSTANTIATE_LOW_RANK

}  // namespace Komvos
