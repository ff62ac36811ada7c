/// \file Komvos_BoundaryKernels.cpp
/// How it works: a block goes through a PairFunction in chunks, along its columns where they are long enough, else
/// along its rows. Near entries, of which there are few, are then put in one by one.
#include "Komvos_BoundaryKernels.hpp"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "Komvos_BoundaryEntry.hpp"
#include "Komvos_PairFunctions.hpp"

namespace Komvos {
namespace {

using Impl::BoundaryTriangle;
using Impl::PairChunk;

int roundedUp(int count) { return (count + PairChunk::widest - 1) / PairChunk::widest * PairChunk::widest; }

/// Walks through a block. `Entries` has
/// - setPosition(chunk, place, row) and setTriangle(chunk, place, column);
/// - run(chunk), which fills a chunk;
/// - store(chunk, place, row, column, out), which writes an entry.
template <class Entries, class Value>
void fillBlock(const Entries& entries, const int* rows, int numRows, const int* columns, int numColumns, Value* out) {
  PairChunk chunk;
  const bool isAlongColumns = numRows >= std::min(numColumns, static_cast<int>(PairChunk::widest));
  const int* const inner = isAlongColumns ? rows : columns;
  const int* const outer = isAlongColumns ? columns : rows;
  const int numInner = isAlongColumns ? numRows : numColumns, numOuter = isAlongColumns ? numColumns : numRows;
  chunk.positionStep = isAlongColumns ? 1 : 0;
  chunk.triangleStep = isAlongColumns ? 0 : 1;
  const auto set = [&](bool isPosition, int place, int index) {
    isPosition ? entries.setPosition(chunk, place, index) : entries.setTriangle(chunk, place, index);
  };
  for (int begin = 0; begin < numInner; begin += PairChunk::most) {
    const int used = std::min(numInner - begin, static_cast<int>(PairChunk::most));
    chunk.count = roundedUp(used);
    for (int p = 0; p < chunk.count; ++p) {
      set(isAlongColumns, p, inner[begin + std::min(p, used - 1)]);
    }
    for (int o = 0; o < numOuter; ++o) {
      for (int p = 0; p < PairChunk::widest; ++p) {
        set(!isAlongColumns, p, outer[o]);
      }
      entries.run(chunk);
      for (int p = 0; p < used; ++p) {
        const int r = isAlongColumns ? begin + p : o, c = isAlongColumns ? o : begin + p;
        entries.store(chunk, p, rows[r], columns[c], out[static_cast<std::size_t>(c) * numRows + r]);
      }
    }
  }
}

/// Entries of a mesh. Where the compiler has no vectors, all of them are put in one by one.
template <class Form>
struct MeshEntries {
  using Value = typename Form::value_type;
  Form form;
  std::vector<BoundaryTriangle> triangles;
  std::vector<Point3> centroids;
  Impl::RuleTable rules;
  std::vector<TriangleRulePoint> points;  ///< of the rules
  Impl::PairFunction function;

  MeshEntries(const TriangleMesh& mesh, const Impl::FarCriterion& criterion, const Form& f)
      : form(f),
        triangles(Impl::boundaryTriangles(mesh, criterion)),
        points(Impl::rulePointsAroundCentroid(rules)),
        function(Impl::pairFunction(f)) {
    rules.points = points.data();
    for (const BoundaryTriangle& t : triangles) {
      centroids.push_back(t.centroid);
    }
  }
  MeshEntries(const MeshEntries&) = delete;
  MeshEntries& operator=(const MeshEntries&) = delete;

  double kappa() const {
    if constexpr (std::is_base_of_v<Impl::ExponentialForm, Form>) {
      return form.kappa;
    }
    return 0;
  }
  void setPosition(PairChunk& chunk, int place, int row) const { chunk.setPosition(place, centroids[row]); }
  void setTriangle(PairChunk& chunk, int place, int column) const { chunk.setTriangle(place, triangles[column]); }
  void run(PairChunk& chunk) const {
    chunk.kappa = kappa();
    function(chunk, rules);
  }
  template <class Out>
  void store(const PairChunk& chunk, int place, int row, int column, Out& out) const {
    if (chunk.isNear(place)) {
      out = form.near(rules, triangles[column], centroids[row] - centroids[column], row == column);
    } else if constexpr (std::is_same_v<Out, double>) {
      out = chunk.out[0][place];
    } else {
      out = {chunk.out[0][place], chunk.out[1][place]};
    }
  }

