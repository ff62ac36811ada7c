/// \file Komvos_HMatrix_def.hpp
/// How it works. Komvos_HMatrixState_def.hpp tells how the matrix is stored. A product takes x from the user's order to
/// the tree's, multiplies the two sets of panels, and takes y back. The transposed product goes the other way: x times
/// the second panels gives t and a part of y, and t times the first panels the rest.
/// Where half of a symmetric matrix is stored, a product is both, and blocks on the diagonal are left out of the
/// second. On CPUs the second panels are then read once: each of their columns also gives a part of the transposed
/// product, and lists say which parts are added where. So of values u and dense blocks half the bytes are read that the
/// whole matrix takes, and of v as many.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

#include "Komvos_Error.hpp"
#include "Komvos_HMatrix.hpp"
#include "Komvos_HMatrixState_def.hpp"
#include "Komvos_RequireAccuracy.hpp"

namespace Komvos {
namespace Impl {

/// Vectors between the user's order and the tree's. N vectors at a time, neighbours in memory by the tree's order.
template <class Value, class View>
struct FromUser {
  const int* user;
  View x;
  int firstVector, numVectors;
  Value* to;
  KOKKOS_INLINE_FUNCTION void operator()(int place) const {
    for (int q = 0; q < numVectors; ++q) {
      to[static_cast<std::ptrdiff_t>(place) * numVectors + q] = x(user[place], firstVector + q);
    }
  }
};

template <class Value, class View>
struct ToUser {
  const int* user;
  const Value* from;
  int firstVector, numVectors;
  View y;
  Value alpha, beta;
  KOKKOS_INLINE_FUNCTION void operator()(int place) const {
    for (int q = 0; q < numVectors; ++q) {
      Value& to = y(user[place], firstVector + q);
      const Value product = alpha * from[static_cast<std::ptrdiff_t>(place) * numVectors + q];
      to = beta == Value(0) ? product : product + beta * to;
    }
  }
};

/// Adds the parts of each place, in their order. On a CPU, whose caches are told what comes, since parts of a place are
/// far from each other.
template <class Value>
struct AddParts {
  static constexpr std::int64_t ahead = 16;

  const std::int64_t *offset, *part;
  const Value* parts;
  int numVectors;
  Value* to;
  void operator()(int place) const {
    Value* const out = to + static_cast<std::ptrdiff_t>(place) * numVectors;
    std::fill_n(out, numVectors, Value(0));
    for (std::int64_t p = offset[place]; p < offset[place + 1]; ++p) {
      prefetch(parts + part[p + ahead] * numVectors);
      const Value* const more = parts + part[p] * numVectors;
      for (int q = 0; q < numVectors; ++q) {
        out[q] += more[q];
      }
    }
  }
  static void prefetch([[maybe_unused]] const Value* at) {
#ifdef __GNUC__
    __builtin_prefetch(at);
#endif
  }
};

template <class Value>
struct ScalePlaces {
  const double* scale;
  int numVectors;
  Value* to;
  KOKKOS_INLINE_FUNCTION void operator()(int place) const {
    for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(place) * numVectors, q = 0; q < numVectors; ++q, ++i) {
      to[i] = timesScale(to[i], scale[place]);
    }
  }
};

/// to += from
template <class Value>
struct AddTo {
  const Value* from;
  int numVectors;
  Value* to;
  KOKKOS_INLINE_FUNCTION void operator()(int place) const {
    for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(place) * numVectors, q = 0; q < numVectors; ++q, ++i) {
      to[i] += from[i];
    }
  }
};

}  // namespace Impl

template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::reserve(int vectors) {
  using Kokkos::view_alloc;
  const auto length = static_cast<std::size_t>(std::max(columns, rows) + ranks) * static_cast<std::size_t>(vectors);
  if (isHalf && mirrored.extent(0) < length) {
    mirrored = values_type(view_alloc("Komvos::HMatrix::mirrored", Kokkos::WithoutInitializing), length);
  }
  if (input.extent(0) < length) {
    input = values_type(view_alloc("Komvos::HMatrix::input", Kokkos::WithoutInitializing), length);
    output = values_type(view_alloc("Komvos::HMatrix::output", Kokkos::WithoutInitializing),
                         static_cast<std::size_t>(std::max(rows, columns)) * static_cast<std::size_t>(vectors));
  }
}

