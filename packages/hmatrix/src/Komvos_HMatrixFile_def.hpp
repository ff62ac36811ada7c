/// \file Komvos_HMatrixFile_def.hpp
/// How it works. A file, of the form that Komvos_SectionFile.hpp tells, has what products need, in two parts with a
/// checksum each. The first part is the blocks and what is known of each panel; the second one is the bytes of the
/// values, as products read them. Counts that follow from others are not in the file: the ranges of rows and columns
/// are those of the blocks. When the first part is read, its checksum is compared, then each number in it is checked,
/// and only then is there room for the second part.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <istream>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "Komvos_HMatrix.hpp"
#include "Komvos_HMatrix_def.hpp"
#include "Komvos_PanelFile.hpp"
#include "Komvos_SectionFile.hpp"

namespace Komvos {
namespace Impl {

/// A Block without padding.
struct BlockRecord {
  std::int32_t rowBegin, rowEnd, columnBegin, columnEnd, isAdmissible, rank;
};
static_assert(sizeof(BlockRecord) == 24);

constexpr std::uint32_t hmatrixFileVersion = 1;
constexpr LayoutNames firstNames{"panels1", "strips1", "runs1", "values1"};
constexpr LayoutNames secondNames{"panels2", "strips2", "runs2", "values2"};

template <class View>
std::vector<typename View::non_const_value_type> hostVector(const View& view) {
  const auto host = Kokkos::create_mirror_view(view);
  Kokkos::deep_copy(host, view);
  return {host.data(), host.data() + host.extent(0)};
}

/// The widest format of reduced storage.
template <class Scalar>
constexpr ValueFormat widestOf() {
  if constexpr (std::is_floating_point_v<Scalar>) {
    return widestFormat<Scalar>();
  } else {
    return ValueFormat::Whole;
  }
}

/// `count` of [0, length), none twice.
inline void requirePlaces(const SectionReader& file, const char* name, std::vector<int> places, int count,
                          std::int64_t length) {
  std::sort(places.begin(), places.end());
  const bool areInside = places.empty() || (places.front() >= 0 && places.back() < length);
  if (places.size() != static_cast<std::size_t>(count) || !areInside || length > std::numeric_limits<int>::max() ||
      std::adjacent_find(places.begin(), places.end()) != places.end()) {
    file.fail(std::string(name) + ": " + std::to_string(places.size()) + " places in vectors of " +
              std::to_string(length) + ", expected " + std::to_string(count) + ", all inside, and none twice");
  }
}

inline std::vector<Block> checkedBlocks(const SectionReader& file, const std::vector<BlockRecord>& records) {
  std::vector<Block> blocks;
  blocks.reserve(records.size());
  for (const BlockRecord& r : records) {
    const bool isLowRank = r.isAdmissible == 1;
    if (r.rowBegin < 0 || r.rowEnd <= r.rowBegin || r.columnBegin < 0 || r.columnEnd <= r.columnBegin ||
        !(isLowRank || r.isAdmissible == 0) || r.rank < (isLowRank ? 0 : -1) || (!isLowRank && r.rank != -1)) {
      file.fail("block " + std::to_string(blocks.size()) + " of rows " + std::to_string(r.rowBegin) + " to " +
                std::to_string(r.rowEnd) + ", columns " + std::to_string(r.columnBegin) + " to " +
                std::to_string(r.columnEnd) + ", kind " + std::to_string(r.isAdmissible) + ", rank " +
                std::to_string(r.rank) + " cannot be");
    }
    blocks.push_back({r.rowBegin, r.rowEnd, r.columnBegin, r.columnEnd, isLowRank, r.rank});
  }
  return blocks;
}

}  // namespace Impl

template <class Scalar, class ExecutionSpace>
class HMatrix<Scalar, ExecutionSpace>::File {
 public:
  static void save(const State& s, std::ostream& out) {
    Impl::SectionWriter file(out, kind(), "HMatrix::save");
    const HMatrixReport& report = s.report;
    file.section("counts", std::vector<std::int64_t>{s.isHalf ? 1 : 0, s.vectorRows, s.vectorColumns, report.bytes,
                                                     report.bytesDense});
    file.section("reals", std::vector<double>{report.compression, report.seconds});
    std::vector<Impl::BlockRecord> blocks;
    blocks.reserve(s.blocks.size());
    for (const Block& b : s.blocks) {
      blocks.push_back({b.rowBegin, b.rowEnd, b.columnBegin, b.columnEnd, b.isAdmissible ? 1 : 0, b.rank});
    }
    file.section("blocks", blocks);
    file.section("rows", Impl::hostVector(s.rowPlace));
    file.section("columns", Impl::hostVector(s.columnPlace));
    file.section("scales", s.scaleOfT);
    file.section("diagonal", s.onDiagonal);
    Impl::writeLayout(file, Impl::firstNames, s.firstLayout);
    Impl::writeLayout(file, Impl::secondNames, s.secondLayout);
    file.writeChecksum();
    writeValues(file, Impl::firstNames, s.firstLayout, s.first);
    writeValues(file, Impl::secondNames, s.secondLayout, s.second);
    file.writeChecksum();
  }

