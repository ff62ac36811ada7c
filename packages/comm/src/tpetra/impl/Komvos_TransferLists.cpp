#include "Komvos_TransferLists.hpp"

#include <algorithm>
#include <string>

#include "Komvos_Error.hpp"

namespace Komvos::Impl {

namespace {

/// Tpetra asks a directory who owns an entry. Where the owned map is not contiguous, an entry that a rank asks for
/// twice gets one answer only: the other stays without owner (-1), is not sent, and shifts what arrives.
///
/// \return an error text, or nothing
std::string errorOfLists(const TransferLists& lists, int rank) {
  int travelling = 0;
  for (std::size_t i = 0; i < lists.ghostPeers.size(); ++i) {
    travelling += lists.ghostPeers[i] < 0 ? 0 : lists.ghostLengths[i];
  }
  const int ghosts = static_cast<int>(lists.ghostLids.size());
  if (travelling == ghosts || lists.ghostPeers.empty()) {  // without peers: entries that nobody owns
    return {};
  }
  return "NodeAwareImport: rank " + std::to_string(rank) + " has " + std::to_string(ghosts) +
         " entries of other ranks in the overlapping map, but Tpetra's lists move " + std::to_string(travelling) +
         " of them. A rank may name an entry of another rank only once where the owned map is not contiguous: Tpetra's "
         "own import moves wrong values then";
}

/// Owners tell each peer the local indices of the values it gets, in the order both sides know. Messages only between
/// ranks that will exchange values.
std::vector<int> learnOwnerIndices(PrivateComm& comm, const TransferLists& lists) {
  const TagRange tags = comm.takeTags(1);
  const int tag = tags.first();
  std::vector<int> learned(lists.ghostLids.size());
  std::vector<MPI_Request> requests(lists.ghostPeers.size() + lists.ownedPeers.size());
  std::size_t request = 0;
  for (std::size_t i = 0, first = 0; i < lists.ghostPeers.size(); first += lists.ghostLengths[i++]) {
    mpiCheck(MPI_Irecv(learned.data() + first, lists.ghostLengths[i], MPI_INT, lists.ghostPeers[i], tag, comm.get(),
                       &requests[request++]),
             "MPI_Irecv");
  }
  for (std::size_t i = 0, first = 0; i < lists.ownedPeers.size(); first += lists.ownedLengths[i++]) {
    mpiCheck(MPI_Isend(lists.ownedLids.data() + first, lists.ownedLengths[i], MPI_INT, lists.ownedPeers[i], tag,
                       comm.get(), &requests[request++]),
             "MPI_Isend");
  }
  mpiCheck(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
  return learned;
}

}  // namespace

void groupByRank(Teuchos::ArrayView<const int> rankOfEntry, Teuchos::ArrayView<const int> lids, std::vector<int>& peers,
                 std::vector<int>& lengths, std::vector<int>& sorted) {
  std::vector<int> order(rankOfEntry.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<int>(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return rankOfEntry[a] < rankOfEntry[b]; });
  for (const int i : order) {
    if (peers.empty() || peers.back() != rankOfEntry[i]) {
      peers.push_back(rankOfEntry[i]);
      lengths.push_back(0);
    }
    ++lengths.back();
    sorted.push_back(lids[i]);
  }
}

void receivingSide(const Tpetra::Distributor& distributor, Teuchos::ArrayView<const int> lids, std::vector<int>& peers,
                   std::vector<int>& lengths, std::vector<int>& inOrder) {
  const auto from = distributor.getProcsFrom();
  const auto count = distributor.getLengthsFrom();
  peers.assign(from.begin(), from.end());
  lengths.assign(count.begin(), count.end());
  inOrder.assign(lids.begin(), lids.end());
}

Pattern makePattern(PrivateComm& comm, const TransferLists& lists, std::size_t numOwned, std::size_t numOverlapping,
                    std::size_t numSame) {
  throwOnAllIfAny(comm.get(), errorOfLists(lists, comm.rank()));
  Pattern pattern;
  pattern.rank = comm.rank();
  pattern.numOwned = static_cast<int>(numOwned);
  pattern.numTarget = static_cast<int>(numOverlapping - numSame);
  for (std::size_t i = 0, k = 0; i < lists.ownedPeers.size(); ++i) {
    for (int j = 0; j < lists.ownedLengths[i]; ++j, ++k) {
      pattern.sends.push_back({lists.ownedPeers[i], lists.ownedLids[k]});
    }
  }
  const std::vector<int> ownerIndex = learnOwnerIndices(comm, lists);
  for (std::size_t i = 0, k = 0; i < lists.ghostPeers.size(); ++i) {
    for (int j = 0; j < lists.ghostLengths[i]; ++j, ++k) {
      pattern.receives.push_back(
          {{lists.ghostPeers[i], ownerIndex[k]}, lists.ghostLids[k] - static_cast<int>(numSame)});
    }
  }
  return pattern;
}

}  // namespace Komvos::Impl