/// product(first vector, number of vectors), in groups that kernels are compiled for.
template <class Scalar, class ExecutionSpace>
template <class Product>
void HMatrix<Scalar, ExecutionSpace>::State::inGroups(int vectors, const Product& product) {
  for (int done = 0; done < vectors;) {
    int group = panels_type::mostVectors;
    while (group > vectors - done) {
      group /= 2;
    }
    reserve(group);
    product(done, group);
    done += group;
  }
}

template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::prepareTransposed() {
  if (canTranspose) {
    return;
  }
  first.prepareTransposed(firstLayout, kernel, columns);
  scaleOfRanks = Impl::deviceList<memory_space>("Komvos::HMatrix::scaleOfRanks", scaleOfT);
  if (isHalf && panels_type::canMultiplyBoth) {
    std::vector<int> places = Impl::inputsOf(secondLayout);
    for (const std::int64_t column : onDiagonal) {
      places[column] = -1;
    }
    Impl::PartLists lists(columns + ranks, places);
    lists.part.resize(lists.part.size() + Impl::AddParts<value_type>::ahead);
    partOffset = Impl::deviceList<memory_space>("Komvos::HMatrix::partOffset", lists.offset);
    part = Impl::deviceList<memory_space>("Komvos::HMatrix::part", lists.part);
  } else {
    second.prepareTransposed(secondLayout, kernel, columns + ranks, onDiagonal);
  }
  canTranspose = true;
}

namespace Impl {
inline void requireBlocks(const std::vector<Block>& blocks, int rows, int columns) {
  for (const Block& b : blocks) {
    if (b.rowBegin < 0 || b.rowEnd <= b.rowBegin || b.rowEnd > rows || b.columnBegin < 0 ||
        b.columnEnd <= b.columnBegin || b.columnEnd > columns) {
      throw BadInput("HMatrix: a block of rows " + std::to_string(b.rowBegin) + " to " + std::to_string(b.rowEnd) +
                     " and columns " + std::to_string(b.columnBegin) + " to " + std::to_string(b.columnEnd) +
                     " in trees of " + std::to_string(rows) + " and " + std::to_string(columns));
    }
  }
}

/// All inside, and none twice.
inline void requirePlaces(const char* what, std::vector<int> places, int vectorLength) {
  std::sort(places.begin(), places.end());
  const auto twice = std::adjacent_find(places.begin(), places.end());
  const bool areInside = places.empty() || (places.front() >= 0 && places.back() < vectorLength);
  if (!areInside || twice != places.end()) {
    throw BadInput(std::string("HMatrix::placeIn: ") + what + " " +
                   (areInside ? "twice in place " + std::to_string(*twice)
                              : "in places " + std::to_string(places.front()) + " to " + std::to_string(places.back()) +
                                    " of a vector of " + std::to_string(vectorLength)));
  }
}
}  // namespace Impl

template <class Scalar, class ExecutionSpace>
HMatrix<Scalar, ExecutionSpace>::HMatrix(const ClusterTree& rows, const ClusterTree& columns,
                                         const EntryKernel<Scalar>& kernel, const HMatrixOptions& options)
    : state_(std::make_unique<State>()) {
  Impl::requireAccuracy<Scalar>(options.lowRank.accuracy);
  state_->isHalf = storesHalf(rows, columns, kernel, options);
  state_->blocks = blockLeaves(rows, columns, options.eta, state_->isHalf ? BlockHalf::Lower : BlockHalf::Both);
  state_->assemble(rows, columns, kernel, options);
  state_->rowPlace = Impl::deviceList<memory_space>("Komvos::HMatrix::rowPlace", rows.order());
  state_->columnPlace = Impl::deviceList<memory_space>("Komvos::HMatrix::columnPlace", columns.order());
}

template <class Scalar, class ExecutionSpace>
HMatrix<Scalar, ExecutionSpace>::HMatrix(const ClusterTree& rows, const ClusterTree& columns, std::vector<Block> blocks,
                                         const EntryKernel<Scalar>& kernel, const HMatrixOptions& options)
    : state_(std::make_unique<State>()) {
  Impl::requireAccuracy<Scalar>(options.lowRank.accuracy);
  Impl::requireBlocks(blocks, rows.size(), columns.size());
  state_->isHalf = storesHalf(rows, columns, kernel, options);
  state_->blocks = std::move(blocks);
  state_->assemble(rows, columns, kernel, options);
  const auto inOrder = [](int length) {
    std::vector<int> list(length);
    std::iota(list.begin(), list.end(), 0);
    return Impl::deviceList<memory_space>("Komvos::HMatrix::place", list);
  };
  state_->rowPlace = inOrder(state_->rows);
  state_->columnPlace = inOrder(state_->columns);
}

