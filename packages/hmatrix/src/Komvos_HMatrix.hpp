/// \file Komvos_HMatrix.hpp
/// A dense matrix in a fraction of its memory: blocks of low rank, and small dense ones near the diagonal.
#pragma once

#include <Kokkos_Core.hpp>
#include <complex>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <vector>

#include "Komvos_BlockTree.hpp"
#include "Komvos_ClusterTree.hpp"
#include "Komvos_EntryKernel.hpp"
#include "Komvos_KokkosShim.hpp"
#include "Komvos_LowRank.hpp"

namespace Komvos {

namespace Impl {
/// What views hold for a scalar.
template <class Scalar>
struct ViewValue {
  using type = Scalar;
};
template <class Real>
struct ViewValue<std::complex<Real>> {
  using type = Kokkos::complex<Real>;
};
enum class PanelKernel;
enum class VectorUnit;
}  // namespace Impl

/// In how many bytes values are stored.
enum class Storage {
  Whole,   ///< as they are; dense blocks are exact then
  Reduced  ///< real values in 1 to 6 bytes, the fewest that keep the accuracy; see HMatrixOptions::storage
};

struct HMatrixOptions {
  double eta = 2.0;  ///< of the admissibility condition, see blockLeaves()
  LowRankOptions lowRank;
  /// With reduced storage, what is stored of a block B still differs from B by at most `lowRank.accuracy` ||B||, in the
  /// Frobenius norm: 0.7 of it by low rank, which is an estimate, see approximate(), and 0.3 by rounding the factors,
  /// which is a bound; in dense blocks all of it by rounding, but of the norm without the largest entries, one in 16.
  /// Blocks are always recompressed then. Complex values stay whole.
  Storage storage = Storage::Reduced;
  /// Store half of the matrix where EntryKernel::isSymmetric(): half of the memory and of the set-up. With whole values
  /// products take 1.0 to 1.4 times as long; with reduced ones 1.4 to 1.5 times for one vector, and 1.6 to 1.7 times
  /// for several, where decoding costs more than reading (perf/HMATRIX.md).
  bool halfIfSymmetric = false;
  /// Called now and then with the part of the set-up of this rank that is done, ascending, at last 1. By any thread,
  /// one at a time, within a parallel region of Kokkos.
  std::function<void(double)> progress;
};

/// What became of the blocks.
struct HMatrixReport {
  std::int64_t numLowRank = 0, numDense = 0;
  std::vector<std::int64_t> blocksOfRank;  ///< number of low-rank blocks of each rank
  /// Of the values of all blocks, in the formats that they need. Some are stored in wider ones, with their neighbours:
  /// bytesRead() counts that, too.
  std::int64_t bytes = 0;
  std::int64_t bytesDense = 0;             ///< of these, in dense blocks: those near the diagonal, and without low rank
  double compression = 0;                  ///< bytes, as a part of those of the dense matrix, stored whole
  bool isHalf = false;                     ///< of a symmetric matrix, blocks above the diagonal are not stored
  double seconds = 0;                      ///< to make it

  int largestRank() const { return static_cast<int>(blocksOfRank.size()) - 1; }  ///< -1: no block of low rank
};

/// The hierarchical matrix of an EntryKernel, on one process. HMatrixOperator is that of many.
///
/// A product is two passes over memory: t = V^T x for all blocks u v^T, then y = [U | dense] [t; x] for each group of
/// neighbouring rows. Nobody else adds to these rows, so there are no atomics, and a product gives the same bits each
/// time, with any number of threads. (Yamazaki et al., "Analyzing Performance of BiCGStab with Hierarchical Matrix on
/// GPU Clusters", IPDPS 2018, multiply by batches of small products instead.)
///
/// An admissible block that has no low rank at this accuracy is stored dense, whole: of a kernel that is not smooth, or
/// noisier than the accuracy, that may be most of the matrix; HMatrixReport::bytesDense tells.
///
/// \tparam Scalar float, double or std::complex<double>
/// \tparam ExecutionSpace where products run: Kokkos' default execution space, or its default one on the host, for
/// which the library is compiled. The matrix is made on the host, by all threads of its default space.
template <class Scalar, class ExecutionSpace = Kokkos::DefaultExecutionSpace>
class HMatrix {
 public:
  using value_type = typename Impl::ViewValue<Scalar>::type;
  using memory_space = typename Impl::BufferSpace<ExecutionSpace>::type;
  /// [unknowns x vectors], in the user's order. Views of Kokkos::LayoutLeft can be given, too.
  using input_view = Kokkos::View<const value_type**, Kokkos::LayoutStride, memory_space>;
  using output_view = Kokkos::View<value_type**, Kokkos::LayoutStride, memory_space>;

