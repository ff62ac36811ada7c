/// \file Komvos_StripKernel.cpp
/// How it works: sums of some rows stay in registers while the columns of the strip go by; what is behind the last row
/// may be read into a vector, and its sums are thrown away, which costs less than a shorter vector. One vector alone
/// would wait for its own last sum in each column, so columns are dealt out to several sets of sums where rows are few.
/// Values of few bytes become floating-point numbers in registers, eight at a time, for up to four vectors at once; their
/// scale goes to the input, which is gathered for some columns at a time.
/// The code is compiled three times, with vectors as long as the registers of each kind of CPU (a compiler splits longer
/// ones through memory), and which one runs is found out at run time.
#include "Komvos_StripKernel.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "Komvos_Panels.hpp"

namespace Komvos::Impl {

#ifdef KOMVOS_HAVE_VECTOR_UNITS
#define KOMVOS_INLINED __attribute__((always_inline))
#define KOMVOS_INLINE KOMVOS_INLINED inline
// Vectors are returned by functions that are inlined always.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace {

/// \tparam Bytes of a register
template <class Real, int Bytes>
struct Vector;
template <>
struct Vector<double, 16> {
  typedef double type __attribute__((vector_size(16)));
  typedef std::int64_t bits __attribute__((vector_size(16)));
};
template <>
struct Vector<double, 32> {
  typedef double type __attribute__((vector_size(32)));
  typedef std::int64_t bits __attribute__((vector_size(32)));
};
template <>
struct Vector<double, 64> {
  typedef double type __attribute__((vector_size(64)));
  typedef std::int64_t bits __attribute__((vector_size(64)));
};
template <>
struct Vector<float, 16> {
  typedef float type __attribute__((vector_size(16)));
  typedef std::int32_t bits __attribute__((vector_size(16)));
};
template <>
struct Vector<float, 32> {
  typedef float type __attribute__((vector_size(32)));
  typedef std::int32_t bits __attribute__((vector_size(32)));
};
template <>
struct Vector<float, 64> {
  typedef float type __attribute__((vector_size(64)));
  typedef std::int32_t bits __attribute__((vector_size(64)));
};

template <class T>
KOMVOS_INLINE T loadAs(const void* from) {
  T values;
  std::memcpy(&values, from, sizeof values);
  return values;
}

/// sums += values * input for `Parts` vectors of rows, and vectors [first, first + Q) of N right-hand sides. Columns are
/// dealt out to Sets sets of sums.
template <class Real, int Bytes, int Parts, int Sets, int N, int Q>
KOMVOS_INLINE void addRows(const Real* values, int rows, const PanelRun* runs, int numRuns, const Real* input,
                           Real* sums, int usedRows, int first) {
  using V = typename Vector<Real, Bytes>::type;
  constexpr int length = Bytes / sizeof(Real);
  V acc[Sets][Parts][Q] = {};
  const Real* column = values;
  for (int run = 0; run < numRuns; ++run) {
    const Real* z = input + static_cast<std::ptrdiff_t>(runs[run].input) * N + first;
    const Real* const end = z + static_cast<std::ptrdiff_t>(runs[run].columns) * N;
    for (; z + Sets * N <= end; z += Sets * N) {
      for (int s = 0; s < Sets; ++s, column += rows) {
        for (int p = 0; p < Parts; ++p) {
          const V a = loadAs<V>(column + p * length);
          for (int q = 0; q < Q; ++q) {
            acc[s][p][q] += a * z[s * N + q];
          }
        }
      }
    }
    for (; z < end; z += N, column += rows) {
      for (int p = 0; p < Parts; ++p) {
        const V a = loadAs<V>(column + p * length);
        for (int q = 0; q < Q; ++q) {
          acc[0][p][q] += a * z[q];
        }
      }
    }
  }
  Real all[Q][Parts * length];
  for (int p = 0; p < Parts; ++p) {
    for (int q = 0; q < Q; ++q) {
      V sum = acc[0][p][q];
      for (int s = 1; s < Sets; ++s) {
        sum += acc[s][p][q];
      }
      // By itself: of an array whose address is taken, GCC keeps nothing in registers.
      std::memcpy(all[q] + p * length, &sum, sizeof sum);
    }
  }
  for (int r = 0; r < usedRows; ++r) {
    for (int q = 0; q < Q; ++q) {
      sums[r * N + first + q] += all[q][r];
    }
  }
}

/// The number of vectors of rows, at most P, as a constant.
template <class Real, int Bytes, int N, int Q, int P>
KOMVOS_INLINE void addParts(int parts, const Real* values, int rows, const PanelRun* runs, int numRuns,
                            const Real* input, Real* sums, int usedRows, int first) {
  if (parts == P) {
    constexpr int sets = P * Q <= 2 ? 4 : P * Q <= 4 ? 2 : 1;
    addRows<Real, Bytes, P, sets, N, Q>(values, rows, runs, numRuns, input, sums, usedRows, first);
  } else if constexpr (P > 1) {
    addParts<Real, Bytes, N, Q, P - 1>(parts, values, rows, runs, numRuns, input, sums, usedRows, first);
  }
}

/// All rows of a strip, as many at a time as registers hold: 16 of them, or 32 of 64 bytes.
template <class Real, int Bytes, int N>
KOMVOS_INLINE void addStripRows(const Real* values, int rows, const PanelRun* runs, int numRuns, const Real* input,
                                Real* sums) {
  constexpr int length = Bytes / sizeof(Real), together = std::min(N, 4);
  constexpr int most = std::min(8, (Bytes == 64 ? 24 : 12) / together);
  for (int row = 0; row < rows; row += most * length) {
    const int used = std::min(rows - row, most * length);
    for (int first = 0; first < N; first += together) {
      addParts<Real, Bytes, N, together, most>((used + length - 1) / length, values + row, rows, runs, numRuns, input,
                                               sums + row * N, used, first);
    }
  }
}

/// Eight values, in as many registers as they take.
template <class Real, int Bytes>
struct Eight {
  static constexpr int bytes = std::min(Bytes, 8 * static_cast<int>(sizeof(Real)));
  static constexpr int parts = 8 * static_cast<int>(sizeof(Real)) / bytes;
  static constexpr int length = 8 / parts;  ///< of a part
  using type = typename Vector<Real, bytes>::type;
  type part[parts];
};

typedef std::int8_t Bytes16 __attribute__((vector_size(16)));
typedef std::int32_t FourInts __attribute__((vector_size(16)));
typedef std::int32_t EightInts __attribute__((vector_size(32)));

/// Four values of `Width` bytes, from byte `First` on, as integers times 256^(4 - Width): their bytes are moved to the
/// upper end.
template <int Width, int First>
KOMVOS_INLINE FourInts fourFrom(const Bytes16& bytes) {
  Bytes16 order;
  for (int k = 0; k < 16; ++k) {
    const int byte = k % 4 - (4 - Width);
    order[k] = static_cast<std::int8_t>(byte < 0 ? 16 : First + k / 4 * Width + byte);
  }
  return reinterpret_cast<FourInts>(__builtin_shuffle(bytes, Bytes16{}, order));
}

/// Eight of these.
template <int Width>
KOMVOS_INLINE void eightFrom(const unsigned char* from, FourInts* to) {
  if constexpr (Width == 4) {
    to[0] = loadAs<FourInts>(from);
    to[1] = loadAs<FourInts>(from + 16);
  } else if constexpr (Width == 3) {
    to[0] = fourFrom<3, 0>(loadAs<Bytes16>(from));
    to[1] = fourFrom<3, 0>(loadAs<Bytes16>(from + 12));
  } else {
    typedef std::int64_t Two __attribute__((vector_size(16)));
    const Bytes16 bytes =
        Width == 2 ? loadAs<Bytes16>(from) : reinterpret_cast<Bytes16>(Two{loadAs<std::int64_t>(from), 0});
    to[0] = fourFrom<Width, 0>(bytes);
    to[1] = fourFrom<Width, 4 * Width>(bytes);
  }
}

template <class Real, int Bytes>
KOMVOS_INLINE void convert(const FourInts* integers, Eight<Real, Bytes>& to) {
  if constexpr (Bytes == 32 && sizeof(Real) == 8) {
    // GCC 12 makes three instructions of each conversion.
    asm("vcvtdq2pd %1, %0" : "=x"(to.part[0]) : "x"(integers[0]));
    asm("vcvtdq2pd %1, %0" : "=x"(to.part[1]) : "x"(integers[1]));
  } else {
    typedef Real All __attribute__((vector_size(8 * sizeof(Real))));
    const All all = __builtin_convertvector(loadAs<EightInts>(integers), All);
    std::memcpy(&to, &all, sizeof all);
  }
}

/// What values that are loaded by eightAt() are multiplied with, beside their scale.
template <ValueFormat F>
constexpr double loadFactor = F == ValueFormat::Bytes1   ? 1.0 / (1 << 24)
                              : F == ValueFormat::Bytes2 ? 1.0 / (1 << 16)
                              : F == ValueFormat::Bytes3 ? 1.0 / (1 << 8)
                                                         : 1.0;

/// Eight values as they are stored. \param index of the first value in its plane
template <class Real, int Bytes, ValueFormat F>
KOMVOS_INLINE Eight<Real, Bytes> eightAt(const unsigned char* upper, const unsigned char* lower,
                                         std::ptrdiff_t index) {
  Eight<Real, Bytes> values;
  if constexpr (F == ValueFormat::Whole) {
    std::memcpy(&values, upper + index * static_cast<std::ptrdiff_t>(sizeof(Real)), sizeof values);
  } else {
    constexpr int high = upperBytes(F), low = lowerBytes(F);
    FourInts integers[2];
    eightFrom<high>(upper + high * index, integers);
    convert(integers, values);
    if constexpr (low > 0) {
      // They have no sign; above them are the upper parts.
      Eight<Real, Bytes> lowValues;
      eightFrom<low>(lower + low * index, integers);
      for (FourInts& four : integers) {
        four = (four >> (32 - 8 * low)) & ((1 << 8 * low) - 1);
      }
      convert(integers, lowValues);
      for (int h = 0; h < Eight<Real, Bytes>::parts; ++h) {
        values.part[h] = values.part[h] * Real(1 << 8 * low) + lowValues.part[h];
      }
    }
  }
  return values;
}

/// Their bytes stay in the cache while some rows, and some vectors, are multiplied after others.
constexpr int columnsTogether = 64;

/// In bytes. Measured; the CPU's own prefetching stops at each end of a page, which short columns reach often.
constexpr int prefetchDistance = 1536;

/// sums += values * z, for `Parts` times eight rows from `row` on, and Q vectors. Columns are dealt out to Sets sets of
/// sums.
/// \param z [columns x Q] \param sums `stride` values for each row
template <class Real, int Bytes, ValueFormat F, int Parts, int Sets, int Q>
KOMVOS_INLINE void addPackedRows(const unsigned char* upper, const unsigned char* lower, int row, int rows, int columns,
                                 const Real* z, Real* sums, int stride, int usedRows) {
  using E = Eight<Real, Bytes>;
  typename E::type acc[Sets][Q][Parts][E::parts] = {};
  int c = 0;
  std::ptrdiff_t index = row;
  const auto add = [&](int set, const Real* factors) KOMVOS_INLINED {
    for (int p = 0; p < Parts; ++p) {
      if (p * 8 * upperBytes(F) % 64 < 8 * upperBytes(F)) {  // once a cache line
        __builtin_prefetch(upper + (index + p * 8) * upperBytes(F) + prefetchDistance);
      }
      const E values = eightAt<Real, Bytes, F>(upper, lower, index + p * 8);
      for (int q = 0; q < Q; ++q) {
        for (int h = 0; h < E::parts; ++h) {
          acc[set][q][p][h] += values.part[h] * factors[q];
        }
      }
    }
    index += rows;
  };
  for (; c + Sets <= columns; c += Sets) {
    for (int s = 0; s < Sets; ++s) {
      add(s, z + (c + s) * Q);
    }
  }
  for (; c < columns; ++c) {
    add(0, z + c * Q);
  }
  Real all[Q][Parts * 8];
  for (int q = 0; q < Q; ++q) {
    for (int p = 0; p < Parts; ++p) {
      for (int h = 0; h < E::parts; ++h) {
        typename E::type sum = acc[0][q][p][h];
        for (int s = 1; s < Sets; ++s) {
          sum += acc[s][q][p][h];
        }
        std::memcpy(all[q] + p * 8 + h * E::length, &sum, sizeof sum);  // by itself, as in addRows()
      }
    }
  }
  for (int r = 0; r < usedRows; ++r) {
    for (int q = 0; q < Q; ++q) {
      sums[r * stride + q] += all[q][r];
    }
  }
}

template <class Real, int Bytes, ValueFormat F, int Q, int P>
KOMVOS_INLINE void addPackedParts(int parts, const unsigned char* upper, const unsigned char* lower, int row, int rows,
                                  int columns, const Real* z, Real* sums, int stride, int usedRows) {
  if (parts == P) {
    constexpr int sets = P * Q == 1 ? 4 : P * Q == 2 ? 2 : 1;
    addPackedRows<Real, Bytes, F, P, sets, Q>(upper, lower, row, rows, columns, z, sums, stride, usedRows);
  } else if constexpr (P > 1) {
    addPackedParts<Real, Bytes, F, Q, P - 1>(parts, upper, lower, row, rows, columns, z, sums, stride, usedRows);
  }
}

/// All rows of some columns, for vectors [first, first + Q) of N.
/// \param runs, numRuns of these columns
template <class Real, int Bytes, ValueFormat F, int N, int Q>
KOMVOS_INLINE void addPackedColumns(const unsigned char* upper, const unsigned char* lower, int rows,
                                    const PanelRun* runs, int numRuns, int columns, const Real* input, Real* sums,
                                    int first) {
  Real z[columnsTogether * Q];
  Real* to = z;
  for (int k = 0; k < numRuns; ++k) {
    const Real scale = static_cast<Real>(runs[k].scale * loadFactor<F>);
    const Real* from = input + static_cast<std::ptrdiff_t>(runs[k].input) * N + first;
    for (int c = 0; c < runs[k].columns; ++c, from += N) {
      for (int q = 0; q < Q; ++q) {
        *to++ = scale * from[q];
      }
    }
  }
  // As even as possible: of 8 times eight rows, 4 + 4 rather than 6 + 2.
  constexpr int most = 6 / Q;  // that registers hold
  const int eights = (rows + 7) / 8, passes = (eights + most - 1) / most, each = (eights + passes - 1) / passes;
  for (int row = 0; row < rows; row += 8 * each) {
    const int used = std::min(rows - row, 8 * each);
    addPackedParts<Real, Bytes, F, Q, most>((used + 7) / 8, upper, lower, row, rows, columns, z,
                                            sums + row * N + first, N, used);
  }
}

/// All columns of a strip, some at a time.
template <class Real, int Bytes, ValueFormat F, int N>
KOMVOS_INLINE void addPackedStrip(const unsigned char* upper, const unsigned char* lower, int rows,
                                  const PanelRun* runs, int numRuns, const Real* input, Real* sums) {
  constexpr int together = std::min(N, 4);
  PanelRun part[columnsTogether];
  int run = 0, done = 0;  // columns of this run
  while (run < numRuns) {
    int parts = 0, columns = 0;
    while (run < numRuns && columns < columnsTogether) {
      const int taken = std::min(runs[run].columns - done, columnsTogether - columns);
      part[parts++] = {runs[run].input + done, taken, runs[run].scale};
      columns += taken;
      done += taken;
      if (done == runs[run].columns) {
        ++run;
        done = 0;
      }
    }
    for (int first = 0; first < N; first += together) {
      addPackedColumns<Real, Bytes, F, N, together>(upper, lower, rows, part, parts, columns, input, sums, first);
    }
    upper += static_cast<std::ptrdiff_t>(columns) * rows * upperBytes(F);
    lower += static_cast<std::ptrdiff_t>(columns) * rows * lowerBytes(F);
  }
}

/// out[c] = column c times the rows of the input.
template <class Real, int Bytes, ValueFormat F>
KOMVOS_INLINE void dotColumns(const unsigned char* upper, const unsigned char* lower, int rows, int columns,
                              const Real* input, Real* out) {
  using E = Eight<Real, Bytes>;
  using V = typename E::type;
  using Bits = typename Vector<Real, E::bytes>::bits;
  constexpr int sets = 2;
  const int parts = (rows + 7) / 8;
  alignas(64) Real x[64 + 8] = {};
  for (int r = 0; r < rows; ++r) {
    x[r] = static_cast<Real>(loadFactor<F>) * input[r];
  }
  // Of whole values, what is behind the last row may be anything, NaN too, so zeros of x do not help.
  Bits mask[E::parts];
  for (int k = 0; k < 8; ++k) {
    mask[k / E::length][k % E::length] = (parts - 1) * 8 + k < rows ? -1 : 0;
  }
  std::ptrdiff_t index = 0;
  for (int c = 0; c < columns; ++c, index += rows) {
    V acc[sets][E::parts] = {};
    const auto add = [&](int set, const E& values, int p) KOMVOS_INLINED {
      for (int h = 0; h < E::parts; ++h) {
        acc[set][h] += values.part[h] * loadAs<V>(x + p * 8 + h * E::length);
      }
    };
    int p = 0;
    for (; p + sets < parts; p += sets) {
      for (int s = 0; s < sets; ++s) {
        add(s, eightAt<Real, Bytes, F>(upper, lower, index + (p + s) * 8), p + s);
      }
    }
    for (; p < parts; ++p) {
      E values = eightAt<Real, Bytes, F>(upper, lower, index + p * 8);
      if constexpr (F == ValueFormat::Whole) {
        for (int h = 0; p == parts - 1 && h < E::parts; ++h) {
          values.part[h] = reinterpret_cast<V>(reinterpret_cast<Bits>(values.part[h]) & mask[h]);
        }
      }
      add(0, values, p);
    }
    for (int h = 0; h < E::parts; ++h) {
      acc[0][h] += acc[1][h];
      acc[0][0] = h > 0 ? acc[0][0] + acc[0][h] : acc[0][0];
    }
    Real sum = 0;
    for (int k = 0; k < E::length; ++k) {
      sum += acc[0][0][k];
    }
    out[c] = sum;
  }
}

#define KOMVOS_FOR_UNIT(name, attributes, bytes)                                                                      \
  template <class Real, ValueFormat F, int N>                                                                         \
  attributes void name##Strip(const unsigned char* upper, const unsigned char* lower, int rows, const PanelRun* runs, \
                              int numRuns, const Real* input, Real* sums) {                                           \
    if constexpr (F == ValueFormat::Whole) {                                                                          \
      addStripRows<Real, bytes, N>(reinterpret_cast<const Real*>(upper), rows, runs, numRuns, input, sums);           \
    } else {                                                                                                          \
      addPackedStrip<Real, bytes, F, N>(upper, lower, rows, runs, numRuns, input, sums);                              \
    }                                                                                                                 \
  }                                                                                                                   \
  template <class Real, ValueFormat F>                                                                                \
  attributes void name##Transposed(const unsigned char* upper, const unsigned char* lower, int rows, int columns,     \
                                   const Real* input, Real* out) {                                                    \
    dotColumns<Real, bytes, F>(upper, lower, rows, columns, input, out);                                              \
  }