template <class Scalar, class ExecutionSpace>
HMatrix<Scalar, ExecutionSpace>::~HMatrix() = default;
template <class Scalar, class ExecutionSpace>
HMatrix<Scalar, ExecutionSpace>::HMatrix(HMatrix&&) noexcept = default;
template <class Scalar, class ExecutionSpace>
HMatrix<Scalar, ExecutionSpace>& HMatrix<Scalar, ExecutionSpace>::operator=(HMatrix&&) noexcept = default;

template <class Scalar, class ExecutionSpace>
int HMatrix<Scalar, ExecutionSpace>::numRows() const {
  return state_->rows;
}
template <class Scalar, class ExecutionSpace>
int HMatrix<Scalar, ExecutionSpace>::numColumns() const {
  return state_->columns;
}
template <class Scalar, class ExecutionSpace>
std::vector<int> HMatrix<Scalar, ExecutionSpace>::rowPlaces() const {
  return state_->rowRanges.places();
}
template <class Scalar, class ExecutionSpace>
std::vector<int> HMatrix<Scalar, ExecutionSpace>::columnPlaces() const {
  return state_->columnRanges.places();
}
template <class Scalar, class ExecutionSpace>
const HMatrixReport& HMatrix<Scalar, ExecutionSpace>::report() const {
  return state_->report;
}
template <class Scalar, class ExecutionSpace>
const std::vector<Block>& HMatrix<Scalar, ExecutionSpace>::blocks() const {
  return state_->blocks;
}
template <class Scalar, class ExecutionSpace>
std::int64_t HMatrix<Scalar, ExecutionSpace>::bytesRead() const {
  const std::int64_t first = state_->first.numBytes(), second = state_->second.numBytes();
  return !state_->isHalf ? first + second : 2 * first + (State::panels_type::canMultiplyBoth ? 1 : 2) * second;
}
template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::placeIn(const std::vector<int>& rows, int vectorRows,
                                              const std::vector<int>& columns, int vectorColumns) {
  if (static_cast<int>(rows.size()) != numRows() || static_cast<int>(columns.size()) != numColumns()) {
    throw BadInput("HMatrix::placeIn: " + std::to_string(rows.size()) + " rows and " + std::to_string(columns.size()) +
                   " columns for a matrix of " + std::to_string(numRows()) + " x " + std::to_string(numColumns()));
  }
  Impl::requirePlaces("rows", rows, vectorRows);
  Impl::requirePlaces("columns", columns, vectorColumns);
  state_->rowPlace = Impl::deviceList<memory_space>("Komvos::HMatrix::rowPlace", rows);
  state_->columnPlace = Impl::deviceList<memory_space>("Komvos::HMatrix::columnPlace", columns);
  state_->vectorRows = vectorRows;
  state_->vectorColumns = vectorColumns;
}
template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::useKernel(Impl::PanelKernel kernel) {
  state_->kernel = kernel;
  state_->canTranspose = false;
  if (kernel == Impl::PanelKernel::Teams) {
    state_->first.prepareTeams(state_->firstLayout);
    state_->second.prepareTeams(state_->secondLayout);
  }
}
template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::useVectorUnit(Impl::VectorUnit unit) {
  state_->first.useVectorUnit(unit);
  state_->second.useVectorUnit(unit);
}

namespace Impl {
template <class Input, class Output>
void requireExtents(const char* where, const Input& x, int xRows, const Output& y, int yRows) {
  const auto has = [](const auto& view, int length) { return view.extent(0) == static_cast<std::size_t>(length); };
  if (!has(x, xRows) || !has(y, yRows) || x.extent(1) != y.extent(1)) {
    throw PlanMismatch(std::string(where) + ": x is " + std::to_string(x.extent(0)) + " x " +
                       std::to_string(x.extent(1)) + " and y " + std::to_string(y.extent(0)) + " x " +
                       std::to_string(y.extent(1)) + "; x has to have " + std::to_string(xRows) + " rows and y " +
                       std::to_string(yRows));
  }
}
}  // namespace Impl

