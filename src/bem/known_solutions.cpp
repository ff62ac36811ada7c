#include "bem/known_solutions.hpp"

#include <cmath>

namespace Komvos::Program {

namespace {
const double pi = std::acos(-1.0);
}

double capacitanceOfSphere(double radius) { return 4 * pi * epsilon0 * radius; }

double yukawaChargeOfSphere(double radius, double kappa) {
  // x exp(x) / sinh(x) = 2 x / (1 - exp(-2 x)); 1 for x = 0
  const double x = kappa * radius;
  return capacitanceOfSphere(radius) * (x > 0 ? -2 * x / std::expm1(-2 * x) : 1);
}

TwoSphereCoefficients coefficientsOfTwoSpheres(double radius, double distance) {
  const double b = std::acosh(distance / (2 * radius));
  double odd = 0, even = 0;
  for (int n = 1;; ++n) {
    const double term = 1 / std::sinh((2 * n - 1) * b);
    odd += term;
    even += 1 / std::sinh(2 * n * b);
    if (term < 1e-17 * odd) {
      break;
    }
  }
  const double scale = capacitanceOfSphere(radius) * std::sinh(b);
  return {scale * odd, -scale * even};
}

double capacitanceOfCylinder(double radius, double height) {
  return 8 * epsilon0 * radius * (1 + 0.869 * std::pow(height / (2 * radius), 0.76));
}

double polarizabilityOfSphere(double radius) { return capacitanceOfSphere(radius) * radius * radius; }

}  // namespace Komvos::Program
