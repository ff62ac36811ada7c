/// \file Komvos_HMatrixPreconditioner_def.hpp
/// How it works. A rank computes the rows of the inverse that belong to its own unknowns, and imports what these rows
/// are multiplied by. Where the boundary between two ranks cuts a cluster, both factor its block, and each keeps its
/// rows: so there is one exchange in a product, and blocks do not depend on the number of ranks.
#pragma once

#include <Kokkos_Timer.hpp>
#include <Teuchos_DefaultMpiComm.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <Tpetra_Import.hpp>
#include <Tpetra_Vector.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_HMatrixPreconditioner.hpp"
#include "Komvos_LocalInverse_def.hpp"
#include "Komvos_NodeAwareImport.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_RequireMap.hpp"

namespace Komvos {
namespace Impl {

inline void requireOptions(const HMatrixPreconditionerOptions& options) {
  const auto require = [](bool isGood, const char* name, double value, const char* range) {
    if (!isGood) {
      throw BadInput("HMatrixPreconditioner: " + std::string(name) + " is " + std::to_string(value) + "; it must be " +
                     range);
    }
  };
  require(options.blockSize >= 1, "blockSize", options.blockSize, "at least 1");
  require(options.ownSize >= 1, "ownSize", options.ownSize, "at least 1");
  require(options.extendedSize >= options.ownSize, "extendedSize", options.extendedSize, "at least ownSize");
  require(options.overlap >= 0 && std::isfinite(options.overlap), "overlap", options.overlap, "at least 0, and finite");
  require(options.accuracy > 0 && options.accuracy < 1, "accuracy", options.accuracy, "between 0 and 1");
  require(options.leafSize >= 1, "leafSize", options.leafSize, "at least 1");
}

/// The places [begin, end) of this rank. \throws BadInput if its unknowns are not neighbours in the tree's order
template <class Map>
std::pair<int, int> placesOf(const Map& map, const ClusterTree& tree) {
  using Local = typename Map::local_ordinal_type;
  const auto n = static_cast<Tpetra::global_size_t>(tree.size());
  if (map.getGlobalNumElements() != n) {
    throw BadInput("HMatrixPreconditioner: the map has " + std::to_string(map.getGlobalNumElements()) +
                   " unknowns, the tree " + std::to_string(n));
  }
  const std::size_t length = localLength(map);
  if (length == 0) {
    return {0, 0};
  }
  const auto& order = tree.order();
  const auto first = std::find(order.begin(), order.end(), static_cast<int>(map.getGlobalElement(0)));
  for (std::size_t i = 0; i < length; ++i) {
    const auto index = map.getGlobalElement(static_cast<Local>(i));
    if (static_cast<std::size_t>(order.end() - first) <= i || first[static_cast<std::ptrdiff_t>(i)] != index) {
      throw BadInput("HMatrixPreconditioner: global index " + std::to_string(index) + ", number " + std::to_string(i) +
                     " of a rank, is not at the next place of the tree's order: give the map of the HMatrixOperator");
    }
  }
  const int begin = static_cast<int>(first - order.begin());
  return {begin, begin + static_cast<int>(length)};
}

/// One over the diagonal, for places [begin, end). \throws BadInput if an entry is zero or not finite
template <class Scalar>
std::vector<Scalar> inverseDiagonal(const ClusterTree& tree, int begin, int end, const EntryKernel<Scalar>& kernel) {
  std::vector<Scalar> inverse(static_cast<std::size_t>(end - begin));
  forAllOnHost(inverse.size(), [&](std::size_t i) {
    const int unknown = tree.order()[begin + static_cast<int>(i)];
    inverse[i] = Scalar(1) / kernel.entry(unknown, unknown);
    if (!std::isfinite(std::abs(inverse[i])) || inverse[i] == Scalar(0)) {
      throw BadInput("HMatrixPreconditioner: diagonal entry (" + std::to_string(unknown) + ", " +
                     std::to_string(unknown) + ") of the kernel is zero or not finite");
    }
  });
  return inverse;
}

}  // namespace Impl

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
struct HMatrixPreconditioner<Scalar, LocalOrdinal, GlobalOrdinal, Node>::State {
  using space_type = typename Node::execution_space;
  using value_type = typename Impl::ViewValue<Scalar>::type;
  using inverse_type = Impl::LocalInverse<value_type, space_type>;
  using memory_space = typename Impl::BufferSpace<space_type>::type;
  using halo_type = NodeAwareImport<LocalOrdinal, GlobalOrdinal, Node>;
  using import_type = Tpetra::Import<LocalOrdinal, GlobalOrdinal, Node>;
  using vector_type = Tpetra::Vector<Scalar, LocalOrdinal, GlobalOrdinal, Node>;

