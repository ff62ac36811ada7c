/// \file Komvos_VectorUnit.hpp
/// Which vector instructions this CPU has. Code that counts is compiled for each, and chosen at run time: Debian
/// compiles for the oldest CPUs.
#pragma once

/// KOMVOS_HAVE_VECTOR_UNITS: functions can be compiled for a CPU of their own by __attribute__((target(...))).
#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define KOMVOS_HAVE_VECTOR_UNITS
#define KOMVOS_TARGET_AVX2 __attribute__((target("avx2,fma")))
#define KOMVOS_TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma")))
#else
#define KOMVOS_TARGET_AVX2
#define KOMVOS_TARGET_AVX512
#endif

namespace Komvos::Impl {

/// Which instructions may be used: what every CPU has, or those of the two macros above.
enum class VectorUnit { Plain, Avx2, Avx512 };

/// The widest of this CPU.
inline VectorUnit widestVectorUnit() {
#ifdef KOMVOS_HAVE_VECTOR_UNITS
  const bool hasAvx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                         __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0;
  const bool hasAvx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  return hasAvx512 ? VectorUnit::Avx512 : hasAvx2 ? VectorUnit::Avx2 : VectorUnit::Plain;
#else
  return VectorUnit::Plain;
#endif
}

}  // namespace Komvos::Impl