KOMVOS_FOR_UNIT(plain, , 16)
KOMVOS_FOR_UNIT(avx2, KOMVOS_TARGET_AVX2, 32)
KOMVOS_FOR_UNIT(avx512, KOMVOS_TARGET_AVX512, 64)
#undef KOMVOS_FOR_UNIT

template <class Real, ValueFormat F, int N>
StripKernel<Real> kernelOf(VectorUnit unit) {
  return unit == VectorUnit::Avx512 ? avx512Strip<Real, F, N>
         : unit == VectorUnit::Avx2 ? avx2Strip<Real, F, N>
                                    : plainStrip<Real, F, N>;
}

template <class Real, ValueFormat F>
TransposedStripKernel<Real> transposedOf(VectorUnit unit) {
  return unit == VectorUnit::Avx512 ? avx512Transposed<Real, F>
         : unit == VectorUnit::Avx2 ? avx2Transposed<Real, F>
                                    : plainTransposed<Real, F>;
}

template <class Real, ValueFormat F>
StripKernel<Real> kernelFor(VectorUnit unit, int numVectors) {
  switch (numVectors) {
    case 1:
      return kernelOf<Real, F, 1>(unit);
    case 2:
      return kernelOf<Real, F, 2>(unit);
    case 4:
      return kernelOf<Real, F, 4>(unit);
    case 8:
      return kernelOf<Real, F, 8>(unit);
    default:
      return kernelOf<Real, F, 16>(unit);
  }
}

