/// \file Komvos_PanelMaker.hpp
/// Panels from dense matrices of any number of rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_Panels_def.hpp"

namespace Komvos::Impl {

/// A dense matrix. Its product with the inputs is that of `rows` values of the output, from `output` on; no other
/// matrix has these.
struct DenseMatrix {
  int output, rows;
  std::vector<std::pair<int, int>> inputs;  ///< (first, count) of neighbouring ones, one after the other
};

/// Cuts matrices into panels, takes their values from the host, and makes Panels.
/// \tparam Scalar of the host, whose Panels hold a Value
template <class Scalar, class Value, class ExecutionSpace>
class PanelMaker {
 public:
  PanelMaker(const std::string& label, const std::vector<DenseMatrix>& matrices) {
    for (const DenseMatrix& matrix : matrices) {
      pieces_.emplace_back();
      for (int row = 0; row < matrix.rows; row += PanelLayout::mostRows) {
        const int rows = std::min(matrix.rows - row, PanelLayout::mostRows);
        layout_.beginPanel(matrix.output + row, rows);
        layout_.beginStrip(0, rows);
        pieces_.back().push_back({row, rows, {}});
        for (const auto& [input, count] : matrix.inputs) {
          pieces_.back().back().runs.emplace_back(count, layout_.addRun(input, count));
        }
      }
    }
    layout_.finish();
    bytes_ = panels_type::allocate(label, layout_);
    host_ = Kokkos::create_mirror_view(bytes_);
  }

  /// Of matrix m; of several matrices, at the same time if one likes.
  /// \param values entry (r, c) is values[r * rowStride + c * columnStride]
  void store(std::size_t m, const Scalar* values, std::ptrdiff_t rowStride, std::ptrdiff_t columnStride) {
    for (const Piece& piece : pieces_[m]) {
      const Scalar* column = values + piece.row * rowStride;
      for (const auto& [count, first] : piece.runs) {
        for (int c = 0; c < count; ++c, column += columnStride) {
          storeColumn(layout_, host_.data(), {first.strip, first.column + c}, 0, piece.rows, column, rowStride, 1);
        }
      }
    }
  }

  /// After all were stored.
  Panels<Value, ExecutionSpace> make() const {
    Kokkos::deep_copy(bytes_, host_);
    return panels_type(layout_, bytes_);
  }

 private:
  using panels_type = Panels<Value, ExecutionSpace>;
  using bytes_type = typename panels_type::byte_view;
  /// What a panel has of a matrix.
  struct Piece {
    int row, rows;
    std::vector<std::pair<int, StripPlace>> runs;
  };

  PanelLayout layout_{sizeof(Value)};
  std::vector<std::vector<Piece>> pieces_;  ///< of each matrix
  bytes_type bytes_;
  decltype(Kokkos::create_mirror_view(std::declval<bytes_type>())) host_;
};

}  // namespace Komvos::Impl
