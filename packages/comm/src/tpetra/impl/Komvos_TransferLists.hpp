/// \file Komvos_TransferLists.hpp
/// A Tpetra::Import or Export as lists of who sends which entries to whom.
#pragma once

#include <Teuchos_ArrayView.hpp>
#include <Tpetra_Distributor.hpp>
#include <vector>

#include "Komvos_Pattern.hpp"
#include "Komvos_PrivateComm.hpp"

namespace Komvos::Impl {

/// A Tpetra transfer read from its owned side: `owned*` lists belong to the map where entries are unique.
struct TransferLists {
  std::vector<int> ownedPeers, ownedLengths, ownedLids;  // what goes to each peer in an import, in Tpetra's order
  std::vector<int> ghostPeers, ghostLengths, ghostLids;  // what comes from each peer
};

/// (rank of each entry) to peers and how many entries each has, after sorting by rank; entries of a rank keep their
/// order.
void groupByRank(Teuchos::ArrayView<const int> rankOfEntry, Teuchos::ArrayView<const int> lids, std::vector<int>& peers,
                 std::vector<int>& lengths, std::vector<int>& sorted);

/// The side of a transfer that Tpetra receives on.
void receivingSide(const Tpetra::Distributor& distributor, Teuchos::ArrayView<const int> lids, std::vector<int>& peers,
                   std::vector<int>& lengths, std::vector<int>& inOrder);

/// The pattern of a transfer. \note Collective: owners tell the others their indices.
/// \throws BadInput on all ranks if the lists of one of them do not hold together: see NodeAwareImport
Pattern makePattern(PrivateComm& comm, const TransferLists& lists, std::size_t numOwned, std::size_t numOverlapping,
                    std::size_t numSame);

}  // namespace Komvos::Impl
