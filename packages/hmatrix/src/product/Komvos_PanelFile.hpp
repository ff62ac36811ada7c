/// \file Komvos_PanelFile.hpp
/// Layouts of panels and their values in a SectionFile.
///
/// Of a layout only what PanelLayout is told is written. Who reads it tells a new PanelLayout the same, after a check
/// of each number, so that no index or byte of the new one can be outside of its array. Where PanelLayout puts the
/// bytes of a strip is thus part of the file's version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "Komvos_Panels.hpp"
#include "Komvos_SectionFile.hpp"

namespace Komvos::Impl {

struct PanelRecord {
  std::int32_t output, rows, strips;
};
struct StripRecord {
  std::int32_t row, rows, format, runs;
};
static_assert(sizeof(PanelRecord) == 12 && sizeof(StripRecord) == 16 && sizeof(PanelRun) == 16);

/// What is read of a layout, unchecked.
struct LayoutRecords {
  std::vector<PanelRecord> panels;
  std::vector<StripRecord> strips;
  std::vector<PanelRun> runs;
};

/// Which layouts are possible.
struct LayoutBounds {
  std::size_t bytesOfWhole;
  ValueFormat widest;      ///< Whole: no other
  std::int64_t inputs;     ///< runs end there
  std::int64_t mostBytes;  ///< of all values
};

/// Names of sections.
struct LayoutNames {
  const char *panels, *strips, *runs, *values;
};

void writeLayout(SectionWriter& file, const LayoutNames& names, const PanelLayout& layout);
LayoutRecords readLayout(SectionReader& file, const LayoutNames& names);
/// \return a layout whose outputs are [0, outputsOf(it)), each of one panel
/// \throws BadInput
PanelLayout checkedLayout(const SectionReader& file, const LayoutNames& names, const LayoutRecords& records,
                          const LayoutBounds& bounds);
int outputsOf(const PanelLayout& layout);

/// What is between strips becomes 0. \param bytes of the values, on the host
void writeValues(SectionWriter& file, const LayoutNames& names, const PanelLayout& layout, std::size_t bytesOfWhole,
                 const unsigned char* bytes);

}  // namespace Komvos::Impl
