/// \file Komvos_HMatrix_def.hpp
/// How it works. Komvos_HMatrixState_def.hpp tells how the matrix is stored. A product takes x from the user's order to
/// the tree's, multiplies the two sets of panels, and takes y back. The transposed product goes the other way. Each
/// column of a panel gives a part of t, or of y; lists made when they are first needed say which parts are added. Where
/// half of a symmetric matrix is stored, a product is both, and parts of blocks on the diagonal are left out of the
/// second.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

#include "Komvos_Error.hpp"
#include "Komvos_HMatrix.hpp"
#include "Komvos_HMatrixState_def.hpp"

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

/// Adds the parts of each place, to what is there or to nothing.
template <class Value>
struct AddParts {
  const std::int64_t *offset, *part;
  const double* scale;  ///< of each part; or nullptr
  const Value* parts;
  int numVectors;
  bool add;
  Value* to;
  KOKKOS_INLINE_FUNCTION void operator()(int place) const {
    for (int q = 0; q < numVectors; ++q) {
      Value& value = to[static_cast<std::ptrdiff_t>(place) * numVectors + q];
      Value sum = add ? value : Value(0);
      for (std::int64_t p = offset[place]; p < offset[place + 1]; ++p) {
        const Value& more = parts[part[p] * numVectors + q];
        sum += scale != nullptr ? more * static_cast<typename RealPart<Value>::type>(scale[part[p]]) : more;
      }
      value = sum;
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

/// The input place of each column of each strip.
inline std::vector<int> inputsOf(const PanelLayout& layout) {
  std::vector<int> inputs;
  inputs.reserve(static_cast<std::size_t>(layout.numColumns()));
  for (const PanelRun& run : layout.runs()) {
    for (int c = 0; c < run.columns; ++c) {
      inputs.push_back(run.input + c);
    }
  }
  return inputs;
}

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
  const auto upload = [](const Impl::PartLists& lists, offsets_type& offset, offsets_type& part) {
    offset = Impl::deviceList<memory_space>("Komvos::HMatrix::offset", lists.offset);
    part = Impl::deviceList<memory_space>("Komvos::HMatrix::part", lists.part);
  };
  std::vector<int> inputs = Impl::inputsOf(secondLayout);
  if (!firstLayout.isWhole() || !secondLayout.isWhole()) {
    std::vector<double> scales;
    scales.reserve(inputs.size());
    for (const Impl::PanelRun& run : secondLayout.runs()) {
      for (int c = 0; c < run.columns; ++c) {
        const int place = run.input + c;
        scales.push_back(run.scale * (place < columns ? 1.0 : scaleOfT[place - columns]));
      }
    }
    partScale = Impl::deviceList<memory_space>("Komvos::HMatrix::partScale", scales);
  }
  for (const std::int64_t part : onDiagonal) {
    inputs[part] = -1;
  }
  upload(Impl::PartLists(columns + ranks, inputs), secondOffset, secondPart);
  upload(Impl::PartLists(columns, Impl::inputsOf(firstLayout)), firstOffset, firstPart);
  canTranspose = true;
}

namespace Impl {
inline void requireAccuracy(double accuracy) {
  if (!(accuracy > 0) || accuracy >= 1) {
    throw BadInput("HMatrix: an accuracy of " + std::to_string(accuracy) + "; it must be between 0 and 1");
  }
}
}  // namespace Impl

template <class Scalar, class ExecutionSpace>
HMatrix<Scalar, ExecutionSpace>::HMatrix(const ClusterTree& rows, const ClusterTree& columns,
                                         const EntryKernel<Scalar>& kernel, const HMatrixOptions& options)
    : state_(std::make_unique<State>()) {
  Impl::requireAccuracy(options.lowRank.accuracy);
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
  Impl::requireAccuracy(options.lowRank.accuracy);
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
  const std::int64_t bytes = state_->first.numBytes() + state_->second.numBytes();
  return state_->isHalf ? 2 * bytes : bytes;
}
template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::placeIn(const std::vector<int>& rows, int vectorRows,
                                              const std::vector<int>& columns, int vectorColumns) {
  if (static_cast<int>(rows.size()) != numRows() || static_cast<int>(columns.size()) != numColumns()) {
    throw BadInput("HMatrix::placeIn: " + std::to_string(rows.size()) + " rows and " + std::to_string(columns.size()) +
                   " columns for a matrix of " + std::to_string(numRows()) + " x " + std::to_string(numColumns()));
  }
  state_->rowPlace = Impl::deviceList<memory_space>("Komvos::HMatrix::rowPlace", rows);
  state_->columnPlace = Impl::deviceList<memory_space>("Komvos::HMatrix::columnPlace", columns);
  state_->vectorRows = vectorRows;
  state_->vectorColumns = vectorColumns;
}
template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::useKernel(Impl::PanelKernel kernel) {
  state_->kernel = kernel;
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

/// both = [y; t] of the transposed product, for x by place; not the parts of blocks on the diagonal of half a matrix.
template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::State::multiplyTransposed(const ExecutionSpace& space, int numVectors,
                                                                const value_type* x, value_type* both) {
  const auto enough = [&](values_type& parts, std::int64_t length) {
    if (static_cast<std::int64_t>(parts.extent(0)) < length * numVectors) {
      parts = values_type(Kokkos::view_alloc("Komvos::HMatrix::parts", Kokkos::WithoutInitializing),
                          static_cast<std::size_t>(length * numVectors));
    }
  };
  enough(secondParts, second.numColumns());
  enough(firstParts, first.numColumns());
  value_type* const t = both + static_cast<std::ptrdiff_t>(columns) * numVectors;
  second.multiplyTransposed(space, numVectors, x, secondParts.data());
  Kokkos::parallel_for("Komvos::HMatrix::multiplyTransposed: t", Impl::range(space, 0, columns + ranks),
                       Impl::AddParts<value_type>{secondOffset.data(), secondPart.data(), partScale.data(),
                                                  secondParts.data(), numVectors, false, both});
  first.multiplyTransposed(space, numVectors, t, firstParts.data());
  Kokkos::parallel_for("Komvos::HMatrix::multiplyTransposed: v", Impl::range(space, 0, columns),
                       Impl::AddParts<value_type>{firstOffset.data(), firstPart.data(), nullptr, firstParts.data(),
                                                  numVectors, true, both});
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
    s.second.multiply(space, s.kernel, n, in, s.output.data(), false);
    if (s.isHalf) {
      s.multiplyTransposed(space, n, in, s.mirrored.data());
      Kokkos::parallel_for("Komvos::HMatrix::multiply: other half",
                           Impl::range(space, 0, s.rows),
                           Impl::AddTo<value_type>{s.mirrored.data(), n, s.output.data()});
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
    s.multiplyTransposed(space, n, s.output.data(), both);
    Kokkos::parallel_for(
        "Komvos::HMatrix::multiplyTransposed: y", Impl::range(space, 0, s.columns),
        Impl::ToUser<value_type, output_view>{s.columnPlace.data(), both, firstVector, n, y, alpha, beta});
  });
}

}  // namespace Komvos
