/// \file Komvos_EntryKernel.hpp
/// What a hierarchical matrix is made from: a function that gives its entries.
#pragma once

#include <cstddef>

namespace Komvos {

/// A block for EntryKernel::fillDevice().
struct DeviceBlock {
  const int* rows = nullptr;  ///< [numRows] in the user's order, in memory of the device
  int numRows = 0;
  const int* columns = nullptr;  ///< [numColumns] as rows
  int numColumns = 0;            ///< numRows times numColumns is below 2^31
  std::size_t offset = 0;        ///< where it begins in `values`, column by column
};

/// The entries of a matrix that is never stored whole. Implement entry(); and block(), where several entries at once
/// are cheaper. Both are called by several threads at a time, and must give the same values each time. They are called
/// within a parallel region of Kokkos: they may not start another one, nor call MPI, nor wait for another thread.
///
/// \tparam Scalar float, double or std::complex<double>
template <class Scalar>
class EntryKernel {
 public:
  virtual ~EntryKernel() = default;

  /// \param row, column in the user's order
  virtual Scalar entry(int row, int column) const = 0;

  /// Entries of `numRows` rows and `numColumns` columns, in the user's order, which need not be neighbours.
  /// \param out [numRows x numColumns], column by column
  virtual void block(const int* rows, int numRows, const int* columns, int numColumns, Scalar* out) const {
    for (int c = 0; c < numColumns; ++c) {
      for (int r = 0; r < numRows; ++r) {
        out[static_cast<std::size_t>(c) * numRows + r] = entry(rows[r], columns[c]);
      }
    }
  }

  /// Fills blocks in memory of the default execution space, if the kernel can. DeviceEntryKernel does, in
  /// Komvos_DeviceKernels.hpp. An HMatrix takes its dense blocks from it where values are stored whole, and asks by
  /// numBlocks = 0 whether it can. Not called by several threads at a time.
  /// \param blocks [numBlocks] in host memory
  /// \param values in memory of the device, ready on return
  /// \return whether it did; if not, nothing was written
  virtual bool fillDevice(const DeviceBlock* blocks, int numBlocks, Scalar* values) const {
    static_cast<void>(blocks), static_cast<void>(numBlocks), static_cast<void>(values);
    return false;
  }

  /// Whether entry(i, j) = entry(j, i), without conjugation, for all i and j: then half of the blocks are enough.
  virtual bool isSymmetric() const { return false; }
};

/// An EntryKernel of a function: `f(row, column)` gives an entry.
template <class Scalar, class Function>
class FunctionKernel : public EntryKernel<Scalar> {
 public:
  explicit FunctionKernel(Function f, bool isSymmetric = false) : f_(f), isSymmetric_(isSymmetric) {}
  Scalar entry(int row, int column) const override { return f_(row, column); }
  void block(const int* rows, int numRows, const int* columns, int numColumns, Scalar* out) const override {
    for (int c = 0; c < numColumns; ++c) {
      for (int r = 0; r < numRows; ++r) {
        *out++ = f_(rows[r], columns[c]);
      }
    }
  }
  bool isSymmetric() const override { return isSymmetric_; }

 private:
  Function f_;
  bool isSymmetric_;
};

}  // namespace Komvos
