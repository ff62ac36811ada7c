#include "Komvos_TransferLists.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "Komvos_Error.hpp"

namespace Komvos::Impl {

namespace {

/// All that goes to one peer, or comes from it, of several transfers after each other.
using ByPeer = std::map<int, std::vector<int>>;

/// Owners tell each peer their own indices of the values it gets, in the order both sides know. Messages only between
/// ranks that will exchange values.
/// \param learned with as many places for each peer as it will send
void tellOwnerIndices(PrivateComm& comm, const ByPeer& told, ByPeer& learned) {
  const TagRange tags = comm.takeTags(1);
  const int tag = tags.first();
  std::vector<MPI_Request> requests;
  for (auto& [peer, indices] : learned) {
    mpiCheck(MPI_Irecv(indices.data(), static_cast<int>(indices.size()), MPI_INT, peer, tag, comm.get(),
                       &requests.emplace_back()),
             "MPI_Irecv");
  }
  for (const auto& [peer, indices] : told) {
    mpiCheck(MPI_Isend(indices.data(), static_cast<int>(indices.size()), MPI_INT, peer, tag, comm.get(),
                       &requests.emplace_back()),
             "MPI_Isend");
  }
  mpiCheck(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
}

}  // namespace

// Tpetra asks a directory who owns an entry. Where the owned map is not contiguous, an entry that a rank asks for
// twice gets one answer only: the other stays without owner (-1), is not sent, and shifts what arrives.
std::string errorOf(const TransferLists& lists, int rank) {
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

std::string errorOfStaying(const std::vector<int>& from, std::size_t numOwned, const std::vector<int>& to,
                           std::size_t numOverlapping) {
  const auto outside = [](const std::vector<int>& indices, std::size_t length) {
    return std::any_of(indices.begin(), indices.end(),
                       [&](int index) { return index < 0 || static_cast<std::size_t>(index) >= length; });
  };
  if (from.size() != to.size()) {
    return "NodeAwareImport: " + std::to_string(from.size()) + " entries stay, at " + std::to_string(to.size()) +
           " places";
  }
  return outside(from, numOwned) || outside(to, numOverlapping)
             ? "NodeAwareImport: an entry that stays is outside of its map"
             : "";
}

std::vector<Pattern> makePatterns(PrivateComm& comm, const std::vector<TransferLists>& transfers) {
  ByPeer told, learned;
  for (const TransferLists& lists : transfers) {
    auto index = lists.ownedLids.begin();
    for (std::size_t i = 0; i < lists.ownedPeers.size(); index += lists.ownedLengths[i++]) {
      std::vector<int>& message = told[lists.ownedPeers[i]];
      message.insert(message.end(), index, index + lists.ownedLengths[i]);
    }
    for (std::size_t i = 0; i < lists.ghostPeers.size(); ++i) {
      std::vector<int>& message = learned[lists.ghostPeers[i]];
      message.resize(message.size() + lists.ghostLengths[i]);
    }
  }
  tellOwnerIndices(comm, told, learned);
  std::map<int, std::size_t> read;  // of the message of each peer
  std::vector<Pattern> patterns;
  for (const TransferLists& lists : transfers) {
    Pattern pattern;
    pattern.rank = comm.rank();
    pattern.numOwned = lists.numOwned;
    pattern.numTarget = lists.numOverlapping - lists.numSame;
    pattern.sends.reserve(lists.ownedLids.size());
    pattern.receives.reserve(lists.ghostLids.size());
    for (std::size_t i = 0, k = 0; i < lists.ownedPeers.size(); ++i) {
      for (int j = 0; j < lists.ownedLengths[i]; ++j, ++k) {
        pattern.sends.push_back({lists.ownedPeers[i], lists.ownedLids[k]});
      }
    }
    for (std::size_t i = 0, k = 0; i < lists.ghostPeers.size(); ++i) {
      const int peer = lists.ghostPeers[i];
      const std::vector<int>& message = learned[peer];
      std::size_t& next = read[peer];
      for (int j = 0; j < lists.ghostLengths[i]; ++j, ++k) {
        pattern.receives.push_back({{peer, message[next++]}, lists.ghostLids[k] - lists.numSame});
      }
    }
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

}  // namespace Komvos::Impl
