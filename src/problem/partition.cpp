#include "problem/partition.hpp"

#include <Tpetra_Import.hpp>
#include <numeric>

#include "Komvos_NodeAwareDistributor.hpp"
#include "Komvos_RowTransfer.hpp"

namespace Komvos::Program {

namespace {

using GO = DefaultGlobalOrdinal;
using Teuchos::RCP;
using Teuchos::rcp;

RCP<const Map> mapOf(const std::vector<GO>& indices, const CommPtr& comm) {
  const auto count = Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid();
  return rcp(new Map(count, Teuchos::ArrayView<const GO>(indices), 0, comm));
}

/// The nodes that this rank gets, ascending, if each rank sends node `nodes[i]` to rank `parts[i]`.
std::vector<GO> exchangeNodes(const CommPtr& comm, const std::vector<GO>& nodes, const std::vector<int>& parts) {
  using List = Kokkos::View<GO*, DefaultNode::device_type>;
  NodeAwareDistributor<> distributor(comm);
  const std::size_t count = distributor.createFromSends(Teuchos::ArrayView<const int>(parts));
  const List sent("komvos::sentNodes", nodes.size()), received("komvos::receivedNodes", count);
  Kokkos::deep_copy(sent, Kokkos::View<const GO*, Kokkos::HostSpace>(nodes.data(), nodes.size()));
  distributor.doPostsAndWaits(sent, 1, received);
  const auto onHost = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), received);
  std::vector<GO> mine(onHost.data(), onHost.data() + count);
  std::sort(mine.begin(), mine.end());
  return mine;
}

std::vector<GO> nodesOf(const Map& rows, int dofsPerNode) {
  std::vector<GO> nodes;
  for (std::size_t i = 0; i < Impl::localLength(rows); i += dofsPerNode) {
    nodes.push_back(rows.getGlobalElement(static_cast<DefaultLocalOrdinal>(i)) / dofsPerNode);
  }
  return nodes;
}

std::vector<GO> stridedNodes(GO count, const Teuchos::Comm<int>& comm) {
  std::vector<GO> nodes;
  for (GO node = comm.getRank(); node < count; node += comm.getSize()) {
    nodes.push_back(node);
  }
  return nodes;
}

}  // namespace

void moveTo(const RCP<const Map>& map, RCP<MultiVector>& vector) {
  if (vector.is_null()) {
    return;
  }
  const auto moved = rcp(new MultiVector(map, vector->getNumVectors()));
  moved->doImport(*vector, Tpetra::Import<>(vector->getMap(), map), Tpetra::INSERT);
  vector = moved;
}

void partition(Problem& problem, const std::string& kind) {
  const auto rows = problem.matrix->getRowMap();
  const CommPtr comm = rows->getComm();
  if (kind == "contiguous" || comm->getSize() == 1) {
    return;
  }
  const int dofs = problem.dofsPerNode;
  const std::vector<GO> nodes = kind == "strided"
                                    ? stridedNodes(static_cast<GO>(rows->getGlobalNumElements()) / dofs, *comm)
                                    : exchangeNodes(comm, nodesOf(*rows, dofs), partitionGraph(*problem.matrix, dofs));
  std::vector<GO> indices;
  for (const GO node : nodes) {
    for (int d = 0; d < dofs; ++d) {
      indices.push_back(node * dofs + d);
    }
  }
  const auto map = mapOf(indices, comm);
  problem.matrix = RowTransfer<>(Tpetra::Import<>(rows, map)).transfer(*problem.matrix, Tpetra::REPLACE, map, map);
  moveTo(map, problem.rhs);
  moveTo(map, problem.exact);
  moveTo(map, problem.nullspace);
  moveTo(dofs == 1 ? map : mapOf(nodes, comm), problem.coordinates);
}

}  // namespace Komvos::Program
