/// \file Komvos_NodeAwareDistributor.hpp
/// Sends packed data along a node-aware route, in the place of Tpetra::Distributor.
#pragma once

#include <Teuchos_Array.hpp>
#include <Teuchos_ArrayView.hpp>
#include <Teuchos_Comm.hpp>
#include <Teuchos_RCP.hpp>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_ExchangeOptions.hpp"
#include "Komvos_KokkosShim.hpp"
#include "Komvos_TpetraShim.hpp"

namespace Komvos {

struct ExchangePlan;

/// Moves packets from exports to imports, as Tpetra::Distributor does; code written for that moves here by changing the
/// type, unless it uses getReverse() or createFromSendsAndRecvs(), which are not there.
///
/// \code
/// Komvos::NodeAwareDistributor<> distributor(comm);
/// const std::size_t numImports = distributor.createFromSends(destinations);  // export i goes to destinations[i]
/// distributor.doPostsAndWaits(exports, 3, imports);                          // three packets for each
/// \endcode
///
/// Imports are ordered by the rank that sent them, then in its order. Unlike Tpetra's, exports may be in any order, at
/// no cost. Data are not combined: each export is a value of its own. What routes save is messages between nodes.
///
/// \tparam Device of the views: the one of a Tpetra node
template <class Device = DefaultNode::device_type>
class NodeAwareDistributor {
 public:
  using device_type = Device;

  /// \param options route, pairing and topology; nothing is tuned, `automatic` is the standard route
  /// \note Collective the first time that Komvos sees `comm`. Options are looked at by createFromSends().
  explicit NodeAwareDistributor(const Teuchos::RCP<const Teuchos::Comm<int>>& comm,
                                const ExchangeOptions& options = {});
  ~NodeAwareDistributor();
  NodeAwareDistributor(NodeAwareDistributor&&) noexcept;
  NodeAwareDistributor& operator=(NodeAwareDistributor&&) noexcept;

  /// \param exportProcIDs the rank that export i goes to; this one too; negative: to none
  /// \return the number of imports \note Collective. \throws BadInput on all ranks if a rank does not exist
  std::size_t createFromSends(const Teuchos::ArrayView<const int>& exportProcIDs);

  /// For ranks that know what they need, but not who needs what they have.
  /// \param remoteIDs of what this rank needs, as their owners know them \param remoteProcIDs their owners
  /// \param[out] exportIDs, exportProcIDs what others need from here, and their ranks: exports, in this order. Imports
  ///        are in the order of `remoteIDs`, if that is sorted by owner, as Tpetra wants it; else sorted by owner.
  /// \note Collective. \throws BadInput on all ranks if a rank does not exist, or there are not as many ids as owners
  template <class Ordinal>
  void createFromRecvs(const Teuchos::ArrayView<const Ordinal>& remoteIDs,
                       const Teuchos::ArrayView<const int>& remoteProcIDs, std::vector<Ordinal>& exportIDs,
                       std::vector<int>& exportProcIDs) {
    static_assert(sizeof(Ordinal) % sizeof(int) == 0, "ids are sent as ints");
    constexpr int parts = sizeof(Ordinal) / sizeof(int);
    const int* const ids = reinterpret_cast<const int*>(remoteIDs.getRawPtr());
    const std::vector<int> asked =
        askOwners({ids, ids + parts * remoteIDs.size()}, parts, remoteProcIDs, exportProcIDs);
    exportIDs.resize(asked.size() / parts);
    std::memcpy(exportIDs.data(), asked.data(), asked.size() * sizeof(int));
    createFromSends(view(exportProcIDs));
  }
  /// The same with Teuchos' arrays, as Tpetra's Distributor has them. \note Collective, and throws, as above.
  template <class Ordinal>
  void createFromRecvs(const Teuchos::ArrayView<const Ordinal>& remoteIDs,
                       const Teuchos::ArrayView<const int>& remoteProcIDs, Teuchos::Array<Ordinal>& exportIDs,
                       Teuchos::Array<int>& exportProcIDs) {
    std::vector<Ordinal> ids;
    std::vector<int> ranks;
    createFromRecvs(remoteIDs, remoteProcIDs, ids, ranks);
    exportIDs.assign(ids.begin(), ids.end());
    exportProcIDs.assign(ranks.begin(), ranks.end());
  }

  // Of this rank, itself included:
  std::size_t getNumSends() const { return procsTo().size() - (hasSelfMessage() ? 1 : 0); }
  std::size_t getNumReceives() const { return procsFrom().size() - (hasSelfMessage() ? 1 : 0); }
  bool hasSelfMessage() const;
  std::size_t getTotalReceiveLength() const;                                    ///< imports
  std::size_t getMaxSendLength() const;                                         ///< exports to one other rank, at most
  Teuchos::ArrayView<const int> getProcsTo() const { return view(procsTo()); }  ///< ascending
  Teuchos::ArrayView<const int> getProcsFrom() const { return view(procsFrom()); }  ///< ascending
  Teuchos::ArrayView<const std::size_t> getLengthsTo() const { return view(lengthsTo()); }
  Teuchos::ArrayView<const std::size_t> getLengthsFrom() const { return view(lengthsFrom()); }

