/// \file Komvos_StripKernel.cpp
/// How it works: sums of some rows stay in registers while the columns of the strip go by; what is behind the last row
/// may be read into a vector, and its sums are thrown away, which costs less than a shorter vector. One vector alone
/// would wait for its own last sum in each column, so columns are dealt out to several sets of sums where rows are few.
/// Transposed, four columns at a time have sums of their own. Values of few bytes become floating-point numbers in
/// registers, eight at a time, for up to four vectors at once, or for a product and a transposed one; their scale goes
/// to the input, which is gathered for some columns at a time; that of later columns is prefetched.
/// The code is compiled three times, with vectors as long as the registers of each kind of CPU (a compiler splits
/// longer ones through memory), and which one runs is found out at run time.
#include "Komvos_StripKernel.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "Komvos_PanelLayout.hpp"

namespace Komvos::Impl {

// Not for clang, which has other vector extensions.
#if defined(KOMVOS_HAVE_VECTOR_UNITS) && !defined(__clang__)
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

/// Their bytes stay in the cache while some rows, and some vectors, are multiplied after others. Of whole values there
/// are fewer, so that memory is read nearly in order. Measured.
constexpr int columnsTogether = 64, wholeTogether = 8;

/// All rows of a strip, as many at a time as registers hold: 16 of them, or 32 of 64 bytes. Columns are cut where rows
/// take several passes.
template <class Real, int Bytes, int N>
KOMVOS_INLINE void addStripRows(const Real* values, int rows, const PanelRun* runs, int numRuns, const Real* input,
                                Real* sums) {
  constexpr int length = Bytes / sizeof(Real), together = std::min(N, 4);
  constexpr int most = std::min(8, (Bytes == 64 ? 24 : 12) / together);
  PanelRun part[wholeTogether];
  RunCutter cutter(runs, numRuns);
  const bool cuts = N > together || rows > most * length;
  int parts = numRuns, columns = 1;
  while (columns > 0) {
    if (cuts) {
      columns = cutter.next(wholeTogether, part, parts);
    }
    for (int row = 0; row < rows; row += most * length) {
      const int used = std::min(rows - row, most * length);
      for (int first = 0; first < N; first += together) {
        addParts<Real, Bytes, N, together, most>((used + length - 1) / length, values + row, rows, cuts ? part : runs,
                                                 parts, input, sums + row * N, used, first);
      }
    }
    if (!cuts) {
      break;
    }
    values += static_cast<std::ptrdiff_t>(columns) * rows;
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

/// In one register. A load of what two stores wrote would wait for both to reach the cache.
KOMVOS_INLINE EightInts joined(const FourInts* integers) {
#if __GNUC__ >= 12
  return __builtin_shufflevector(integers[0], integers[1], 0, 1, 2, 3, 4, 5, 6, 7);
#else
  return loadAs<EightInts>(integers);
#endif
}

/// Eight values of three bytes, as integers times 256. Needs AVX2; reads 32 bytes. Written as instructions: shuffles of
/// vector extensions take two sources, and GCC 12 makes twice as many of them.
KOMVOS_INLINE EightInts eightOfThreeBytes(const unsigned char* from) {
  typedef std::int8_t Bytes32 __attribute__((vector_size(32)));
  typedef std::int8_t Memory32 __attribute__((vector_size(32), may_alias, aligned(1)));
  constexpr EightInts fours{0, 1, 2, 0, 3, 4, 5, 0};  // twelve bytes in each half, from where they are moved up
  constexpr Bytes32 order{-1, 0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11,
                          -1, 0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11};
  EightInts values;
  asm("vpermd %2, %1, %0" : "=v"(values) : "v"(fours), "m"(*reinterpret_cast<const Memory32*>(from)));
  asm("vpshufb %2, %1, %0" : "=v"(values) : "v"(values), "v"(order));
  return values;
}

template <class Real, int Bytes>
KOMVOS_INLINE void convert(const FourInts* integers, Eight<Real, Bytes>& to) {
  if constexpr (Bytes == 32 && sizeof(Real) == 8) {
    // GCC 12 makes three instructions of each conversion.
    asm("vcvtdq2pd %1, %0" : "=x"(to.part[0]) : "x"(integers[0]));
    asm("vcvtdq2pd %1, %0" : "=x"(to.part[1]) : "x"(integers[1]));
  } else {
    typedef Real All __attribute__((vector_size(8 * sizeof(Real))));
    const All all = __builtin_convertvector(joined(integers), All);
    std::memcpy(&to, &all, sizeof all);
  }
}

/// Eight doubles in one register of 64 bytes. Written as instructions: of vector extensions GCC 12 makes detours
/// through memory, for which a product takes several times as long.
template <ValueFormat F>
KOMVOS_INLINE Vector<double, 64>::type eightDoubles(const unsigned char* upper, const unsigned char* lower) {
  using V = Vector<double, 64>::type;
  typedef std::int64_t Memory8 __attribute__((may_alias, aligned(1)));
  typedef std::int8_t Memory16 __attribute__((vector_size(16), may_alias, aligned(1)));
  typedef std::int8_t Memory32 __attribute__((vector_size(32), may_alias, aligned(1)));
  EightInts integers;
  V values;
  if constexpr (F == ValueFormat::Bytes1 || F == ValueFormat::Bytes2) {
    // By way of integers of 64 bits: to make a wider register of a narrower one takes longer.
    Vector<double, 64>::bits wide;
    if constexpr (F == ValueFormat::Bytes1) {
      asm("vpmovsxbq %1, %0" : "=v"(wide) : "m"(*reinterpret_cast<const Memory8*>(upper)));
    } else {
      asm("vpmovsxwq %1, %0" : "=v"(wide) : "m"(*reinterpret_cast<const Memory16*>(upper)));
    }
    asm("vcvtqq2pd %1, %0" : "=v"(values) : "v"(wide));
  } else if constexpr (F == ValueFormat::Bytes3) {
    integers = eightOfThreeBytes(upper);
    asm("vcvtdq2pd %1, %0" : "=v"(values) : "v"(integers));
  } else {
    asm("vcvtdq2pd %1, %0" : "=v"(values) : "m"(*reinterpret_cast<const Memory32*>(upper)));
    if constexpr (F != ValueFormat::Bytes4) {
      V lowValues;
      if constexpr (F == ValueFormat::Bytes5) {
        asm("vpmovzxbd %1, %0" : "=v"(integers) : "m"(*reinterpret_cast<const Memory8*>(lower)));
      } else {
        asm("vpmovzxwd %1, %0" : "=v"(integers) : "m"(*reinterpret_cast<const Memory16*>(lower)));
      }
      asm("vcvtdq2pd %1, %0" : "=v"(lowValues) : "v"(integers));
      values = values * double(1 << 8 * lowerBytes(F)) + lowValues;
    }
  }
  return values;
}

/// What values that are loaded by eightAt() are multiplied with, beside their scale.
template <class Real, int Bytes, ValueFormat F>
constexpr double loadFactor = F == ValueFormat::Bytes3           ? 1.0 / (1 << 8)
                              : Bytes == 64 && sizeof(Real) == 8 ? 1.0
                              : F == ValueFormat::Bytes1         ? 1.0 / (1 << 24)
                              : F == ValueFormat::Bytes2         ? 1.0 / (1 << 16)
                                                                 : 1.0;

/// Eight values as they are stored. \param index of the first value in its plane
template <class Real, int Bytes, ValueFormat F>
KOMVOS_INLINE Eight<Real, Bytes> eightAt(const unsigned char* upper, const unsigned char* lower,
                                         std::ptrdiff_t index) {
  Eight<Real, Bytes> values;
  if constexpr (F == ValueFormat::Whole) {
    // Part by part: as one array they would go through memory.
    for (int h = 0; h < values.parts; ++h) {
      values.part[h] = loadAs<typename Eight<Real, Bytes>::type>(
          upper + (index + h * values.length) * static_cast<std::ptrdiff_t>(sizeof(Real)));
    }
  } else if constexpr (Bytes == 64 && sizeof(Real) == 8) {
    values.part[0] = eightDoubles<F>(upper + upperBytes(F) * index, lower + lowerBytes(F) * index);
  } else {
    constexpr int high = upperBytes(F), low = lowerBytes(F);
    FourInts integers[2];
    if constexpr (Bytes >= 32 && F == ValueFormat::Bytes3) {
      const EightInts all = eightOfThreeBytes(upper + high * index);
#if __GNUC__ >= 12
      integers[0] = __builtin_shufflevector(all, all, 0, 1, 2, 3);
      integers[1] = __builtin_shufflevector(all, all, 4, 5, 6, 7);
#else
      std::memcpy(integers, &all, sizeof all);
#endif
    } else {
      eightFrom<high>(upper + high * index, integers);
    }
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

/// Of values of few bytes, in bytes. Measured; the CPU's own prefetching stops at each end of a page, which short
/// columns reach often. Of whole values it costs more than it gains.
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
  const auto sumOfSets = [&](int q, int p, int h) KOMVOS_INLINED {
    typename E::type sum = acc[0][q][p][h];
    for (int s = 1; s < Sets; ++s) {
      sum += acc[s][q][p][h];
    }
    return sum;
  };
  if constexpr (Q == 1) {  // the rows of one vector are neighbours
    Real last[8] = {};
    for (int p = 0; p < Parts; ++p) {
      Real* const to = p < Parts - 1 || usedRows == Parts * 8 ? sums + p * 8 : last;
      for (int h = 0; h < E::parts; ++h) {
        const typename E::type sum = loadAs<typename E::type>(to + h * E::length) + sumOfSets(0, p, h);
        std::memcpy(to + h * E::length, &sum, sizeof sum);  // by itself, as in addRows()
      }
    }
    for (int r = usedRows / 8 * 8; r < usedRows; ++r) {
      sums[r] += last[r % 8];
    }
  } else {
    Real all[Q][Parts * 8];
    for (int q = 0; q < Q; ++q) {
      for (int p = 0; p < Parts; ++p) {
        for (int h = 0; h < E::parts; ++h) {
          const typename E::type sum = sumOfSets(q, p, h);
          std::memcpy(all[q] + p * 8 + h * E::length, &sum, sizeof sum);
        }
      }
    }
    for (int r = 0; r < usedRows; ++r) {
      for (int q = 0; q < Q; ++q) {
        sums[r * stride + q] += all[q][r];
      }
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
    const Real scale = static_cast<Real>(runs[k].scale * loadFactor<Real, Bytes, F>);
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

/// to[0, n) = scale * from[0, n). Of registers of 64 bytes, the last of `to` may be written as a whole, with zeros.
template <class Real, int Bytes>
KOMVOS_INLINE void copyScaled(const Real* from, int n, Real scale, Real* to) {
  if constexpr (Bytes == 64 && sizeof(Real) == 8) {
    // Runs are of a few columns, more or less: a loop over them would end where no CPU expects it to.
    using V = Vector<double, 64>::type;
    typedef double Memory __attribute__((vector_size(64), may_alias, aligned(8)));
    for (; n > 8; n -= 8, from += 8, to += 8) {
      const V all = loadAs<V>(from) * scale;
      std::memcpy(to, &all, sizeof all);
    }
    const auto mask = static_cast<unsigned char>((1U << n) - 1);
    V some;
    asm("vmovupd %2, %0%{%1%}%{z%}" : "=v"(some) : "Yk"(mask), "m"(*reinterpret_cast<const Memory*>(from)));
    some *= scale;
    std::memcpy(to, &some, sizeof some);
  } else {
    for (int c = 0; c < n; ++c) {
      to[c] = scale * from[c];
    }
  }
}

/// The input of a strip, for one vector, some columns at a time: whole runs, but for those that are longer.
template <class Real, int Bytes, ValueFormat F>
class InputReader {
 public:
  static constexpr int mostColumns = 2 * columnsTogether - 1;

  KOMVOS_INLINE InputReader(const PanelRun* runs, int numRuns, const Real* input)
      : run_(runs), end_(runs + numRuns), input_(input) {}
  /// \param z [mostColumns + 8] \return the number of columns; 0 behind the last
  KOMVOS_INLINE int next(Real* z) {
    int columns = 0;
    while (run_ != end_ && columns < columnsTogether) {
      // Runs lie anywhere in the input, which need not fit the caches; what is loaded of a short one may be in two
      // lines. Those of the next strips, too: a strip has few.
      const PanelRun& later = run_[runOverrun];
      __builtin_prefetch(input_ + later.input);
      __builtin_prefetch(input_ + later.input + 7);
      const int taken = std::min(run_->columns - done_, columnsTogether);
      const Real scale = static_cast<Real>(run_->scale * loadFactor<Real, Bytes, F>);
      copyScaled<Real, Bytes>(input_ + run_->input + done_, taken, scale, z + columns);
      columns += taken;
      done_ += taken;
      if (done_ == run_->columns) {
        done_ = 0;
        ++run_;
      }
    }
    return columns;
  }

 private:
  const PanelRun *run_, *end_;
  const Real* input_;
  int done_ = 0;  ///< columns of this run
};

/// All rows of some columns, for one vector.
template <class Real, int Bytes, ValueFormat F>
KOMVOS_INLINE void addPackedColumnsOfOne(const unsigned char* upper, const unsigned char* lower, int rows, int columns,
                                         const Real* z, Real* sums) {
  constexpr int most = Bytes == 64 ? 8 : 6;  // times eight rows, that registers hold
  const int eights = (rows + 7) / 8;
  if (eights <= most) {
    addPackedParts<Real, Bytes, F, 1, most>(eights, upper, lower, 0, rows, columns, z, sums, 1, rows);
    return;
  }
  const int passes = (eights + most - 1) / most, each = (eights + passes - 1) / passes;
  for (int row = 0; row < rows; row += 8 * each) {
    const int used = std::min(rows - row, 8 * each);
    addPackedParts<Real, Bytes, F, 1, most>((used + 7) / 8, upper, lower, row, rows, columns, z, sums + row, 1, used);
  }
}

/// All columns of a strip, some at a time.
template <class Real, int Bytes, ValueFormat F, int N>
KOMVOS_INLINE void addPackedStrip(const unsigned char* upper, const unsigned char* lower, int rows,
                                  const PanelRun* runs, int numRuns, const Real* input, Real* sums) {
  const auto goOn = [&](int columns) KOMVOS_INLINED {
    upper += static_cast<std::ptrdiff_t>(columns) * rows * upperBytes(F);
    lower += static_cast<std::ptrdiff_t>(columns) * rows * lowerBytes(F);
  };
  if constexpr (N == 1) {
    using Reader = InputReader<Real, Bytes, F>;
    Reader reader(runs, numRuns, input);
    Real z[Reader::mostColumns + 8];
    while (const int columns = reader.next(z)) {
      addPackedColumnsOfOne<Real, Bytes, F>(upper, lower, rows, columns, z, sums);
      goOn(columns);
    }
  } else {
    constexpr int together = std::min(N, 4);
    PanelRun part[columnsTogether];
    RunCutter cutter(runs, numRuns);
    int parts = 0;
    while (const int columns = cutter.next(columnsTogether, part, parts)) {
      for (int first = 0; first < N; first += together) {
        addPackedColumns<Real, Bytes, F, N, together>(upper, lower, rows, part, parts, columns, input, sums, first);
      }
      goOn(columns);
    }
  }
}

/// Real(v[0] + v[1]) + ..., in pairs.
template <class Real, class V>
KOMVOS_INLINE Real sumOf(const V& v) {
  constexpr int length = sizeof(V) / sizeof(Real);
  Real part[length];
  std::memcpy(part, &v, sizeof v);
  for (int n = length; n > 4; n /= 2) {
    for (int k = 0; k < n / 2; ++k) {
      part[k] += part[k + n / 2];
    }
  }
  return length == 2 ? part[0] + part[1] : (part[0] + part[1]) + (part[2] + part[3]);
}

/// The same of four vectors; of four values each, without taking them out one by one.
template <class Real, class V>
KOMVOS_INLINE void fourSums(const V& a, const V& b, const V& c, const V& d, Real* sums) {
  constexpr int length = sizeof(V) / sizeof(Real);
  if constexpr (length == 8) {
    const auto half = [](const V& v) KOMVOS_INLINED {
#if __GNUC__ >= 12
      return __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
#else
      using Half = typename Vector<Real, sizeof(V) / 2>::type;
      const auto* const bytes = reinterpret_cast<const unsigned char*>(&v);
      return loadAs<Half>(bytes) + loadAs<Half>(bytes + sizeof(Half));
#endif
    };
    fourSums(half(a), half(b), half(c), half(d), sums);
  } else if constexpr (length == 4) {
    using Bits = typename Vector<Real, sizeof(V)>::bits;
    const Bits even{0, 4, 2, 6}, odd{1, 5, 3, 7}, lower{0, 1, 4, 5}, upper{2, 3, 6, 7};
    const V ab = __builtin_shuffle(a, b, even) + __builtin_shuffle(a, b, odd);
    const V cd = __builtin_shuffle(c, d, even) + __builtin_shuffle(c, d, odd);
    const V all = __builtin_shuffle(ab, cd, lower) + __builtin_shuffle(ab, cd, upper);
    std::memcpy(sums, &all, sizeof all);
  } else {
    sums[0] = sumOf<Real>(a);
    sums[1] = sumOf<Real>(b);
    sums[2] = sumOf<Real>(c);
    sums[3] = sumOf<Real>(d);
  }
}

/// out[c] = column c times x, for some columns at a time: independent sums, and one load of x for all of them.
/// \param x the rows of the input, and zeros behind them \param lastRows which of the last eight rows there are
template <class Real, int Bytes, ValueFormat F, int Columns>
KOMVOS_INLINE void dotColumns(const unsigned char* upper, const unsigned char* lower, std::ptrdiff_t index, int rows,
                              const Real* x, const typename Vector<Real, Eight<Real, Bytes>::bytes>::bits* lastRows,
                              Real* out) {
  using E = Eight<Real, Bytes>;
  using V = typename E::type;
  using Bits = typename Vector<Real, E::bytes>::bits;
  const int last = (rows - 1) / 8;
  V acc[Columns][E::parts] = {};
  // Unrolled: GCC would otherwise keep the sums in memory.
  const auto addEight = [&](int p, auto isLast) KOMVOS_INLINED {
#pragma GCC unroll 8
    for (int c = 0; c < Columns; ++c) {
      E values = eightAt<Real, Bytes, F>(upper, lower, index + static_cast<std::ptrdiff_t>(c) * rows + p * 8);
#pragma GCC unroll 8
      for (int h = 0; h < E::parts; ++h) {
        // Of whole values, what is behind the last row may be anything, NaN too, so zeros of x do not help.
        if (F == ValueFormat::Whole && decltype(isLast)::value) {
          values.part[h] = reinterpret_cast<V>(reinterpret_cast<Bits>(values.part[h]) & lastRows[h]);
        }
        acc[c][h] += values.part[h] * loadAs<V>(x + p * 8 + h * E::length);
      }
    }
  };
  for (int p = 0; p < last; ++p) {
    addEight(p, std::false_type());
  }
  addEight(last, std::true_type());
  V all[Columns];
#pragma GCC unroll 8
  for (int c = 0; c < Columns; ++c) {
    all[c] = acc[c][0];
#pragma GCC unroll 8
    for (int h = 1; h < E::parts; ++h) {
      all[c] += acc[c][h];
    }
  }
  if constexpr (Columns == 4) {
    fourSums(all[0], all[1], all[2], all[3], out);
  } else {
    for (int c = 0; c < Columns; ++c) {
      out[c] = sumOf<Real>(all[c]);
    }
  }
}

/// All columns of a strip, one vector after the other.
template <class Real, int Bytes, ValueFormat F>
KOMVOS_INLINE void dotStrip(const unsigned char* upper, const unsigned char* lower, int rows, int columns,
                            int numVectors, const Real* input, Real* out) {
  using E = Eight<Real, Bytes>;
  constexpr int together = 4;
  typename Vector<Real, E::bytes>::bits lastRows[E::parts];
  for (int k = 0; k < 8; ++k) {
    lastRows[k / E::length][k % E::length] = (rows - 1) / 8 * 8 + k < rows ? -1 : 0;
  }
  alignas(64) Real x[64 + 8];
  for (int r = rows; r % 8 != 0; ++r) {
    x[r] = 0;
  }
  for (int q = 0; q < numVectors; ++q) {
    for (int r = 0; r < rows; ++r) {
      x[r] = static_cast<Real>(loadFactor<Real, Bytes, F>) * input[r * numVectors + q];
    }
    Real sums[together];
    std::ptrdiff_t index = 0;
    int c = 0;
    for (; c + together <= columns; c += together, index += static_cast<std::ptrdiff_t>(together) * rows) {
      dotColumns<Real, Bytes, F, together>(upper, lower, index, rows, x, lastRows, sums);
      for (int k = 0; k < together; ++k) {
        out[(static_cast<std::ptrdiff_t>(c) + k) * numVectors + q] = sums[k];
      }
    }
    for (; c < columns; ++c, index += rows) {
      dotColumns<Real, Bytes, F, 1>(upper, lower, index, rows, x, lastRows, sums);
      out[static_cast<std::ptrdiff_t>(c) * numVectors + q] = sums[0];
    }
  }
}

/// addPackedRows() and dotColumns() in one: sums += values * z, and out[c] += column c times x, or = that.
/// \param x of these rows, and zeros behind them \param lastRows which of the last eight rows there are
template <class Real, int Bytes, ValueFormat F, int Parts>
KOMVOS_INLINE void addRowsTwice(const unsigned char* upper, const unsigned char* lower, int row, int rows, int columns,
                                const Real* z, Real* sums, int usedRows, const Real* x,
                                const typename Vector<Real, Eight<Real, Bytes>::bytes>::bits* lastRows, bool add,
                                Real* out) {
  using E = Eight<Real, Bytes>;
  using V = typename E::type;
  using Bits = typename Vector<Real, E::bytes>::bits;
  V acc[Parts][E::parts] = {};
  std::ptrdiff_t index = row;
  const auto column = [&](int c) KOMVOS_INLINED {
    V dot[E::parts] = {};
#pragma GCC unroll 8
    for (int p = 0; p < Parts; ++p) {
      const int width = F == ValueFormat::Whole ? static_cast<int>(sizeof(Real)) : upperBytes(F);
      if (F != ValueFormat::Whole && p * 8 * width % 64 < 8 * width) {  // once a cache line
        __builtin_prefetch(upper + (index + p * 8) * width + prefetchDistance);
      }
      const E values = eightAt<Real, Bytes, F>(upper, lower, index + p * 8);
#pragma GCC unroll 8
      for (int h = 0; h < E::parts; ++h) {
        acc[p][h] += values.part[h] * z[c];
        V there = values.part[h];
        if (F == ValueFormat::Whole && p == Parts - 1) {
          there = reinterpret_cast<V>(reinterpret_cast<Bits>(there) & lastRows[h]);
        }
        dot[h] += there * loadAs<V>(x + p * 8 + h * E::length);
      }
    }
    index += rows;
#pragma GCC unroll 8
    for (int h = 1; h < E::parts; ++h) {
      dot[0] += dot[h];
    }
    return dot[0];
  };
  Real dots[4];
  int c = 0;
  for (; c + 4 <= columns; c += 4) {
    const V a = column(c), b = column(c + 1), d = column(c + 2), e = column(c + 3);
    fourSums(a, b, d, e, dots);
    for (int k = 0; k < 4; ++k) {
      out[c + k] = add ? out[c + k] + dots[k] : dots[k];
    }
  }
  for (; c < columns; ++c) {
    const Real dot = sumOf<Real>(column(c));
    out[c] = add ? out[c] + dot : dot;
  }
  Real all[Parts * 8];
  for (int p = 0; p < Parts; ++p) {
    for (int h = 0; h < E::parts; ++h) {
      const V sum = acc[p][h];
      std::memcpy(all + p * 8 + h * E::length, &sum, sizeof sum);  // by itself, as in addRows()
    }
  }
  for (int r = 0; r < usedRows; ++r) {
    sums[r] += all[r];
  }
}

template <class Real, int Bytes, ValueFormat F, int P>
KOMVOS_INLINE void addPartsTwice(int parts, const unsigned char* upper, const unsigned char* lower, int row, int rows,
                                 int columns, const Real* z, Real* sums, int usedRows, const Real* x,
                                 const typename Vector<Real, Eight<Real, Bytes>::bytes>::bits* lastRows, bool add,
                                 Real* out) {
  if (parts == P) {
    addRowsTwice<Real, Bytes, F, P>(upper, lower, row, rows, columns, z, sums, usedRows, x, lastRows, add, out);
  } else if constexpr (P > 1) {
    addPartsTwice<Real, Bytes, F, P - 1>(parts, upper, lower, row, rows, columns, z, sums, usedRows, x, lastRows, add,
                                         out);
  }
}

/// All of a strip, for one vector.
template <class Real, int Bytes, ValueFormat F>
KOMVOS_INLINE void addStripTwice(const unsigned char* upper, const unsigned char* lower, int rows, const PanelRun* runs,
                                 int numRuns, const Real* input, Real* sums, const Real* rowInput, Real* out) {
  using E = Eight<Real, Bytes>;
  constexpr int most = Bytes == 64 ? 8 : 4;  // times eight rows, that registers hold
  constexpr int together = F == ValueFormat::Whole ? wholeTogether : columnsTogether;
  const int eights = (rows + 7) / 8, passes = (eights + most - 1) / most, each = (eights + passes - 1) / passes;
  typename Vector<Real, E::bytes>::bits lastRows[E::parts], allRows[E::parts];
  for (int k = 0; k < 8; ++k) {
    lastRows[k / E::length][k % E::length] = (rows - 1) / 8 * 8 + k < rows ? -1 : 0;
    allRows[k / E::length][k % E::length] = -1;
  }
  alignas(64) Real x[64 + 8];
  for (int r = 0; r < 8 * eights; ++r) {
    x[r] = r < rows ? rowInput[r] : Real(0);
  }
  PanelRun part[together];
  RunCutter cutter(runs, numRuns);
  int parts = 0;
  while (const int columns = cutter.next(together, part, parts)) {
    Real z[together];
    Real* to = z;
    for (int k = 0; k < parts; ++k) {
      const Real scale = static_cast<Real>(part[k].scale * loadFactor<Real, Bytes, F>);
      for (int c = 0; c < part[k].columns; ++c) {
        *to++ = F == ValueFormat::Whole ? input[part[k].input + c] : scale * input[part[k].input + c];
      }
    }
    for (int row = 0; row < rows; row += 8 * each) {
      const int used = std::min(rows - row, 8 * each);
      addPartsTwice<Real, Bytes, F, most>((used + 7) / 8, upper, lower, row, rows, columns, z, sums + row, used, x + row,
                                          row + used == rows ? lastRows : allRows, row > 0, out);
    }
    for (int k = 0; k < parts; ++k) {
      const Real scale = static_cast<Real>(part[k].scale * loadFactor<Real, Bytes, F>);
      for (int c = 0; c < part[k].columns; ++c, ++out) {
        *out *= F == ValueFormat::Whole ? Real(1) : scale;
      }
    }
    const std::ptrdiff_t values = static_cast<std::ptrdiff_t>(columns) * rows;
    upper += values * (F == ValueFormat::Whole ? static_cast<int>(sizeof(Real)) : upperBytes(F));
    lower += values * lowerBytes(F);
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
                                   int numVectors, const Real* input, Real* out) {                                    \
    dotStrip<Real, bytes, F>(upper, lower, rows, columns, numVectors, input, out);                                    \
  }                                                                                                                   \
  template <class Real, ValueFormat F>                                                                                \
  attributes void name##Both(const unsigned char* upper, const unsigned char* lower, int rows, const PanelRun* runs,  \
                             int numRuns, const Real* input, Real* sums, const Real* rowInput, Real* out) {           \
    addStripTwice<Real, bytes, F>(upper, lower, rows, runs, numRuns, input, sums, rowInput, out);                     \
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
StripKernelOfBoth<Real> kernelOfBoth(VectorUnit unit) {
  return unit == VectorUnit::Avx512 ? avx512Both<Real, F>
         : unit == VectorUnit::Avx2 ? avx2Both<Real, F>
                                    : plainBoth<Real, F>;
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
auto forFormat(ValueFormat format, const Function& f)
    -> decltype(f(std::integral_constant<ValueFormat, ValueFormat::Whole>())) {
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

template <class Value>
StripKernelOfBoth<Value> stripKernelOfBoth(VectorUnit unit, ValueFormat format) {
  unit = std::min(unit, widestVectorUnit());
  return forFormat<Value>(format, [=](auto f) { return kernelOfBoth<Value, decltype(f)::value>(unit); });
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
template <class Value>
StripKernelOfBoth<Value> stripKernelOfBoth(VectorUnit, ValueFormat) {
  return nullptr;
}
#endif

#define KOMVOS_INSTANTIATE_STRIP_KERNELS(Real)                                         \
  template StripKernel<Real> stripKernel(VectorUnit, ValueFormat, int);                \
  template TransposedStripKernel<Real> transposedStripKernel(VectorUnit, ValueFormat); \
  template StripKernelOfBoth<Real> stripKernelOfBoth(VectorUnit, ValueFormat);
KOMVOS_INSTANTIATE_STRIP_KERNELS(float)
KOMVOS_INSTANTIATE_STRIP_KERNELS(double)
#undef KOMVOS_INSTANTIATE_STRIP_KERNELS

}  // namespace Komvos::Impl
