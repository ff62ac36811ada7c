// In the place of partition_graph.cpp where Trilinos has no Zoltan2.
#include "Komvos_Error.hpp"
#include "problem/partition.hpp"

namespace Komvos::Program {

std::vector<int> partitionGraph(const Matrix&, int) {
  throw BadInput("--partition graph needs Zoltan2, which the Trilinos of this program does not have");
}

}  // namespace Komvos::Program
