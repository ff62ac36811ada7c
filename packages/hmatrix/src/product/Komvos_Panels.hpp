/// \file Komvos_Panels.hpp
/// Many small dense matrices that are multiplied at once.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "Komvos_DeviceList.hpp"
#include "Komvos_KokkosShim.hpp"
#include "Komvos_PanelLayout.hpp"
#include "Komvos_StripKernel.hpp"
#include "Komvos_TeamPlan.hpp"
#include "Komvos_ValueFormat.hpp"

namespace Komvos::Impl {

/// How a product of panels is computed. Both give sums in an order that is fixed, each its own.
enum class PanelKernel {
  Threads,  ///< a thread takes neighbouring panels with as many bytes as the next one's: for CPUs
  Teams     ///< a team takes a TeamTask, its threads the rows and columns of it: for GPUs
};

template <class Value>
struct TeamData;  // Komvos_TeamProduct.hpp

/// The panels of a layout, with values, for an execution space.
template <class Value, class ExecutionSpace>
class Panels {
 public:
  using memory_space = typename BufferSpace<ExecutionSpace>::type;
  using byte_view = Kokkos::View<unsigned char*, memory_space>;
  using scale_view = Kokkos::View<double*, memory_space>;
  /// At once, so that what a team needs fits the shared memory of a GPU.
  static constexpr int mostVectors = sizeof(Value) > sizeof(double) ? 8 : 16;
  static constexpr int columnsTogether = 64;  ///< of a transposed product

  Panels() = default;
  /// Room for the values of a layout, which are not set, and for what kernels read behind them.
  static byte_view allocate(const std::string& label, const PanelLayout& layout);
  /// \param values from allocate()
  /// \param outputScale what each value of the output is multiplied by; empty: nothing
  Panels(const PanelLayout& layout, byte_view values, scale_view outputScale = {});

  /// Before the first product by PanelKernel::Teams. The constructor does it where that is the kernel of the space.
  void prepareTeams(const PanelLayout& layout);

  /// output[p] = matrix of the panel * input, for all panels p.
  /// \param numVectors 1, 2, 4, 8 or 16, at most mostVectors
  /// \param input, output `numVectors` values for each place, which are neighbours. `output` may be another part of the
  /// array that `input` is in.
  /// \param add to what is there
  void multiply(const ExecutionSpace& space, PanelKernel kernel, int numVectors, const Value* input, Value* output,
                bool add) const;

  /// multiply(), and with the same pass over memory the parts of the transposed product of the same matrix:
  /// part[c] = column c of its strip, times the panel's rows of `rows`, for all columns of all strips in their order.
  /// outputScale is not in it.
  /// \param rows `numVectors` values for each place of the output \param part the same for each column
  void multiplyBoth(const ExecutionSpace& space, int numVectors, const Value* input, Value* output, const Value* rows,
                    Value* part) const;
  /// Whether multiplyBoth() is as good as it says: where panels are taken by threads of a CPU.
  static constexpr bool canMultiplyBoth = runsOnHost<ExecutionSpace>();

  /// Before multiplyTransposed() by this kernel; on devices, transposed products are always by teams.
  /// \param inputs the number of places of the input
  /// \param leftOut columns of all strips, in ascending order, that transposed products leave out
  void prepareTransposed(const PanelLayout& layout, PanelKernel kernel, int inputs,
                         const std::vector<std::int64_t>& leftOut = {});
  /// output[p] = column p of the matrix, times `input`, for all places p of multiply()'s input; each is added to by one
  /// thread. outputScale is not in it.
  /// \param input `numVectors` values for each place of multiply()'s output \param add to what is there
  void multiplyTransposed(const ExecutionSpace& space, PanelKernel kernel, int numVectors, const Value* input,
                          Value* output, bool add) const;

  std::int64_t numBytes() const { return numBytes_; }
  /// For tests: vectors no wider than these.
  void useVectorUnit(VectorUnit unit) { vectorUnit_ = unit; }
  std::int64_t numColumns() const { return numColumns_; }
  const byte_view& values() const { return values_; }

 private:
  TeamData<Value> teamData() const;
  template <int N>
  void transposeByTeams(const ExecutionSpace& space, int numVectors, const Value* input, Value* output, bool add) const;
  void listPieces(const PanelLayout& layout, const std::vector<std::int64_t>& leftOut);

  std::int64_t numBytes_ = 0;  ///< of values
  byte_view values_;
  scale_view outputScale_;
  Kokkos::View<Panel*, memory_space> panels_;
  Kokkos::View<PanelStrip*, memory_space> strips_;
  Kokkos::View<PanelRun*, memory_space> runs_;
  Kokkos::View<std::int64_t*, memory_space> firstColumn_;  ///< of each strip
  Kokkos::View<int*, memory_space> share_;                 ///< [shares + 1]: panels of about equal bytes
  // Of a TeamPlan.
  int numPartials_ = 0;
  Kokkos::View<StripPart*, memory_space> parts_;
  Kokkos::View<TeamTask*, memory_space> tasks_;
  Kokkos::View<SharedPanel*, memory_space> sharedPanels_;
  Kokkos::View<int*, memory_space> places_;
  Kokkos::View<double*, memory_space> scales_;
  mutable Kokkos::View<Value*, memory_space> partials_;  ///< as many as the widest product so far needs
  Kokkos::View<std::int64_t*, memory_space> columnOffset_, columns_;  ///< PartLists of the input
  mutable Kokkos::View<Value*, memory_space> ofColumns_;              ///< what each gives to a transposed product
  // Of groups of columnsTogether neighbouring places of the input.
  int numInputs_ = 0;
  Kokkos::View<std::int64_t*, memory_space> firstPiece_;  ///< [groups + 1]
  Kokkos::View<ColumnPiece*, memory_space> pieces_;
  VectorUnit vectorUnit_ = widestVectorUnit();
  std::int64_t numColumns_ = 0;
};

enum class StripLine { Row, Column };

/// Writes neighbouring values of a row or column of a strip into the bytes of a layout. On the host.
/// \param place the column, or the first column \param at the row, or the first row
/// \param stride from one value to the next \param scale a value is an integer times this; unused for whole values
template <class Value>
void storeValues(const PanelLayout& layout, unsigned char* bytes, StripPlace place, StripLine line, int at, int count,
                 const Value* values, std::ptrdiff_t stride, double scale);

/// Writes values of a column of a strip, rows [row, row + rows), into the bytes of a layout. On the host.
/// \param scale a value is an integer times this; unused for whole values
template <class Value>
void storeColumn(const PanelLayout& layout, unsigned char* bytes, StripPlace place, int row, int rows,
                 const Value* values, std::ptrdiff_t stride, double scale);

}  // namespace Komvos::Impl
