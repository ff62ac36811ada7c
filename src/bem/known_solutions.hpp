/// \file known_solutions.hpp
/// Fields that are known without solving. SI units.
#pragma once

namespace Komvos::Program {

constexpr double epsilon0 = 8.8541878128e-12;  ///< F/m, CODATA 2018

/// 4 pi epsilon_0 R.
double capacitanceOfSphere(double radius);

/// Charge of a single layer of Yukawa's kernel on a sphere at 1 V. A layer of constant density sigma has the potential
/// sigma R^2 / epsilon_0 sinh(kappa R) / (kappa R) exp(-kappa r) / r outside; at r = R it is 1.
double yukawaChargeOfSphere(double radius, double kappa);

/// Coefficients of capacitance of two equal spheres: charges are q1 = self v1 + mutual v2 and q2 = mutual v1 + self v2.
struct TwoSphereCoefficients {
  double self = 0, mutual = 0;
};

/// By the method of images, summed in closed form (W. R. Smythe, Static and Dynamic Electricity, section 5.08): with
/// cosh b = distance / (2 radius),
///   self   =  4 pi epsilon_0 R sinh b sum_{n >= 1} 1 / sinh((2 n - 1) b)
///   mutual = -4 pi epsilon_0 R sinh b sum_{n >= 1} 1 / sinh(2 n b).
/// \param distance of the centres, above 2 radius
TwoSphereCoefficients coefficientsOfTwoSpheres(double radius, double distance);

/// 8 epsilon_0 a (1 + 0.869 (h / 2a)^0.76), an approximation within 0.2 % where h <= 16 a (W. R. Smythe, Journal of
/// Applied Physics 27, 1956).
double capacitanceOfCylinder(double radius, double height);

/// 4 pi epsilon_0 R^3: the dipole moment of a sphere in a uniform field of 1 V/m.
double polarizabilityOfSphere(double radius);

}  // namespace Komvos::Program