  static std::unique_ptr<State> load(std::istream& in) {
    Impl::SectionReader file(in, kind(), "HMatrix::load");
    auto state = std::make_unique<State>();
    State& s = *state;
    const auto counts = file.section<std::int64_t>("counts");
    const auto reals = file.section<double>("reals");
    const auto blocks = file.section<Impl::BlockRecord>("blocks");
    const auto rowPlace = file.section<int>("rows"), columnPlace = file.section<int>("columns");
    s.scaleOfT = file.section<double>("scales");
    s.onDiagonal = file.section<std::int64_t>("diagonal");
    const auto first = Impl::readLayout(file, Impl::firstNames), second = Impl::readLayout(file, Impl::secondNames);
    file.requireChecksum();

    if (counts.size() != 5 || reals.size() != 2 || (counts[0] != 0 && counts[0] != 1)) {
      file.fail("counts: " + std::to_string(counts.size()) + " and " + std::to_string(reals.size()) +
                " numbers, expected 5 and 2, and the first one 0 or 1");
    }
    s.blocks = Impl::checkedBlocks(file, blocks);
    setRanges(file, s, counts[0] == 1);
    Impl::requirePlaces(file, "rows", rowPlace, s.rows, counts[1]);
    Impl::requirePlaces(file, "columns", columnPlace, s.columns, counts[2]);
    s.vectorRows = static_cast<int>(counts[1]);
    s.vectorColumns = static_cast<int>(counts[2]);
    setLayouts(file, s, first, second);
    setReport(file, s, counts, reals);
    s.rowPlace = Impl::deviceList<memory_space>("Komvos::HMatrix::rowPlace", rowPlace);
    s.columnPlace = Impl::deviceList<memory_space>("Komvos::HMatrix::columnPlace", columnPlace);
    const auto v = readValues(file, Impl::firstNames, "Komvos::HMatrix::v", s.firstLayout);
    const auto u = readValues(file, Impl::secondNames, "Komvos::HMatrix::u", s.secondLayout);
    file.requireChecksum();
    s.first = panels_type(s.firstLayout, v,
                          s.scaleOfT.empty()
                              ? scales_type()
                              : Impl::deviceList<memory_space>("Komvos::HMatrix::scaleOfT", s.scaleOfT));
    s.second = panels_type(s.secondLayout, u);
    return state;
  }

 private:
  using panels_type = typename State::panels_type;
  using scales_type = typename State::scales_type;
  using byte_view = typename panels_type::byte_view;

  static Impl::FileKind kind() {
    static_assert(Impl::fileScalar<Scalar>() != 0, "HMatrix: this scalar has no number in files yet");
    return {"KomvosHM", Impl::hmatrixFileVersion, Impl::fileScalar<Scalar>()};
  }

  static void setRanges(const Impl::SectionReader& file, State& s, bool isHalf) {
    s.isHalf = isHalf;
    s.setRanges();
    if (!isHalf && !s.onDiagonal.empty()) {
      file.fail("diagonal: " + std::to_string(s.onDiagonal.size()) + " columns of a matrix that is not half of one");
    }
  }

