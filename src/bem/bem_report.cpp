#include "bem/bem_report.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/text_format.hpp"

namespace Komvos::Program {

namespace {

std::string plural(long long count, const std::string& one, const std::string& many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::string seconds(double value) {
  return value < 1e-3 ? format("%.1f us", 1e6 * value)
         : value < 1  ? format("%.3g ms", 1e3 * value)
                      : format("%.3f s", value);
}

std::string geometryText(const BemReport& r) {
  std::string text = "geometry       " + r.geometry + ": " + plural(r.triangles, "triangle", "triangles") + ", " +
                     plural(r.vertices, "vertex", "vertices") + ", " + plural(r.bodies, "body", "bodies") +
                     format(", area %.6g m^2\n", r.area);
  for (const std::string& fault : r.faults) {
    text += "warning        " + fault + "\n";
  }
  return text + "ranks          " + r.topology + (r.topologyGiven ? ", as given" : ", as MPI says") + "\n";
}

std::string blocksText(const BemReport& r) {
  const HMatrixReport& m = r.matrix;
  std::string text = format("blocks         %lld of low rank, %lld dense", static_cast<long long>(m.numLowRank),
                            static_cast<long long>(m.numDense));
  if (m.largestRank() < 0) {
    return text + "\n";
  }
  text += format("; largest rank %d\n", m.largestRank());
  const auto begin = m.blocksOfRank.begin();
  const auto first = std::find_if(begin, m.blocksOfRank.end(), [](std::int64_t count) { return count > 0; }) - begin;
  const int least = static_cast<int>(first), ranks = m.largestRank() + 1 - least, mostBins = 12;
  const int width = (ranks + mostBins - 1) / mostBins;
  std::vector<std::int64_t> bins;
  for (int bin = least; bin < least + ranks; bin += width) {
    bins.push_back(std::accumulate(begin + bin, begin + std::min(bin + width, least + ranks), std::int64_t{0}));
  }
  const auto most = static_cast<double>(*std::max_element(bins.begin(), bins.end()));
  for (std::size_t bin = 0; bin < bins.size(); ++bin) {
    const int from = least + static_cast<int>(bin) * width, to = std::min(from + width, least + ranks) - 1;
    const std::string name = from == to ? std::to_string(from) : format("%d-%d", from, to);
    const auto length = static_cast<std::size_t>(std::ceil(40 * static_cast<double>(bins[bin]) / most));
    text += format("  rank %-8s %9lld", name.c_str(), static_cast<long long>(bins[bin])) +
            (length > 0 ? "  " + std::string(length, '#') : "") + "\n";
  }
  return text;
}

std::string matrixText(const BemReport& r) {
  const HMatrixOperatorReport& m = r.matrix;
  std::string text =
      "kernel         " + r.kernel + format(", %d unknowns%s\n", r.triangles, r.isComplex ? ", complex" : "");
  text += format("clusters       leaves of up to %d unknowns, split by %s, depth %d; eta %g\n", r.leafSize,
                 r.clusterSplit.c_str(), r.depth, r.eta);
  text += format("accuracy       %g of each block, by %s", r.accuracy, r.approximation.c_str()) +
          (r.storage == "reduced" ? "; values in as few bytes as that needs\n" : "\n") + blocksText(r);
  text += format("memory         %.1f MB, %.2f %% of the dense matrix's", static_cast<double>(m.bytes) / 1e6,
                 100 * m.compression);
  text += m.isHalf ? "; half of a symmetric matrix" : "";
  const auto [least, most] = std::minmax_element(m.bytesOfRank.begin(), m.bytesOfRank.end());
  if (m.bytesOfRank.size() > 1) {
    text += format("; %.1f to %.1f MB a rank, the largest %.2f of the mean", static_cast<double>(*least) / 1e6,
                   static_cast<double>(*most) / 1e6, m.imbalance());
  }
  text += "\n";
  const double allGather = static_cast<double>(r.triangles) * (static_cast<double>(r.ranks) - 1);
  if (r.ranks > 1) {
    const auto line = [&](const char* what, const std::vector<std::int64_t>& ofRank) {
      const auto sum = std::accumulate(ofRank.begin(), ofRank.end(), std::int64_t{0});
      text += format("%-14s up to %lld values a rank, over all ranks %.1f %% of a full all-gather\n", what,
                     static_cast<long long>(*std::max_element(ofRank.begin(), ofRank.end())),
                     100 * static_cast<double>(sum) / allGather);
    };
    line("gathered of x", m.gatheredOfRank);
    line("sent of y", m.sentBackOfRank);
  }
  text += format("error          %.2e = ||A - H|| / ||A|| (Frobenius), estimated from %d rows and %d vectors\n",
                 r.error.relative, r.error.rows, r.error.vectors);
  return text + format("set-up         %.3f s, after %.3f s for the mesh\n", r.setupSeconds, r.meshSeconds);
}

std::string productText(const ProductTimes& p) {
  if (p.count == 0) {
    return "";
  }
  return "product        " + seconds(p.seconds) +
         format(", the median of %d: %.2f GB/s of the matrix; plain reads of as many bytes: %.2f GB/s\n", p.count,
                p.bandwidth() / 1e9, p.readBandwidth() / 1e9);
}

std::string preconditionerText(const BemSolve& s) {
  const HMatrixPreconditionerReport& p = s.preconditionerReport;
  if (s.preconditioner == "none") {
    return "preconditioner none\n";
  }
  std::string text = format("preconditioner %s, %.1f MB", s.preconditioner.c_str(), static_cast<double>(p.bytes) / 1e6);
  text += p.largestBlock > 1 ? format(", dense blocks of up to %d unknowns", p.largestBlock) : "";
  text += p.largestRank > 0 ? format(", ranks up to %d", p.largestRank) : "";
  return text + format(", made in %.3f s\n", p.seconds);
}

std::string solveText(const BemSolve& s) {
  std::string text = "solver         " + s.solver + (s.variant.empty() ? "" : ", " + s.variant) + "; " +
                     plural(s.rightHandSides, "right-hand side", "right-hand sides") +
                     (s.groups > 1 ? format(" in %d groups", s.groups) : "") + "\n" + preconditionerText(s);
  text += format(
      "iterations     %d, %s%s; %ld products\n", s.iterations, s.converged() ? "converged" : "NOT converged",
      s.restarts > 0 ? (", restarted " + plural(s.restarts, "time", "times") + " from the true residual").c_str() : "",
      s.products);
  const std::string byBelos =
      s.belosResidual >= 0 ? format("%.3e by Belos", s.belosResidual) : "none by Belos, which gave up";
  text += format("residual       %.3e true, %s, tolerance %.1e\n", s.trueResidual, byBelos.c_str(), s.tolerance);
  const auto percent = [&](double part) { return s.seconds > 0 ? 100 * part / s.seconds : 0; };
  return text + format(
                    "solve          %.3f s: products %.0f %%, exchanges %.0f %%, preconditioner %.0f %%, vectors and "
                    "reductions %.0f %%\n",
                    s.seconds, percent(s.parts.product), percent(s.parts.exchange), percent(s.parts.preconditioner),
                    percent(s.parts.rest));
}

std::string bodiesText(const PhysicsReport& p) {
  const std::size_t most = 16;
  std::string text = "  body    area, m^2  potential, V     charge, C               dipole moment, C m\n";
  for (std::size_t body = 0; body < std::min(most, p.bodies.size()); ++body) {
    const BodyResult& one = p.bodies[body];
    text += format("  %4d %12.5g %13.5g %13.5e   %11.3e %11.3e %11.3e\n", static_cast<int>(body), one.area,
                   one.potential, one.charge, one.dipole.x, one.dipole.y, one.dipole.z);
  }
  return text + (p.bodies.size() > most
                     ? format("  ... and %d more, in the JSON report\n", static_cast<int>(p.bodies.size() - most))
                     : "");
}

std::string capacitanceText(const std::vector<std::vector<double>>& matrix) {
  const std::size_t most = 8;
  if (matrix.empty()) {
    return "";
  }
  if (matrix.size() > most) {
    return format("capacitances   %d x %d, in the JSON report\n", static_cast<int>(matrix.size()),
                  static_cast<int>(matrix.size()));
  }
  std::string text = "capacitances, F\n";
  for (const auto& row : matrix) {
    for (const double value : row) {
      text += format(" %13.5e", value);
    }
    text += "\n";
  }
  return text;
}

std::string physicsText(const BemReport& r) {
  const PhysicsReport& p = r.physics;
  std::string text;
  if (!p.bodies.empty()) {
    text += bodiesText(p) + capacitanceText(p.capacitance);
    text += r.problem == "potential" ? format("energy         %.6e J\n", p.energy) : "";
    if (r.problem == "potential" && p.bodies.size() == 1) {
      text += format("capacitance    %.6e F\n", p.bodies.front().charge / p.bodies.front().potential);
    }
  }
  for (const KnownValue& one : p.known) {
    text += "known          " + one.name +
            format(" %.6e %s, expected %.6e, error %.2e (", one.value, one.unit.c_str(), one.expected, one.error) +
            one.formula + ")\n";
  }
  if (r.problem == "interior") {
    text += p.interiorPoints > 0
                ? format("inside         error up to %.2e of the largest boundary value, at %d points\n",
                         p.interiorError, p.interiorPoints)
                : "inside         no point was found that is inside and not near the surface\n";
  }
  if (r.problem == "none") {
    text += format("solution       error %.2e against the vector of ones\n", p.solutionError);
  }
  return text;
}

}  // namespace

std::string toText(const BemReport& r) {
  std::string text = geometryText(r) + matrixText(r) + productText(r.products);
  if (r.isComplex) {
    text += "solver         none: this matrix is complex, and only multiplied\n";
  }
  return r.solve ? text + solveText(*r.solve) + physicsText(r) : text;
}

std::string whyNotConverged(const BemReport& r) {
  if (!r.solve || r.solve->converged()) {
    return "";
  }
  const BemSolve& s = *r.solve;
  std::string text = format("not converged: the true residual is %.3e after %d iterations, tolerance %.1e",
                            s.trueResidual, s.iterations, s.tolerance);
  if (s.belosConverged) {
    text += format("; Belos claims %.3e, its recurrence has drifted", s.belosResidual);
  }
  return text + (s.failureReason.empty() ? "" : "; " + s.failureReason);
}

}  // namespace Komvos::Program
