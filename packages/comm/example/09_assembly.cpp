// A finite-element matrix assembled from element matrices, without searching: rows that ranks share are summed.
//
// Each rank computes the matrices of its elements, and appends them to arrays: rows of the nodes that it touches. One
// call sends what belongs to other ranks, merges what is repeated, and makes a fill-complete matrix of it. When
// conductivities change, the second call moves values only. A constant temperature conducts nothing, so rows must add
// up to zero.
//
//   mpirun -n 4 ./09_assembly
#include <Komvos_RowTransfer.hpp>
#include <Tpetra_CrsMatrix.hpp>
#include <Tpetra_Export.hpp>
#include <cstdio>

#include "heat_conduction.hpp"

/// The largest |A 1|, and the trace, which is known: 8/3 of the sum of conductivities.
bool isRight(const Tpetra::CrsMatrix<>& A, const example::Slab& slab, double time) {
  Tpetra::Vector<> one(A.getDomainMap()), flow(A.getRangeMap()), diagonal(A.getRowMap());
  one.putScalar(1);
  A.apply(one, flow);
  A.getLocalDiagCopy(diagonal);
  double expected = 0, sum = 0;
  for (std::size_t e = 0; e < slab.numElements(); ++e) {
    expected += 8.0 / 3 * slab.conductivity(e, time);
  }
  Teuchos::reduceAll(*A.getComm(), Teuchos::REDUCE_SUM, 1, &expected, &sum);
  const double trace = diagonal.dot(one), leak = flow.normInf();
  if (A.getComm()->getRank() == 0) {
    std::printf("time %.1f: %ld rows, %ld entries, trace %.6f, largest |A 1| %.1e\n", time,
                static_cast<long>(A.getGlobalNumRows()), static_cast<long>(A.getGlobalNumEntries()), trace, leak);
  }
  return leak < 1e-12 && std::abs(trace - sum) < 1e-10 * sum;
}

int main(int argc, char** argv) {
  const Tpetra::ScopeGuard scope(&argc, &argv);
  const example::Slab slab(20, Tpetra::getDefaultComm());
  const auto touched = slab.touched(), owned = slab.owned();
  example::AssemblyArrays arrays(slab);

  Komvos::RowTransfer<> transfer(Tpetra::Export<>(touched, owned));
  const Komvos::RowTransfer<>::Arrays rows{arrays.offset, arrays.columns, arrays.values};
  const auto A = transfer.transfer(rows, Tpetra::ADD, owned, owned);
  bool right = isRight(*A, slab, 0);

  for (const double time : {0.5, 1.0}) {
    arrays.fill(time);
    transfer.transferValues(rows, *A);
    right = isRight(*A, slab, time) && right;
  }
  return right ? 0 : 1;
}