  template <class Out>
  void block(const int* rows, int numRows, const int* columns, int numColumns, Out* out) const {
    if (function != nullptr) {
      fillBlock(*this, rows, numRows, columns, numColumns, out);
      return;
    }
    for (int c = 0; c < numColumns; ++c) {
      for (int r = 0; r < numRows; ++r) {
        *out++ = Impl::boundaryEntry(form, rules, triangles[columns[c]], centroids[rows[r]] - centroids[columns[c]],
                                     rows[r] == columns[c]);
      }
    }
  }
};

}  // namespace

struct LaplaceSingleLayer::State : MeshEntries<Impl::SingleLayerForm> {
  using MeshEntries::MeshEntries;
};
LaplaceSingleLayer::LaplaceSingleLayer(const TriangleMesh& mesh, const BoundaryKernelOptions& options)
    : state_(std::make_unique<State>(mesh, Impl::FarCriterion{false, 0, options.accuracy}, Impl::SingleLayerForm{})) {}
LaplaceSingleLayer::~LaplaceSingleLayer() = default;
double LaplaceSingleLayer::entry(int row, int column) const {
  double value = 0;
  state_->block(&row, 1, &column, 1, &value);
  return value;
}
void LaplaceSingleLayer::block(const int* rows, int numRows, const int* columns, int numColumns, double* out) const {
  state_->block(rows, numRows, columns, numColumns, out);
}

struct LaplaceDoubleLayer::State : MeshEntries<Impl::DoubleLayerForm> {
  using MeshEntries::MeshEntries;
};
LaplaceDoubleLayer::LaplaceDoubleLayer(const TriangleMesh& mesh, double jump, const BoundaryKernelOptions& options)
    : state_(
          std::make_unique<State>(mesh, Impl::FarCriterion{true, 0, options.accuracy}, Impl::DoubleLayerForm{jump})) {}
LaplaceDoubleLayer::~LaplaceDoubleLayer() = default;
double LaplaceDoubleLayer::entry(int row, int column) const {
  double value = 0;
  state_->block(&row, 1, &column, 1, &value);
  return value;
}
void LaplaceDoubleLayer::block(const int* rows, int numRows, const int* columns, int numColumns, double* out) const {
  state_->block(rows, numRows, columns, numColumns, out);
}

struct YukawaSingleLayer::State : MeshEntries<Impl::YukawaForm> {
  using MeshEntries::MeshEntries;
};
YukawaSingleLayer::YukawaSingleLayer(const TriangleMesh& mesh, double kappa, const BoundaryKernelOptions& options)
    : state_(std::make_unique<State>(mesh, Impl::FarCriterion{false, kappa, options.accuracy},
                                     Impl::YukawaForm(kappa, options.accuracy))) {}
YukawaSingleLayer::~YukawaSingleLayer() = default;
double YukawaSingleLayer::entry(int row, int column) const {
  double value = 0;
  state_->block(&row, 1, &column, 1, &value);
  return value;
}
void YukawaSingleLayer::block(const int* rows, int numRows, const int* columns, int numColumns, double* out) const {
  state_->block(rows, numRows, columns, numColumns, out);
}

struct HelmholtzSingleLayer::State : MeshEntries<Impl::HelmholtzForm> {
  using MeshEntries::MeshEntries;
};
HelmholtzSingleLayer::HelmholtzSingleLayer(const TriangleMesh& mesh, double wavenumber,
                                           const BoundaryKernelOptions& options)
    : state_(std::make_unique<State>(mesh, Impl::FarCriterion{false, wavenumber, options.accuracy},
                                     Impl::HelmholtzForm(wavenumber, options.accuracy))) {}
HelmholtzSingleLayer::~HelmholtzSingleLayer() = default;
std::complex<double> HelmholtzSingleLayer::entry(int row, int column) const {
  std::complex<double> value = 0;
  state_->block(&row, 1, &column, 1, &value);
  return value;
}
void HelmholtzSingleLayer::block(const int* rows, int numRows, const int* columns, int numColumns,
                                 std::complex<double>* out) const {
  state_->block(rows, numRows, columns, numColumns, out);
}

struct OneOverDistance::State {
  std::vector<Point3> points;
  double diagonal = 0;
  Impl::PairFunction function = Impl::distancePairFunction();

  void setPosition(PairChunk& chunk, int place, int row) const { chunk.setPosition(place, points[row]); }
  void setTriangle(PairChunk& chunk, int place, int column) const {
    chunk.triangle[PairChunk::Centroid][place] = points[column].x;
    chunk.triangle[PairChunk::Centroid + 1][place] = points[column].y;
    chunk.triangle[PairChunk::Centroid + 2][place] = points[column].z;
  }
  void run(PairChunk& chunk) const { function(chunk, {}); }
  void store(const PairChunk& chunk, int place, int, int, double& out) const {
    out = chunk.isNear(place) ? diagonal : chunk.out[0][place];
  }
  double entry(int row, int column) const {
    const double r = norm(points[row] - points[column]);
    return r == 0 ? diagonal : 1 / r;
  }
};
OneOverDistance::OneOverDistance(std::vector<Point3> points, double diagonal)
    : state_(std::make_unique<State>(State{std::move(points), diagonal})) {}
OneOverDistance::~OneOverDistance() = default;
double OneOverDistance::entry(int row, int column) const {
  double value = 0;
  block(&row, 1, &column, 1, &value);
  return value;
}
void OneOverDistance::block(const int* rows, int numRows, const int* columns, int numColumns, double* out) const {
  if (state_->function != nullptr) {
    fillBlock(*state_, rows, numRows, columns, numColumns, out);
    return;
  }
  for (int c = 0; c < numColumns; ++c) {
    for (int r = 0; r < numRows; ++r) {
      *out++ = state_->entry(rows[r], columns[c]);
    }
  }
}

}  // namespace Komvos