  std::shared_ptr<Impl::PrivateComm> ours;
  HMatrixPreconditionerReport report;
  Teuchos::RCP<const map_type> map, columnMap;
  inverse_type inverse;
  std::unique_ptr<halo_type> halo;     ///< where unknowns of other ranks are needed
  Teuchos::RCP<vector_type> diagonal;  ///< inverted; of that kind alone
  Teuchos::RCP<multivector_type> columns;
  Kokkos::View<int*, memory_space> inOrder;  ///< 0, 1, 2...
  Kokkos::View<value_type*, memory_space> work;

  void makeInverse(const ClusterTree& tree, const EntryKernel<Scalar>& kernel,
                   const HMatrixPreconditionerOptions& options);
  void makeExchange(const ClusterTree& tree, const ExchangeOptions& exchange);
  void makeDiagonal(const std::vector<Scalar>& values);
  void sumReport();
  void requireFit(const multivector_type& X, const multivector_type& Y, Teuchos::ETransp mode) const;
  void multiply(multivector_type& Y, Scalar alpha, Scalar beta);
};

/// Everything that a rank does alone.
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
void HMatrixPreconditioner<Scalar, LocalOrdinal, GlobalOrdinal, Node>::State::makeInverse(
    const ClusterTree& tree, const EntryKernel<Scalar>& kernel, const HMatrixPreconditionerOptions& options) {
  using Kind = HMatrixPreconditionerKind;
  Impl::requireOptions(options);
  const auto [begin, end] = Impl::placesOf(*map, tree);
  if (options.kind == Kind::Diagonal) {
    makeDiagonal(Impl::inverseDiagonal(tree, begin, end, kernel));
    return;
  }
  if (options.kind == Kind::Hodlr) {
    inverse = Impl::hodlrLocalInverse<Scalar, value_type, space_type>(tree, begin, end, kernel,
                                                                      {options.accuracy, options.leafSize});
  } else {
    const Impl::LocalBlocks blocks =
        options.kind == Kind::Overlapping
            ? Impl::localBlocks(tree, options.ownSize, options.overlap, options.extendedSize, begin, end)
            : Impl::localBlocks(tree, options.blockSize, 0, options.blockSize, begin, end);
    inverse = Impl::denseInverse<Scalar, value_type, space_type>(tree, blocks, begin, end, kernel);
  }
  std::vector<int> list(std::max(inverse.inputs.length(), end - begin));
  std::iota(list.begin(), list.end(), 0);
  inOrder = Impl::deviceList<memory_space>("Komvos::HMatrixPreconditioner::inOrder", list);
  report.bytes = inverse.numValues * static_cast<std::int64_t>(sizeof(Scalar));
  report.largestBlock = inverse.largestBlock;
  report.largestRank = inverse.largestRank;
}

/// \note Collective.
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
void HMatrixPreconditioner<Scalar, LocalOrdinal, GlobalOrdinal, Node>::State::makeExchange(
    const ClusterTree& tree, const ExchangeOptions& exchange) {
  std::vector<GlobalOrdinal> indices;
  for (const int place : inverse.inputs.places()) {
    indices.push_back(static_cast<GlobalOrdinal>(tree.order()[place]));
  }
  columnMap = Teuchos::rcp(
      new map_type(Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid(),
                   Teuchos::ArrayView<const GlobalOrdinal>(
                       indices.data(), static_cast<typename Teuchos::Array<int>::size_type>(indices.size())),
                   map->getIndexBase(), map->getComm()));
  halo = std::make_unique<halo_type>(import_type(map, columnMap), exchange);
}

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
void HMatrixPreconditioner<Scalar, LocalOrdinal, GlobalOrdinal, Node>::State::makeDiagonal(
    const std::vector<Scalar>& values) {
  diagonal = Teuchos::rcp(new vector_type(map));
  for (std::size_t i = 0; i < values.size(); ++i) {
    diagonal->replaceLocalValue(static_cast<LocalOrdinal>(i), values[i]);
  }
  report.bytes = static_cast<std::int64_t>(values.size() * sizeof(Scalar));
  report.largestBlock = values.empty() ? 0 : 1;
}

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
void HMatrixPreconditioner<Scalar, LocalOrdinal, GlobalOrdinal, Node>::State::sumReport() {
  const auto reduce = [&](void* value, MPI_Datatype type, MPI_Op operation) {
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, value, 1, type, operation, ours->get()), "MPI_Allreduce");
  };
  reduce(&report.bytes, MPI_INT64_T, MPI_SUM);
  reduce(&report.largestBlock, MPI_INT, MPI_MAX);
  reduce(&report.largestRank, MPI_INT, MPI_MAX);
  reduce(&report.seconds, MPI_DOUBLE, MPI_MAX);
}

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
HMatrixPreconditioner<Scalar, LocalOrdinal, GlobalOrdinal, Node>::HMatrixPreconditioner(
    const Teuchos::RCP<const map_type>& map, const ClusterTree& tree, const EntryKernel<Scalar>& kernel,
    const HMatrixPreconditionerOptions& options, const ExchangeOptions& exchange)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  const Kokkos::Timer timer;
  s.map = map;
  s.ours = Impl::PrivateComm::of(Tpetra::Details::extractMpiCommFromTeuchos(*map->getComm()));
  std::string error = Impl::errorIn([&] { s.makeInverse(tree, kernel, options); });
  if (!error.empty()) {
    error += " (rank " + std::to_string(s.ours->rank()) + ")";
  }
  throwOnAllIfAny(s.ours->get(), error);
  if (options.kind != HMatrixPreconditionerKind::Diagonal && options.kind != HMatrixPreconditionerKind::Hodlr) {
    s.makeExchange(tree, exchange);
  }
  s.report.seconds = timer.seconds();
  s.sumReport();
}

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
HMatrixPreconditioner<Scalar, LocalOrdinal, GlobalOrdinal, Node>::~HMatrixPreconditioner() = default;

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
auto HMatrixPreconditioner<Scalar, LocalOrdinal, GlobalOrdinal, Node>::getDomainMap() const
    -> Teuchos::RCP<const map_type> {
  return state_->map;
}
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
auto HMatrixPreconditioner<Scalar, LocalOrdinal, GlobalOrdinal, Node>::getRangeMap() const
    -> Teuchos::RCP<const map_type> {
  return state_->map;
}
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
const HMatrixPreconditionerReport& HMatrixPreconditioner<Scalar, LocalOrdinal, GlobalOrdinal, Node>::report() const {
  return state_->report;
}

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
void HMatrixPreconditioner<Scalar, LocalOrdinal, GlobalOrdinal, Node>::State::requireFit(const multivector_type& X,
                                                                                         const multivector_type& Y,
                                                                                         Teuchos::ETransp mode) const {
  if (mode != Teuchos::NO_TRANS) {
    throw BadInput("HMatrixPreconditioner::apply: there is no transposed product");
  }
  Impl::requireMap("HMatrixPreconditioner::apply: X", *X.getMap(), *map);
  Impl::requireMap("HMatrixPreconditioner::apply: Y", *Y.getMap(), *map);
  if (X.getNumVectors() != Y.getNumVectors()) {
    throw PlanMismatch("HMatrixPreconditioner::apply: X has " + std::to_string(X.getNumVectors()) + " columns, Y " +
                       std::to_string(Y.getNumVectors()) + " (rank " + std::to_string(ours->rank()) + ")");
  }
}

