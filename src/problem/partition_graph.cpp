#include <Tpetra_RowMatrixTransposer.hpp>
#include <Zoltan2_PartitioningProblem.hpp>
#include <Zoltan2_TpetraRowGraphAdapter.hpp>
#include <algorithm>
#include <cstdlib>

#include "problem/partition.hpp"

namespace Komvos::Program {

namespace {

using GO = DefaultGlobalOrdinal;
using LO = DefaultLocalOrdinal;
using Graph = Tpetra::CrsGraph<>;
using Teuchos::RCP;
using Teuchos::rcp;

/// Adds the nodes that row `i` of `matrix` connects to.
void addNeighbours(const Matrix& matrix, LO i, int dofsPerNode, std::vector<GO>& neighbours) {
  const auto graph = matrix.getLocalMatrixHost().graph;
  for (auto p = graph.row_map(i); p < graph.row_map(i + 1); ++p) {
    neighbours.push_back(matrix.getColMap()->getGlobalElement(graph.entries(p)) / dofsPerNode);
  }
}

/// Nodes and their neighbours in A + A^T, without themselves: what Scotch takes.
RCP<const Graph> nodeGraph(const Matrix& matrix, int dofsPerNode) {
  const auto transposed = Tpetra::RowMatrixTransposer<>(Teuchos::rcpFromRef(matrix)).createTranspose();
  const auto numNodes = static_cast<LO>(Impl::localRows(matrix)) / dofsPerNode;
  std::vector<std::vector<GO>> neighbours(numNodes);
  Teuchos::Array<std::size_t> lengths(numNodes);
  for (LO node = 0; node < numNodes; ++node) {
    std::vector<GO>& list = neighbours[node];
    for (LO i = node * dofsPerNode; i < (node + 1) * dofsPerNode; ++i) {
      addNeighbours(matrix, i, dofsPerNode, list);
      addNeighbours(*transposed, i, dofsPerNode, list);
    }
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    const GO self = matrix.getRowMap()->getGlobalElement(node * dofsPerNode) / dofsPerNode;
    list.erase(std::remove(list.begin(), list.end(), self), list.end());
    lengths[node] = list.size();
  }
  const auto map = contiguousMap(static_cast<long long>(matrix.getGlobalNumRows()) / dofsPerNode, 1, matrix.getComm());
  const auto graph = rcp(new Graph(map, lengths()));
  for (LO node = 0; node < numNodes; ++node) {
    graph->insertGlobalIndices(map->getGlobalElement(node), Teuchos::ArrayView<const GO>(neighbours[node]));
  }
  graph->fillComplete();
  return graph;
}

}  // namespace

std::vector<int> partitionGraph(const Matrix& matrix, int dofsPerNode) {
  using Adapter = Zoltan2::TpetraRowGraphAdapter<Graph>;
  const RCP<const Graph> graph = nodeGraph(matrix, dofsPerNode);
  Adapter adapter(graph);
  Teuchos::ParameterList parameters;
  parameters.set("algorithm", "scotch");
  parameters.set("partitioning_approach", "partition");
  parameters.set("num_global_parts", matrix.getComm()->getSize());
  Zoltan2::PartitioningProblem<Adapter> problem(&adapter, &parameters, matrix.getComm());
  // Scotch 7 may use one MPI communicator from two of its threads at a time, and then hangs; with one thread it also
  // gives the same partition each time.
  setenv("SCOTCH_PTHREAD_NUMBER", "1", 1);
  problem.solve();
  const auto* const parts = problem.getSolution().getPartListView();
  return std::vector<int>(parts, parts + Impl::localLength(*graph->getRowMap()));
}

}  // namespace Komvos::Program