  /// \param rows, columns of unknowns; the same object for both, where they are the same
  /// \throws BadInput for options out of range, or if an entry is not finite; whatever the kernel throws
  HMatrix(const ClusterTree& rows, const ClusterTree& columns, const EntryKernel<Scalar>& kernel,
          const HMatrixOptions& options = {});
  /// Some blocks of it. Vectors then hold the rows of these, and their columns, in the trees' order: see rowsOf() and
  /// columnsOf(). If half of a symmetric matrix is stored, both hold both: the blocks below the diagonal count as those
  /// above it, too.
  /// \throws as above, and BadInput if a block is not within the trees
  HMatrix(const ClusterTree& rows, const ClusterTree& columns, std::vector<Block> blocks,
          const EntryKernel<Scalar>& kernel, const HMatrixOptions& options);
  ~HMatrix();
  HMatrix(HMatrix&&) noexcept;
  HMatrix& operator=(HMatrix&&) noexcept;

  int numRows() const;
  int numColumns() const;
  /// Places of the trees' orders that the matrix has rows of, and columns.
  std::vector<int> rowPlaces() const;
  std::vector<int> columnPlaces() const;
  const HMatrixReport& report() const;
  /// The leaves of the block tree as they are stored: isAdmissible if of low rank.
  const std::vector<Block>& blocks() const;
  /// Whether half of the matrix of such a kernel is stored with these options.
  static bool storesHalf(const ClusterTree& rows, const ClusterTree& columns, const EntryKernel<Scalar>& kernel,
                         const HMatrixOptions& options) {
    return options.halfIfSymmetric && kernel.isSymmetric() && &rows == &columns;
  }
  /// Bytes of the matrix that one product reads; vectors not counted.
  std::int64_t bytesRead() const;

  /// y = alpha A x + beta y. With beta = 0, y is not read.
  /// \param x [numColumns x k] \param y [numRows x k]; as many rows as placeIn() was told, once it was called
  /// \note Enqueued on `space`; not fenced. One product of an object at a time.
  /// \throws PlanMismatch if a view has other extents
  void multiply(const ExecutionSpace& space, const input_view& x, const output_view& y, value_type alpha = 1.0,
                value_type beta = 0.0) const;
  /// y = alpha A^T x + beta y, without conjugation. \param x [numRows x k] \param y [numColumns x k]
  /// \note and \throws as above
  void multiplyTransposed(const ExecutionSpace& space, const input_view& x, const output_view& y,
                          value_type alpha = 1.0, value_type beta = 0.0) const;

  /// From now on, row i of the matrix is row rows[i] of vectors of `vectorRows` rows, and column j the same by
  /// columns[j]: so that several matrices share vectors.
  /// \param rows [numRows()]
  /// \param columns [numColumns()]
  /// \throws BadInput if a list has another length, a place twice, or one that is not in the vector
  void placeIn(const std::vector<int>& rows, int vectorRows, const std::vector<int>& columns, int vectorColumns);

  /// Writes all that products need, the values as they are stored, with checksums: format version 1.
  /// \param out binary \throws BadInput if writing fails
  void save(std::ostream& out) const;
  /// What save() wrote; no kernel or tree is needed. The report and products are the same, to the last bit; on a
  /// machine with other vector instructions, products differ by the rounding of sums. A file is for the scalar that it
  /// was written for, any execution space, and machines of the same byte order. `in` is then behind what was read.
  /// \param in binary, of a file or a string: one has to be able to look where it ends
  /// \throws BadInput if it is not such a file, of another version, too short, or damaged: nothing in it is trusted,
  /// and no more memory is taken than it has bytes, times a small number
  static HMatrix load(std::istream& in);

  /// For tests and measurements: the kernels of other machines.
  void useKernel(Impl::PanelKernel kernel);
  void useVectorUnit(Impl::VectorUnit unit);

 private:
  struct State;
  class File;
  explicit HMatrix(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace Komvos
