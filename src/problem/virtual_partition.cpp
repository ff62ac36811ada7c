#include "problem/virtual_partition.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>

#include "Komvos_Error.hpp"

namespace Komvos::Program {

namespace {

using LO = DefaultLocalOrdinal;

using Point = std::array<double, 3>;

std::vector<Point> pointsOf(const MultiVector& coordinates) {
  std::vector<Point> points(coordinates.getLocalLength(), Point{});
  for (std::size_t d = 0; d < std::min<std::size_t>(3, coordinates.getNumVectors()); ++d) {
    const auto values = coordinates.getData(d);
    for (std::size_t i = 0; i < points.size(); ++i) {
      points[i][d] = values[static_cast<LO>(i)];
    }
  }
  return points;
}

/// Cuts a set of points into numParts - 1 times, each time across its longest side.
class Bisection {
 public:
  Bisection(const std::vector<Point>& points, int numParts) : points_(points), part_(points.size()) {
    order_.resize(points.size());
    std::iota(order_.begin(), order_.end(), 0);
    cut(0, order_.size(), 0, numParts);
  }
  std::vector<int> take() { return std::move(part_); }

 private:
  void cut(std::size_t first, std::size_t last, int firstPart, int numParts) {
    if (numParts == 1) {
      for (std::size_t k = first; k < last; ++k) {
        part_[order_[k]] = firstPart;
      }
      return;
    }
    const int d = longestSide(first, last);
    const int half = numParts / 2;
    const std::size_t middle =
        first + (last - first) * static_cast<std::size_t>(half) / static_cast<std::size_t>(numParts);
    const auto begin = order_.begin();
    std::nth_element(begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(middle),
                     begin + static_cast<std::ptrdiff_t>(last), [&](int a, int b) {
                       return points_[a][d] != points_[b][d] ? points_[a][d] < points_[b][d] : a < b;
                     });
    cut(first, middle, firstPart, half);
    cut(middle, last, firstPart + half, numParts - half);
  }

  int longestSide(std::size_t first, std::size_t last) const {
    Point low = points_[order_[first]];
    Point high = low;
    for (std::size_t k = first; k < last; ++k) {
      for (int d = 0; d < 3; ++d) {
        low[d] = std::min(low[d], points_[order_[k]][d]);
        high[d] = std::max(high[d], points_[order_[k]][d]);
      }
    }
    const Point side{high[0] - low[0], high[1] - low[1], high[2] - low[2]};
    return static_cast<int>(std::max_element(side.begin(), side.end()) - side.begin());
  }

  const std::vector<Point>& points_;
  std::vector<int> part_;
  std::vector<int> order_;
};

std::vector<int> nodeOwners(const Problem& problem, const std::string& kind, int numRanks, std::int64_t nodes) {
  if (kind == "blocks") {
    if (problem.coordinates.is_null()) {
      throw BadInput("--partition blocks needs coordinates, which " + problem.name + " does not have");
    }
    return Bisection(pointsOf(*problem.coordinates), numRanks).take();
  }
  std::vector<int> owners(nodes);
  const std::int64_t share = nodes / numRanks;
  const std::int64_t more = nodes % numRanks;  // ranks with one node more, the first ones
  for (std::int64_t node = 0; node < nodes; ++node) {
    const std::int64_t rank = kind == "strided"           ? node % numRanks
                              : node < more * (share + 1) ? node / (share + 1)
                                                          : more + (node - more * (share + 1)) / share;
    owners[node] = static_cast<int>(rank);
  }
  return owners;
}

}  // namespace

std::vector<int> virtualOwners(const Problem& problem, const std::string& kind, int numRanks) {
  const auto rows = static_cast<std::int64_t>(problem.matrix->getGlobalNumRows());
  const std::int64_t nodes = rows / problem.dofsPerNode;
  if (numRanks > nodes) {
    throw BadInput("--ranks " + std::to_string(numRanks) + ": more ranks than " +
                   (problem.dofsPerNode > 1 ? "grid points (" : "rows (") + std::to_string(nodes) + ")");
  }
  const std::vector<int> ofNode = nodeOwners(problem, kind, numRanks, nodes);
  std::vector<int> ofRow(rows);
  for (std::int64_t row = 0; row < rows; ++row) {
    ofRow[row] = ofNode[row / problem.dofsPerNode];
  }
  return ofRow;
}

std::vector<int> coarseOwners(const Matrix& prolongator, const std::vector<int>& fineOwners, int rowsPerAggregate) {
  const auto local = prolongator.getLocalMatrixHost();
  const Map& columns = *prolongator.getColMap();
  const Map& coarse = *prolongator.getDomainMap();
  std::vector<std::map<int, double>> weight(Impl::localLength(coarse) / rowsPerAggregate);  // of each rank
  for (LO row = 0; row < local.numRows(); ++row) {
    for (auto p = local.graph.row_map(row); p < local.graph.row_map(row + 1); ++p) {
      const LO column = coarse.getLocalElement(columns.getGlobalElement(local.graph.entries(p)));
      weight[column / rowsPerAggregate][fineOwners[row]] += std::abs(local.values(p));
    }
  }
  std::vector<int> owners;
  for (const auto& ranks : weight) {
    const auto heaviest =
        std::max_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    owners.insert(owners.end(), rowsPerAggregate, heaviest == ranks.end() ? 0 : heaviest->first);
  }
  return owners;
}

}  // namespace Komvos::Program
