#include "Komvos_GapEstimate.hpp"

#include <algorithm>
#include <cmath>

namespace Komvos::Impl {

namespace {

enum { f, g, h, k, a, c };  // a = A w^ - t, c = A z^ - v

double hypot3(double x, double y, double z) { return std::sqrt(x * x + y * y + z * z); }

}  // namespace

GapEstimate::GapEstimate(double roundoff, double operatorNorm, double rightHandSide)
    : roundoff_(roundoff), operatorNorm_(operatorNorm), rightHandSide_(rightHandSide) {}

double GapEstimate::deviation(int i) const { return std::sqrt(std::max(0.0, covariance_[i][i].real())); }

/// covariance = step covariance step^H
void GapEstimate::propagate(const Matrix& step) {
  Matrix half{}, full{};
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < size; ++j) {
      for (int l = 0; l < size; ++l) {
        half[i][j] += step[i][l] * covariance_[l][j];
      }
    }
  }
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < size; ++j) {
      for (int l = 0; l < size; ++l) {
        full[i][j] += half[i][l] * std::conj(step[j][l]);
      }
    }
  }
  covariance_ = full;
}

void GapEstimate::add(int i, double error) { covariance_[i][i] += error * error; }

/// A new product: its error has nothing to do with what was before.
void GapEstimate::renew(int i, double error) {
  for (int j = 0; j < size; ++j) {
    covariance_[i][j] = covariance_[j][i] = 0;
  }
  add(i, error);
}

void GapEstimate::reset(const Residuals& norms) {
  covariance_ = Matrix{};
  residuals_ = norms;
  const double product = roundoff_ * operatorNorm_;
  add(f, least(norms.x));
  add(g, product * directions_.p);
  add(h, product * norms.rHat);
  add(k, product * directions_.sHat);
  add(c, product * norms.zHat);
}

void GapEstimate::advanceDirections(Number beta, Number omega, const Directions& norms) {
  const Directions last = directions_;
  const double product = roundoff_ * operatorNorm_, b = std::abs(beta), bo = std::abs(beta * omega);
  renew(a, product * norms.wHat);
  Matrix step{};
  step[f][f] = step[h][h] = step[a][a] = step[c][c] = 1;
  // g = h + beta (g - omega k): s = w + beta (s - omega z), p^ = r^ + beta (p^ - omega s^)
  step[g][h] = 1;
  step[g][g] = beta;
  step[g][k] = -beta * omega;
  // k = a + beta (k - omega c): z = t + beta (z - omega v), s^ = w^ + beta (s^ - omega z^)
  step[k][a] = 1;
  step[k][k] = beta;
  step[k][c] = -beta * omega;
  propagate(step);
  add(g, roundoff_ * hypot3(norms.s, b * last.s, bo * last.z));
  add(g, product * hypot3(norms.p, b * last.p, bo * last.sHat));
  add(k, roundoff_ * hypot3(norms.z, b * last.z, 0));
  add(k, product * hypot3(norms.sHat, b * last.sHat, bo * residuals_.zHat));
  directions_ = norms;
}

void GapEstimate::advanceResiduals(Number alpha, Number omega, const Residuals& norms) {
  const double product = roundoff_ * operatorNorm_, al = std::abs(alpha), o = std::abs(omega);
  renew(c, product * norms.zHat);
  Matrix step{};
  step[g][g] = step[k][k] = step[a][a] = step[c][c] = 1;
  // f = f - alpha g - omega (h - alpha k): r = q - omega y, q = r - alpha s, y = w - alpha z
  step[f][f] = 1;
  step[f][g] = -alpha;
  step[f][h] = -omega;
  step[f][k] = omega * alpha;
  // h = h - alpha k - omega (a - alpha c): w = y - omega (t - alpha v)
  step[h][h] = 1;
  step[h][k] = -alpha;
  step[h][a] = -omega;
  step[h][c] = omega * alpha;
  propagate(step);
  add(f, roundoff_ * hypot3(norms.r, al * directions_.s, o * residuals_.w));
  add(f, product * norms.x);
  add(h, roundoff_ * hypot3(norms.w, al * directions_.z, 0));
  add(h, product * hypot3(norms.rHat, al * directions_.sHat, o * directions_.wHat));
  residuals_ = norms;
}

}  // namespace Komvos::Impl