  /// \param exports [exports * numPackets] \param imports [imports * numPackets]
  /// \tparam Packet trivially copyable
  /// \note Collective. \throws PlanMismatch if a view is too short; no rank hangs. Error on all ranks before
  /// createFromSends() or createFromRecvs()
  template <class ExpView, class ImpView>
  void doPostsAndWaits(const ExpView& exports, std::size_t numPackets, const ImpView& imports) {
    doPosts(exports, numPackets, imports);
    doWaits();
  }
  /// The same with a number of packets for each export, and for each import.
  /// \throws PlanMismatch also on all ranks if a number is not what the sender says
  template <class ExpView, class ImpView>
  void doPostsAndWaits(const ExpView& exports, const Teuchos::ArrayView<const std::size_t>& numExportPacketsPerLID,
                       const ImpView& imports, const Teuchos::ArrayView<const std::size_t>& numImportPacketsPerLID) {
    doPosts(exports, numExportPacketsPerLID, imports, numImportPacketsPerLID);
    doWaits();
  }
  /// Back: what was imported goes to whom it came from. \param exports by import \param imports by export
  template <class ExpView, class ImpView>
  void doReversePostsAndWaits(const ExpView& exports, std::size_t numPackets, const ImpView& imports) {
    doReversePosts(exports, numPackets, imports);
    doReverseWaits();
  }
  template <class ExpView, class ImpView>
  void doReversePostsAndWaits(const ExpView& exports,
                              const Teuchos::ArrayView<const std::size_t>& numExportPacketsPerLID,
                              const ImpView& imports,
                              const Teuchos::ArrayView<const std::size_t>& numImportPacketsPerLID) {
    doReversePosts(exports, numExportPacketsPerLID, imports, numImportPacketsPerLID);
    doReverseWaits();
  }

  /// The same in two parts, for work in between. Exports may change after doPosts(); imports are there after doWaits(),
  /// and the caller keeps the view until then. One pair at a time for each direction; doWaits() of nothing does
  /// nothing. \note Collective. \throws Error on all ranks if one is under way; else doPosts() as above, doWaits()
  /// PlanMismatch where packets do not arrive
  template <class ExpView, class ImpView>
  void doPosts(const ExpView& exports, std::size_t numPackets, const ImpView& imports) {
    post(false, exports, nullptr, numPackets, imports, nullptr);
  }
  template <class ExpView, class ImpView>
  void doPosts(const ExpView& exports, const Teuchos::ArrayView<const std::size_t>& numExportPacketsPerLID,
               const ImpView& imports, const Teuchos::ArrayView<const std::size_t>& numImportPacketsPerLID) {
    post(false, exports, &numExportPacketsPerLID, 0, imports, &numImportPacketsPerLID);
  }
  template <class ExpView, class ImpView>
  void doReversePosts(const ExpView& exports, std::size_t numPackets, const ImpView& imports) {
    post(true, exports, nullptr, numPackets, imports, nullptr);
  }
  template <class ExpView, class ImpView>
  void doReversePosts(const ExpView& exports, const Teuchos::ArrayView<const std::size_t>& numExportPacketsPerLID,
                      const ImpView& imports, const Teuchos::ArrayView<const std::size_t>& numImportPacketsPerLID) {
    post(true, exports, &numExportPacketsPerLID, 0, imports, &numImportPacketsPerLID);
  }
  void doWaits() { waitForBytes(false); }
  void doReverseWaits() { waitForBytes(true); }

