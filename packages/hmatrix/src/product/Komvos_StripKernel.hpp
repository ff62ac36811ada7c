/// \file Komvos_StripKernel.hpp
/// The product of one strip on a CPU, by the widest vectors that this CPU has.
#pragma once

#include "Komvos_ValueFormat.hpp"
#include "Komvos_VectorUnit.hpp"

namespace Komvos::Impl {

struct PanelRun;  // Komvos_PanelLayout.hpp

/// sums [rows x vectors] += strip * input.
/// \param upper the values of the strip, or their upper plane; up to stripOverrun bytes behind the end of each plane
/// are read, and not used
/// \param lower their lower plane, where the format has one
/// \param rows up to 64
/// \param runs, numRuns of the strip; with one vector, runOverrun more are looked at, for what is prefetched
/// \param input the array that runs point into, `vectors` values for each place
template <class Value>
using StripKernel = void (*)(const unsigned char* upper, const unsigned char* lower, int rows, const PanelRun* runs,
                             int numRuns, const Value* input, Value* sums);

/// out [columns x vectors] = strip^T * input [rows x vectors], without the scales of runs. The sum of a column does not
/// depend on how many there are.
template <class Value>
using TransposedStripKernel = void (*)(const unsigned char* upper, const unsigned char* lower, int rows, int columns,
                                       int numVectors, const Value* input, Value* out);

/// Both at once, for one vector, with each value loaded once; the scales of runs are in both.
/// \param rowInput [rows] \param out [columns]
template <class Value>
using StripKernelOfBoth = void (*)(const unsigned char* upper, const unsigned char* lower, int rows,
                                   const PanelRun* runs, int numRuns, const Value* input, Value* sums,
                                   const Value* rowInput, Value* out);

/// So many bytes have to be there behind the last strip.
constexpr int stripOverrun = 128;
/// And so many runs behind the last one.
constexpr int runOverrun = 64;

/// \param numVectors 1, 2, 4, 8 or 16
/// \param unit not more than the CPU has is used
/// \return nullptr where there is none for this machine or compiler
template <class Value>  // float, double
StripKernel<Value> stripKernel(VectorUnit unit, ValueFormat format, int numVectors);
template <class Value>
TransposedStripKernel<Value> transposedStripKernel(VectorUnit unit, ValueFormat format);
template <class Value>
StripKernelOfBoth<Value> stripKernelOfBoth(VectorUnit unit, ValueFormat format);

}  // namespace Komvos::Impl