/// both = [y; t] of the transposed product, where all but the first panels' part is in it.
template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::finishTransposed(const ExecutionSpace& space, int numVectors,
                                                              value_type* both) {
  value_type* const t = both + static_cast<std::ptrdiff_t>(columns) * numVectors;
  if (!scaleOfT.empty()) {
    Kokkos::parallel_for("Komvos::HMatrix::multiplyTransposed: scale", Impl::range(space, 0, ranks),
                         Impl::ScalePlaces<value_type>{scaleOfRanks.data(), numVectors, t});
  }
  first.multiplyTransposed(space, kernel, numVectors, t, both, true);
}

/// y = both triangles of a matrix of which one is stored, for x by place.
template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::multiplyHalf(const ExecutionSpace& space, int numVectors,
                                                          const value_type* x, value_type* y) {
  value_type* const both = mirrored.data();
  if constexpr (panels_type::canMultiplyBoth) {
    const std::int64_t length = second.numColumns() * numVectors;
    if (static_cast<std::int64_t>(parts.extent(0)) < length) {
      parts = values_type(Kokkos::view_alloc("Komvos::HMatrix::parts", Kokkos::WithoutInitializing),
                          static_cast<std::size_t>(length));
    }
    second.multiplyBoth(space, numVectors, x, y, x, parts.data());
    Kokkos::parallel_for("Komvos::HMatrix::multiply: parts", Impl::range(space, 0, columns + ranks),
                         Impl::AddParts<value_type>{partOffset.data(), part.data(), parts.data(), numVectors, both});
  } else {
    second.multiply(space, kernel, numVectors, x, y, false);
    second.multiplyTransposed(space, kernel, numVectors, x, both, false);
  }
  finishTransposed(space, numVectors, both);
  Kokkos::parallel_for("Komvos::HMatrix::multiply: other half", Impl::range(space, 0, rows),
                       Impl::AddTo<value_type>{both, numVectors, y});
}

template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::multiply(const ExecutionSpace& space, const input_view& x, const output_view& y,
                                               value_type alpha, value_type beta) const {
  State& s = *state_;
  Impl::requireExtents("HMatrix::multiply", x, s.vectorColumns, y, s.vectorRows);
  if (s.isHalf) {
    s.prepareTransposed();
  }
  s.inGroups(static_cast<int>(x.extent(1)), [&](int firstVector, int n) {
    value_type *const in = s.input.data(), *const t = in + static_cast<std::ptrdiff_t>(s.columns) * n;
    Kokkos::parallel_for("Komvos::HMatrix::multiply: x", Impl::range(space, 0, s.columns),
                         Impl::FromUser<value_type, input_view>{s.columnPlace.data(), x, firstVector, n, in});
    s.first.multiply(space, s.kernel, n, in, t, false);
    if (s.isHalf) {
      s.multiplyHalf(space, n, in, s.output.data());
    } else {
      s.second.multiply(space, s.kernel, n, in, s.output.data(), false);
    }
    Kokkos::parallel_for(
        "Komvos::HMatrix::multiply: y", Impl::range(space, 0, s.rows),
        Impl::ToUser<value_type, output_view>{s.rowPlace.data(), s.output.data(), firstVector, n, y, alpha, beta});
  });
}

template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::multiplyTransposed(const ExecutionSpace& space, const input_view& x,
                                                         const output_view& y, value_type alpha,
                                                         value_type beta) const {
  State& s = *state_;
  Impl::requireExtents("HMatrix::multiplyTransposed", x, s.vectorRows, y, s.vectorColumns);
  if (s.isHalf) {
    multiply(space, x, y, alpha, beta);
    return;
  }
  s.prepareTransposed();
  s.inGroups(static_cast<int>(x.extent(1)), [&](int firstVector, int n) {
    // The place of [y; t] is that of [x; t] in the product that is not transposed.
    value_type* const both = s.input.data();
    Kokkos::parallel_for("Komvos::HMatrix::multiplyTransposed: x", Impl::range(space, 0, s.rows),
                         Impl::FromUser<value_type, input_view>{s.rowPlace.data(), x, firstVector, n, s.output.data()});
    s.second.multiplyTransposed(space, s.kernel, n, s.output.data(), both, false);
    s.finishTransposed(space, n, both);
    Kokkos::parallel_for(
        "Komvos::HMatrix::multiplyTransposed: y", Impl::range(space, 0, s.columns),
        Impl::ToUser<value_type, output_view>{s.columnPlace.data(), both, firstVector, n, y, alpha, beta});
  });
}

}  // namespace Komvos
