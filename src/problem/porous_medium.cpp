#include "problem/porous_medium.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "Komvos_Hash.hpp"

// How this works. A wave in three dimensions is the product of three in one dimension, so that tables as long as the
// edges of the box hold all that takes sines. Wave numbers and phases come from a hash of the number of the wave.
namespace Komvos::Program {

namespace {

/// In [0, 1). \param draw of this wave
double uniform(int wave, int draw) {
  const std::uint64_t hash =
      Impl::mix(Impl::mix(0, static_cast<std::uint64_t>(wave)), static_cast<std::uint64_t>(draw));
  return std::ldexp(static_cast<double>(hash >> 11), -53);
}

}  // namespace

PorousMedium::PorousMedium(const std::array<DefaultGlobalOrdinal, 3>& size) {
  const double pi = std::acos(-1.0);
  const auto shortest = static_cast<double>(*std::min_element(size.begin(), size.end()));
  std::array<std::array<double, 3>, numWaves> perCell;  // radians
  for (int w = 0; w < numWaves; ++w) {
    const double wavesPerEdge = std::pow(8.0, uniform(w, 0));
    const double up = 2 * uniform(w, 1) - 1;  // a direction, uniformly distributed
    const double around = 2 * pi * uniform(w, 2);
    const double flat = std::sqrt(1 - up * up);
    const std::array<double, 3> direction{flat * std::cos(around), flat * std::sin(around), up};
    for (int d = 0; d < 3; ++d) {
      perCell[w][d] = 2 * pi * wavesPerEdge * direction[d] / shortest;
    }
  }
  for (int d = 0; d < 3; ++d) {
    waves_[d].reserve(static_cast<std::size_t>(size[d]) * numWaves);
    for (DefaultGlobalOrdinal i = 0; i < size[d]; ++i) {
      for (int w = 0; w < numWaves; ++w) {
        const double phase = d == 0 ? 2 * pi * uniform(w, 3) : 0;
        waves_[d].push_back(std::polar(1.0, phase + perCell[w][d] * static_cast<double>(i)));
      }
    }
  }
}

double PorousMedium::conductivity(DefaultGlobalOrdinal i, DefaultGlobalOrdinal j, DefaultGlobalOrdinal k) const {
  const std::complex<double>* const x = &waves_[0][static_cast<std::size_t>(i) * numWaves];
  const std::complex<double>* const y = &waves_[1][static_cast<std::size_t>(j) * numWaves];
  const std::complex<double>* const z = &waves_[2][static_cast<std::size_t>(k) * numWaves];
  double sum = 0;
  for (int w = 0; w < numWaves; ++w) {
    const double re = x[w].real() * y[w].real() - x[w].imag() * y[w].imag();
    const double im = x[w].real() * y[w].imag() + x[w].imag() * y[w].real();
    sum += re * z[w].real() - im * z[w].imag();
  }
  // A cosine has variance 1/2, so sum / sqrt(numWaves / 2) is about standard normal; its distribution function is
  // (1 + erf(. / sqrt 2)) / 2.
  return std::pow(10.0, 5 * std::erf(sum / std::sqrt(static_cast<double>(numWaves))));
}

}  // namespace Komvos::Program