  static void setLayouts(const Impl::SectionReader& file, State& s, const Impl::LayoutRecords& first,
                         const Impl::LayoutRecords& second) {
    Impl::LayoutBounds bounds;
    bounds.bytesOfWhole = sizeof(Scalar);
    bounds.widest = Impl::widestOf<Scalar>();
    bounds.inputs = s.columns;
    bounds.mostBytes = file.bytesLeft();
    s.firstLayout = Impl::checkedLayout(file, Impl::firstNames, first, bounds);
    s.ranks = Impl::outputsOf(s.firstLayout);
    bounds.inputs += s.ranks;
    bounds.mostBytes -= s.firstLayout.numBytes();
    if (std::max<std::int64_t>(s.columns, s.rows) + s.ranks > std::numeric_limits<int>::max()) {
      file.fail(std::to_string(s.ranks) + " ranks together, and " + std::to_string(s.rows) + " rows and " +
                std::to_string(s.columns) + " columns; at most 2^31 - 1 are possible");
    }
    s.secondLayout = Impl::checkedLayout(file, Impl::secondNames, second, bounds);
    if (Impl::outputsOf(s.secondLayout) != s.rows) {
      file.fail("panels2: " + std::to_string(Impl::outputsOf(s.secondLayout)) + " outputs, but blocks have " +
                std::to_string(s.rows) + " rows");
    }
    const bool isWhole = s.firstLayout.isWhole() && s.secondLayout.isWhole();
    if (s.scaleOfT.size() != static_cast<std::size_t>(s.ranks) && !(isWhole && s.scaleOfT.empty())) {
      file.fail("scales: " + std::to_string(s.scaleOfT.size()) + " of " + std::to_string(s.ranks));
    }
    const std::int64_t columns = s.secondLayout.numColumns();
    for (const std::int64_t column : s.onDiagonal) {
      if (column < 0 || column >= columns) {
        file.fail("diagonal: column " + std::to_string(column) + " of " + std::to_string(columns));
      }
    }
  }

  static void setReport(const Impl::SectionReader& file, State& s, const std::vector<std::int64_t>& counts,
                        const std::vector<double>& reals) {
    HMatrixReport& report = s.report;
    report.isHalf = s.isHalf;
    report.bytes = counts[3];
    report.bytesDense = counts[4];
    report.compression = reals[0];
    report.seconds = reals[1];
    std::int64_t ranks = 0;
    int largest = -1;
    for (const Block& block : s.blocks) {
      ++(block.isAdmissible ? report.numLowRank : report.numDense);
      ranks += std::max(block.rank, 0);
      largest = std::max(largest, block.rank);
    }
    if (ranks != s.ranks) {
      file.fail("blocks: ranks of " + std::to_string(ranks) + " together, but panels have " + std::to_string(s.ranks));
    }
    report.blocksOfRank.resize(static_cast<std::size_t>(largest + 1));
    for (const Block& block : s.blocks) {
      if (block.isAdmissible) {
        ++report.blocksOfRank[block.rank];
      }
    }
  }

  static void writeValues(Impl::SectionWriter& file, const Impl::LayoutNames& names, const Impl::PanelLayout& layout,
                          const panels_type& panels) {
    const auto host = Kokkos::create_mirror_view(panels.values());
    Kokkos::deep_copy(host, panels.values());
    Impl::writeValues(file, names, layout, sizeof(Scalar), host.data());
  }

  static byte_view readValues(Impl::SectionReader& file, const Impl::LayoutNames& names, const char* label,
                              const Impl::PanelLayout& layout) {
    const std::int64_t numBytes = layout.numBytes();
    const std::size_t count = file.openSection(names.values, 1);
    if (count != static_cast<std::size_t>(numBytes)) {
      file.fail(std::string(names.values) + ": " + std::to_string(count) + " bytes, but panels have " +
                std::to_string(numBytes));
    }
    const byte_view bytes = panels_type::allocate(label, layout);
    const auto host = Kokkos::create_mirror_view(bytes);
    touch(host.data(), count);
    file.read(host.data(), count);
    const auto values = std::make_pair(std::int64_t{0}, numBytes);
    Kokkos::deep_copy(Kokkos::subview(bytes, values), Kokkos::subview(host, values));
    return bytes;
  }

  /// By all threads, so that memory is spread over the nodes of NUMA as in a matrix that was made here.
  static void touch(unsigned char* bytes, std::size_t count) {
    constexpr std::size_t piece = std::size_t{1} << 18;
    if (Kokkos::DefaultHostExecutionSpace().concurrency() > 1) {
      Impl::forAllOnHost((count + piece - 1) / piece, [=](std::size_t p) {
        std::memset(bytes + p * piece, 0, std::min(piece, count - p * piece));
      });
    }
  }
};

template <class Scalar, class ExecutionSpace>
HMatrix<Scalar, ExecutionSpace>::HMatrix(std::unique_ptr<State> state) : state_(std::move(state)) {}

template <class Scalar, class ExecutionSpace>
void HMatrix<Scalar, ExecutionSpace>::save(std::ostream& out) const {
  File::save(*state_, out);
}

template <class Scalar, class ExecutionSpace>
auto HMatrix<Scalar, ExecutionSpace>::load(std::istream& in) -> HMatrix {
  return HMatrix(File::load(in));
}

}  // namespace Komvos