/// f(std::integral_constant of the format); nothing where it saves no byte over whole values.
template <class Real, class Function>
auto forFormat(ValueFormat format, const Function& f) -> decltype(f(std::integral_constant<ValueFormat, ValueFormat::Whole>())) {
  using F = ValueFormat;
  switch (format) {
    case F::Whole:
      return f(std::integral_constant<F, F::Whole>());
    case F::Bytes1:
      return f(std::integral_constant<F, F::Bytes1>());
    case F::Bytes2:
      return f(std::integral_constant<F, F::Bytes2>());
    case F::Bytes3:
      return f(std::integral_constant<F, F::Bytes3>());
    default:
      break;
  }
  if constexpr (sizeof(Real) == sizeof(double)) {
    switch (format) {
      case F::Bytes4:
        return f(std::integral_constant<F, F::Bytes4>());
      case F::Bytes5:
        return f(std::integral_constant<F, F::Bytes5>());
      default:
        return f(std::integral_constant<F, F::Bytes6>());
    }
  }
  return nullptr;
}

}  // namespace

template <class Value>
StripKernel<Value> stripKernel(VectorUnit unit, ValueFormat format, int numVectors) {
  unit = std::min(unit, widestVectorUnit());
  return forFormat<Value>(format, [=](auto f) { return kernelFor<Value, decltype(f)::value>(unit, numVectors); });
}

template <class Value>
TransposedStripKernel<Value> transposedStripKernel(VectorUnit unit, ValueFormat format) {
  unit = std::min(unit, widestVectorUnit());
  return forFormat<Value>(format, [=](auto f) { return transposedOf<Value, decltype(f)::value>(unit); });
}
#else

template <class Value>
StripKernel<Value> stripKernel(VectorUnit, ValueFormat, int) {
  return nullptr;
}
template <class Value>
TransposedStripKernel<Value> transposedStripKernel(VectorUnit, ValueFormat) {
  return nullptr;
}
#endif

#define KOMVOS_INSTANTIATE_STRIP_KERNELS(Real)                             \
  template StripKernel<Real> stripKernel(VectorUnit, ValueFormat, int);    \
  template TransposedStripKernel<Real> transposedStripKernel(VectorUnit, ValueFormat);
KOMVOS_INSTANTIATE_STRIP_KERNELS(float)
KOMVOS_INSTANTIATE_STRIP_KERNELS(double)
#undef KOMVOS_INSTANTIATE_STRIP_KERNELS

}  // namespace Komvos::Impl
