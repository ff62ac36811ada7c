/// \file Komvos_PairFunctions.cpp
/// How it works: a vector of pairs is integrated by each rule that one of them needs, most often by one. The code is
/// compiled three times, and which one runs is found out at run time. It is not inlined into its callers, for the
/// compiler might round differently there.
#include "Komvos_PairFunctions.hpp"

#include <cstring>
#include <type_traits>

#include "Komvos_VectorMath.hpp"
#include "Komvos_VectorUnit.hpp"

namespace Komvos::Impl {

#ifdef KOMVOS_HAVE_VECTORS
namespace {

template <int Bytes>
KOMVOS_INLINE typename Vectors<Bytes>::Real load(const double* values) {
  typename Vectors<Bytes>::Real v;
  std::memcpy(&v, values, sizeof v);
  return v;
}

// Integrands: of the squared distance, into one or two parts.

struct SingleLayerPairs {
  static constexpr int numParts = 1;
  static constexpr bool hasNormal = false;
  template <class Math, class V>
  static KOMVOS_INLINE void add(double weight, const V& squared, double, V* sum) {
    sum[0] += weight * Math::reciprocalSqrt(squared);
  }
};
struct DoubleLayerPairs {
  static constexpr int numParts = 1;
  static constexpr bool hasNormal = true;
  template <class Math, class V>
  static KOMVOS_INLINE void add(double weight, const V& squared, double, V* sum) {
    const V inverse = Math::reciprocalSqrt(squared);
    sum[0] += weight * (inverse * inverse * inverse);
  }
};
struct YukawaPairs {
  static constexpr int numParts = 1;
  static constexpr bool hasNormal = false;
  template <class Math, class V>
  static KOMVOS_INLINE void add(double weight, const V& squared, double kappa, V* sum) {
    const V inverse = Math::reciprocalSqrt(squared);
    sum[0] += weight * (inverse * Math::exponential(-kappa * (squared * inverse)));
  }
};
struct HelmholtzPairs {
  static constexpr int numParts = 2;
  static constexpr bool hasNormal = false;
  template <class Math, class V>
  static KOMVOS_INLINE void add(double weight, const V& squared, double kappa, V* sum) {
    const V inverse = Math::reciprocalSqrt(squared);
    V sine, cosine;
    Math::sineAndCosine(kappa * (squared * inverse), sine, cosine);
    sum[0] += weight * (inverse * cosine);
    sum[1] += weight * (inverse * sine);
  }
};

/// Three fields of a chunk, as vectors.
template <int Bytes>
struct VectorPoint {
  using V = typename Vectors<Bytes>::Real;
  V x, y, z;
  KOMVOS_INLINE VectorPoint(const V& a, const V& b, const V& c) : x(a), y(b), z(c) {}
  KOMVOS_INLINE VectorPoint(const double (*fields)[PairChunk::most], int place)
      : x(load<Bytes>(fields[0] + place)), y(load<Bytes>(fields[1] + place)), z(load<Bytes>(fields[2] + place)) {}
};

/// The places where a mask is -1, for PairChunk::nearPlaces.
template <int Bytes, class Mask>
KOMVOS_INLINE std::uint64_t placesOf(const Mask& mask, int place) {
  std::uint64_t places = 0;
  for (int l = 0; l < Vectors<Bytes>::length; ++l) {
    places |= static_cast<std::uint64_t>(mask[l] & 1) << (place + l);
  }
  return places;
}

/// Which of the rules the pairs need: a bit for each number of rules that are good enough.
template <int Bytes>
KOMVOS_INLINE unsigned numbersOfRules(const PairChunk& chunk, int place, const typename Vectors<Bytes>::Real& squared,
                                      typename Vectors<Bytes>::Integer& numbers) {
  using Integer = typename Vectors<Bytes>::Integer;
  numbers = Integer{};
  for (int k = 0; k < numTriangleRules; ++k) {
    const auto limit = load<Bytes>(chunk.triangle[PairChunk::Limits + k] + place * chunk.triangleStep);
    numbers -= reinterpret_cast<Integer>(squared >= limit);
  }
  const Integer bits = (Integer{} + 1) << numbers;
  std::int64_t present = 0;
  for (int l = 0; l < Vectors<Bytes>::length; ++l) {
    present |= bits[l];
  }
  return static_cast<unsigned>(present);
}

/// The mean of the integrand. \param x as seen from the centroid
template <class Pairs, int Bytes>
KOMVOS_INLINE void meanByRule(const RuleTable& rules, int rule, double kappa, const VectorPoint<Bytes>& x,
                              const VectorPoint<Bytes>& edge1, const VectorPoint<Bytes>& edge2,
                              typename Vectors<Bytes>::Real* sum) {
  using V = typename Vectors<Bytes>::Real;
  for (int part = 0; part < Pairs::numParts; ++part) {
    sum[part] = V{};
  }
  for (int q = rules.begin[rule]; q < rules.begin[rule + 1]; ++q) {
    const TriangleRulePoint& p = rules.points[q];
    const V rx = x.x - p.a * edge1.x - p.b * edge2.x, ry = x.y - p.a * edge1.y - p.b * edge2.y,
            rz = x.z - p.a * edge1.z - p.b * edge2.z;
    Pairs::template add<Vectors<Bytes>>(p.weight, V(rx * rx + ry * ry + rz * rz), kappa, sum);
  }
}

template <class Pairs, int Bytes>
KOMVOS_INLINE void evaluate(PairChunk& chunk, const RuleTable& rules) {
  using Math = Vectors<Bytes>;
  using V = typename Math::Real;
  using Integer = typename Math::Integer;
  using Point = VectorPoint<Bytes>;
  chunk.nearPlaces = 0;
  for (int place = 0; place < chunk.count; place += Math::length) {
    const int t = place * chunk.triangleStep;
    const Point position(chunk.position, place * chunk.positionStep), centroid(chunk.triangle + PairChunk::Centroid, t);
    const Point x(position.x - centroid.x, position.y - centroid.y, position.z - centroid.z);
    Integer numbers;
    const unsigned present = numbersOfRules<Bytes>(chunk, place, x.x * x.x + x.y * x.y + x.z * x.z, numbers);
    if ((present & 1) != 0) {
      chunk.nearPlaces |= placesOf<Bytes>(numbers == Integer{}, place);
    }
    if (present == 1) {
      continue;
    }
    const Point edge1(chunk.triangle + PairChunk::Edge1, t), edge2(chunk.triangle + PairChunk::Edge2, t);
    V result[Pairs::numParts];
    for (int part = 0; part < Pairs::numParts; ++part) {
      result[part] = V{};
    }
    for (int number = 1; number <= numTriangleRules; ++number) {
      if ((present >> number & 1) == 0) {
        continue;
      }
      V sum[Pairs::numParts];
      meanByRule<Pairs, Bytes>(rules, numTriangleRules - number, chunk.kappa, x, edge1, edge2, sum);
      const Integer mask = reinterpret_cast<Integer>(numbers == Integer{} + number);
      for (int part = 0; part < Pairs::numParts; ++part) {
        result[part] = Math::select(mask, sum[part], result[part]);
      }
    }
    V factor = oneOver4Pi * load<Bytes>(chunk.triangle[PairChunk::Area] + t);
    if constexpr (Pairs::hasNormal) {
      const Point normal(chunk.triangle + PairChunk::Normal, t);
      factor *= normal.x * x.x + normal.y * x.y + normal.z * x.z;
    }
    for (int part = 0; part < Pairs::numParts; ++part) {
      result[part] *= factor;
      std::memcpy(chunk.out[part] + place, &result[part], sizeof(V));
    }
  }
}

/// As evaluate(), between points.
struct DistancePairs {};
template <int Bytes>
KOMVOS_INLINE void evaluateDistances(PairChunk& chunk) {
  using Math = Vectors<Bytes>;
  using V = typename Math::Real;
  chunk.nearPlaces = 0;
  for (int place = 0; place < chunk.count; place += Math::length) {
    const VectorPoint<Bytes> a(chunk.position, place * chunk.positionStep);
    const VectorPoint<Bytes> b(chunk.triangle + PairChunk::Centroid, place * chunk.triangleStep);
    const V x = a.x - b.x, y = a.y - b.y, z = a.z - b.z;
    const V squared = x * x + y * y + z * z, result = Math::reciprocalSqrt(squared);
    chunk.nearPlaces |= placesOf<Bytes>(squared == V{}, place);
    std::memcpy(chunk.out[0] + place, &result, sizeof(V));
  }
}

template <class Pairs, int Bytes>
KOMVOS_INLINE void run(PairChunk& chunk, const RuleTable& rules) {
  if constexpr (std::is_same_v<Pairs, DistancePairs>) {
    evaluateDistances<Bytes>(chunk);
  } else {
    evaluate<Pairs, Bytes>(chunk, rules);
  }
}

template <class Pairs>
void runPlain(PairChunk& chunk, const RuleTable& rules) {
  run<Pairs, 16>(chunk, rules);
}

template <class Pairs>
KOMVOS_TARGET_AVX2 void runAvx2(PairChunk& chunk, const RuleTable& rules) {
  run<Pairs, 32>(chunk, rules);
}
template <class Pairs>
KOMVOS_TARGET_AVX512 void runAvx512(PairChunk& chunk, const RuleTable& rules) {
  run<Pairs, 64>(chunk, rules);
}
template <class Pairs>
PairFunction widest() {
  const VectorUnit unit = widestVectorUnit();
  return unit == VectorUnit::Avx512 ? runAvx512<Pairs> : unit == VectorUnit::Avx2 ? runAvx2<Pairs> : runPlain<Pairs>;
}

}  // namespace

PairFunction pairFunction(const SingleLayerForm&) { return widest<SingleLayerPairs>(); }
PairFunction pairFunction(const DoubleLayerForm&) { return widest<DoubleLayerPairs>(); }
PairFunction pairFunction(const YukawaForm&) { return widest<YukawaPairs>(); }
PairFunction pairFunction(const HelmholtzForm&) { return widest<HelmholtzPairs>(); }
PairFunction distancePairFunction() { return widest<DistancePairs>(); }
#else

PairFunction pairFunction(const SingleLayerForm&) { return nullptr; }
PairFunction pairFunction(const DoubleLayerForm&) { return nullptr; }
PairFunction pairFunction(const YukawaForm&) { return nullptr; }
PairFunction pairFunction(const HelmholtzForm&) { return nullptr; }
PairFunction distancePairFunction() { return nullptr; }
#endif

}  // namespace Komvos::Impl
