/// \file Komvos_StripKernel.hpp
/// The product of one strip on a CPU, by the widest vectors that this CPU has.
#pragma once

namespace Komvos::Impl {

struct PanelRun;  // Komvos_Panels.hpp

/// sums [rows x vectors] += strip * input.
/// \param values of the strip; up to stripOverrun values behind its end are read, and not used
/// \param rows up to 64
/// \param runs, numRuns of the strip
/// \param input the array that runs point into, `vectors` values for each place
template <class Value>
using StripKernel = void (*)(const Value* values, int rows, const PanelRun* runs, int numRuns, const Value* input,
                             Value* sums);

/// So many values have to be there behind the last strip.
constexpr int stripOverrun = 16;

/// Which instructions may be used.
enum class VectorUnit { Plain, Avx2, Avx512 };

/// The widest of this CPU.
VectorUnit widestVectorUnit();

/// \param numVectors 1, 2, 4, 8 or 16
/// \param unit not more than the CPU has is used
/// \return nullptr where there is none for this machine or compiler
template <class Value>  // float, double
StripKernel<Value> stripKernel(VectorUnit unit, int numVectors);

}  // namespace Komvos::Impl