/// Y = alpha M columns + beta Y
template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
void HMatrixPreconditioner<Scalar, LocalOrdinal, GlobalOrdinal, Node>::State::multiply(multivector_type& Y,
                                                                                       Scalar alpha, Scalar beta) {
  using panels_type = Impl::Panels<value_type, space_type>;
  const auto& space = Impl::defaultSpace<space_type>();
  const auto kernel = Impl::runsOnHost<space_type>() ? Impl::PanelKernel::Threads : Impl::PanelKernel::Teams;
  const auto x = columns->getLocalViewDevice(Tpetra::Access::ReadOnly);
  const auto y = beta == Scalar(0) ? Y.getLocalViewDevice(Tpetra::Access::OverwriteAll)
                                   : Y.getLocalViewDevice(Tpetra::Access::ReadWrite);
  using Input = std::decay_t<decltype(x)>;
  using Output = std::decay_t<decltype(y)>;
  const int vectors = static_cast<int>(Y.getNumVectors());
  for (int done = 0, n; done < vectors; done += n) {
    for (n = panels_type::mostVectors; n > vectors - done; n /= 2) {
    }
    const std::size_t length = static_cast<std::size_t>(inverse.workLength) * static_cast<std::size_t>(n);
    if (work.extent(0) < length) {
      work = {};
      work = Kokkos::View<value_type*, memory_space>(
          Kokkos::view_alloc("Komvos::HMatrixPreconditioner::work", Kokkos::WithoutInitializing), length);
    }
    const auto at = [&](int place) { return work.data() + static_cast<std::ptrdiff_t>(place) * n; };
    Kokkos::parallel_for("Komvos::HMatrixPreconditioner::apply: x", Impl::range(space, 0, inverse.inputs.length()),
                         Impl::FromUser<value_type, Input>{inOrder.data(), x, done, n, at(0)});
    for (const auto& step : inverse.steps) {
      step.panels.multiply(space, kernel, n, at(step.input), at(step.output), step.add);
    }
    Kokkos::parallel_for("Komvos::HMatrixPreconditioner::apply: y",
                         Impl::range(space, 0, static_cast<int>(Y.getLocalLength())),
                         Impl::ToUser<value_type, Output>{inOrder.data(), at(inverse.output), done, n, y,
                                                          value_type(alpha), value_type(beta)});
  }
  Impl::fence(space, "Komvos::HMatrixPreconditioner::apply: Y is ready");
}

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
void HMatrixPreconditioner<Scalar, LocalOrdinal, GlobalOrdinal, Node>::apply(const multivector_type& X,
                                                                             multivector_type& Y, Teuchos::ETransp mode,
                                                                             Scalar alpha, Scalar beta) const {
  State& s = *state_;
  // Whatever is thrown here, nobody waits for what this rank would have sent.
  try {
    s.requireFit(X, Y, mode);
    if (s.diagonal.is_null() && (s.columns.is_null() || s.columns->getNumVectors() != X.getNumVectors())) {
      s.columns = Teuchos::rcp(new multivector_type(s.halo ? s.columnMap : s.map, X.getNumVectors()));
    }
  } catch (...) {
    if (s.halo) {
      s.halo->template abandonForward<Scalar>();
    }
    throw;
  }
  if (!s.diagonal.is_null()) {
    Y.elementWiseMultiply(alpha, *s.diagonal, X, beta);
    return;
  }
  if (s.halo) {
    s.halo->doImport(X, *s.columns, Tpetra::INSERT);
  } else {
    Tpetra::deep_copy(*s.columns, X);
  }
  if (Y.isConstantStride()) {
    s.multiply(Y, alpha, beta);
    return;
  }
  multivector_type product(s.map, X.getNumVectors());
  s.multiply(product, alpha, Scalar(0));
  Y.update(Teuchos::ScalarTraits<Scalar>::one(), product, beta);
}

}  // namespace Komvos
