/// \file Komvos_TransferLists.hpp
/// A Tpetra::Import or Export as lists of who sends which entries to whom.
#pragma once

#include <Teuchos_ArrayView.hpp>
#include <Tpetra_Distributor.hpp>
#include <string>
#include <vector>

#include "Komvos_Pattern.hpp"
#include "Komvos_PrivateComm.hpp"

namespace Komvos::Impl {

/// A Tpetra transfer read from its owned side: `owned*` lists belong to the map where entries are unique.
struct TransferLists {
  std::vector<int> ownedPeers, ownedLengths, ownedLids;  // what goes to each peer in an import, in Tpetra's order
  std::vector<int> ghostPeers, ghostLengths, ghostLids;  // what comes from each peer
  int numOwned = 0;                                      // entries of the owned map on this rank
  int numOverlapping = 0;
  int numSame = 0;  // the first entries of both, which are the same
};

/// (rank of each entry) to peers and how many entries each has, after sorting by rank; entries of a rank keep their
/// order.
void groupByRank(Teuchos::ArrayView<const int> rankOfEntry, Teuchos::ArrayView<const int> lids, std::vector<int>& peers,
                 std::vector<int>& lengths, std::vector<int>& sorted);

/// The side of a transfer that Tpetra receives on.
void receivingSide(const Tpetra::Distributor& distributor, Teuchos::ArrayView<const int> lids, std::vector<int>& peers,
                   std::vector<int>& lengths, std::vector<int>& inOrder);

/// \return why no pattern can be made of these lists, or nothing
std::string errorOf(const TransferLists& lists, int rank);

/// \return why entries cannot stay on this rank at these places, or nothing
std::string errorOfStaying(const std::vector<int>& from, std::size_t numOwned, const std::vector<int>& to,
                           std::size_t numOverlapping);

/// The patterns of transfers, without errors.
/// \note Collective: owners tell the others their indices, of all transfers in one message to each.
std::vector<Pattern> makePatterns(PrivateComm& comm, const std::vector<TransferLists>& transfers);

}  // namespace Komvos::Impl