  // With arrays on the host, as Tpetra's Distributor takes them up to 13.2; where Device cannot read them, through
  // copies.
  template <class Packet>
  void doPostsAndWaits(const Teuchos::ArrayView<const Packet>& exports, std::size_t numPackets,
                       const Teuchos::ArrayView<Packet>& imports) {
    onDevice(exports, imports, [&](const auto& from, const auto& to) { doPostsAndWaits(from, numPackets, to); });
  }
  template <class Packet>
  void doPostsAndWaits(const Teuchos::ArrayView<const Packet>& exports,
                       const Teuchos::ArrayView<const std::size_t>& numExportPacketsPerLID,
                       const Teuchos::ArrayView<Packet>& imports,
                       const Teuchos::ArrayView<const std::size_t>& numImportPacketsPerLID) {
    onDevice(exports, imports, [&](const auto& from, const auto& to) {
      doPostsAndWaits(from, numExportPacketsPerLID, to, numImportPacketsPerLID);
    });
  }
  template <class Packet>
  void doReversePostsAndWaits(const Teuchos::ArrayView<const Packet>& exports, std::size_t numPackets,
                              const Teuchos::ArrayView<Packet>& imports) {
    onDevice(exports, imports, [&](const auto& from, const auto& to) { doReversePostsAndWaits(from, numPackets, to); });
  }
  template <class Packet>
  void doReversePostsAndWaits(const Teuchos::ArrayView<const Packet>& exports,
                              const Teuchos::ArrayView<const std::size_t>& numExportPacketsPerLID,
                              const Teuchos::ArrayView<Packet>& imports,
                              const Teuchos::ArrayView<const std::size_t>& numImportPacketsPerLID) {
    onDevice(exports, imports, [&](const auto& from, const auto& to) {
      doReversePostsAndWaits(from, numExportPacketsPerLID, to, numImportPacketsPerLID);
    });
  }

  /// Of exports, self messages excepted.
  const ExchangePlan& plan() const;

 private:
  /// Packets as bytes, on the device.
  struct Bytes {
    const void* exports;
    void* imports;
    std::size_t numExports, numImports;  ///< packets
    std::size_t packet;                  ///< bytes of one
    std::size_t unit;                    ///< 1, 4 or 8: what it can be copied by
  };
  using Numbers = Teuchos::ArrayView<const std::size_t>;
  template <class T>
  static Teuchos::ArrayView<const T> view(const std::vector<T>& list) {
    return {list.data(), static_cast<Teuchos::Ordinal>(list.size())};
  }

  template <class ExpView, class ImpView>
  void post(bool reverse, const ExpView& exports, const Numbers* exportNumbers, std::size_t number,
            const ImpView& imports, const Numbers* importNumbers) {
    using Packet = typename ImpView::non_const_value_type;
    static_assert(std::is_same_v<Packet, typename ExpView::non_const_value_type>,
                  "exports and imports are of one type");
    static_assert(std::is_trivially_copyable_v<Packet>, "Komvos::NodeAwareDistributor sends packets as bytes");
    static_assert(
        Kokkos::SpaceAccessibility<typename Device::execution_space, typename ImpView::memory_space>::accessible &&
            Kokkos::SpaceAccessibility<typename Device::execution_space, typename ExpView::memory_space>::accessible,
        "views must be in memory that Device can access");
    const std::size_t unit = alignof(Packet) % 8 == 0 ? 8 : alignof(Packet) % 4 == 0 ? 4 : 1;
    postBytes(reverse, {exports.data(), imports.data(), exports.size(), imports.size(), sizeof(Packet), unit},
              exportNumbers, number, importNumbers);
  }
  void postBytes(bool reverse, const Bytes& bytes, const Numbers* exportNumbers, std::size_t number,
                 const Numbers* importNumbers);
  void waitForBytes(bool reverse);

  /// Calls `move` with views that Device can access of what is in these arrays.
  template <class Packet, class Move>
  void onDevice(const Teuchos::ArrayView<const Packet>& exports, const Teuchos::ArrayView<Packet>& imports,
                const Move& move) {
    using Host = Kokkos::View<Packet*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
    using ConstHost = Kokkos::View<const Packet*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
    const ConstHost from(exports.getRawPtr(), static_cast<std::size_t>(exports.size()));
    const Host to(imports.getRawPtr(), static_cast<std::size_t>(imports.size()));
    if constexpr (Kokkos::SpaceAccessibility<typename Device::execution_space, Kokkos::HostSpace>::accessible) {
      move(from, to);
    } else {
      using Copy = Kokkos::View<Packet*, Device>;
      Copy fromCopy, toCopy;
      throwOnAll(Impl::errorIn([&] {
        fromCopy = Copy("Komvos::NodeAwareDistributor: exports", from.size());
        toCopy = Copy("Komvos::NodeAwareDistributor: imports", to.size());
        Kokkos::deep_copy(fromCopy, from);
        Kokkos::deep_copy(toCopy, to);
      }));
      move(fromCopy, toCopy);
      Kokkos::deep_copy(to, toCopy);
    }
  }
  /// \throws PlanMismatch on all ranks if one has an error
  void throwOnAll(const std::string& error) const;
  /// \param ids `parts` ints each \param[out] askers of each id that is returned, ascending
  std::vector<int> askOwners(const std::vector<int>& ids, int parts, const Teuchos::ArrayView<const int>& owners,
                             std::vector<int>& askers);
  const std::vector<int>& procsTo() const;
  const std::vector<int>& procsFrom() const;
  const std::vector<std::size_t>& lengthsTo() const;
  const std::vector<std::size_t>& lengthsFrom() const;

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace Komvos
