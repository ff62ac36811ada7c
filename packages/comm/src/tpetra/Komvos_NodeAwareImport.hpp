/// \file Komvos_NodeAwareImport.hpp
/// Tpetra::Import's doImport and doExport along a node-aware route.
#pragma once

#include <mpi.h>

#include <Teuchos_Describable.hpp>
#include <Teuchos_RCP.hpp>
#include <Tpetra_CombineMode.hpp>
#include <Tpetra_Details_Transfer_fwd.hpp>
#include <Tpetra_Export_fwd.hpp>
#include <Tpetra_Import_fwd.hpp>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "Komvos_ExchangeOptions.hpp"
#include "Komvos_HaloReport.hpp"
#include "Komvos_KokkosShim.hpp"
#include "Komvos_Pattern.hpp"
#include "Komvos_TpetraShim.hpp"

namespace Komvos {

template <class Scalar, class Device>
class Exchange;  // Komvos_Exchange.hpp
struct ExchangePlan;

/// Moves the same values between the same maps as a Tpetra::Import (or Export), with fewer messages between nodes.
///
/// \code
/// Komvos::NodeAwareImport<> halo(*A.getGraph()->getImporter());
/// halo.doImport(x, xColumns, Tpetra::INSERT);       // as xColumns.doImport(x, importer, Tpetra::INSERT)
/// halo.doExport(yColumns, y, Tpetra::ADD_ASSIGN);   // as y.doExport(yColumns, importer, Tpetra::ADD_ASSIGN)
/// \endcode
///
/// The *owned* map is the one where every entry belongs to one rank: the source of an Import, the target of an Export.
/// The *overlapping* map is the other. Imports go from owned to overlapping, exports the other way, whether this object
/// was made from an Import or an Export: as Tpetra's doExport with an Import, its reverse mode, and the other way
/// round.
///
/// Modes, as in Tpetra: an entry that *stays* has source and target on this rank, in the same place or permuted; the
/// others *arrive* from other ranks.
///
/// | mode | entries that stay | entries that arrive |
/// |---|---|---|
/// | INSERT, REPLACE | replace | replace |
/// | ADD | replace | are added |
/// | ADD_ASSIGN | are added | are added |
/// | ABSMAX | replace | the entry becomes the larger of both magnitudes |
/// | ZERO | replace | none, and nothing is communicated |
///
/// In an export several ranks may send to one entry. They are summed, or their largest magnitude is taken, on the way;
/// sums have an order that the route fixes. With INSERT and REPLACE the highest rank wins, against an entry that stays,
/// too: Tpetra, who leaves it open, does the same where it unpacks with one thread.
///
/// For all types of maps that this Tpetra is compiled for, and of values that its vectors hold. For others, as float
/// where Tpetra has double only, include Komvos_NodeAwareImport_def.hpp, and Tpetra's own.
///
/// The maps are kept by reference count; the Import itself is not needed any more once this object is made.
template <class LocalOrdinal = DefaultLocalOrdinal, class GlobalOrdinal = DefaultGlobalOrdinal,
          class Node = DefaultNode>
class NodeAwareImport : public Teuchos::Describable {
  static_assert(std::is_same_v<LocalOrdinal, int>, "Komvos::NodeAwareImport: LocalOrdinal must be int, as in Trilinos");

 public:
  using import_type = Tpetra::Import<LocalOrdinal, GlobalOrdinal, Node>;
  using export_type = Tpetra::Export<LocalOrdinal, GlobalOrdinal, Node>;
  using transfer_type = Tpetra::Details::Transfer<LocalOrdinal, GlobalOrdinal, Node>;  ///< either of these
  using map_type = Tpetra::Map<LocalOrdinal, GlobalOrdinal, Node>;
  using device_type = typename Node::device_type;
  using execution_space = typename device_type::execution_space;
  using index_view = Kokkos::View<const int*, typename Impl::BufferSpace<execution_space>::type>;
  template <class Scalar>
  using multivector_type = Tpetra::MultiVector<Scalar, LocalOrdinal, GlobalOrdinal, Node>;
  /// Values as they are in views: Kokkos::complex where vectors hold std::complex.
  template <class Scalar>
  using exchange_type = Exchange<typename multivector_type<Scalar>::impl_scalar_type, device_type>;

  /// \note Collective on the communicator of the maps.
  /// \throws BadInput on all ranks if the options cannot be used on one of them, or where Tpetra loses entries: if a
  /// rank names an entry of another rank twice in the overlapping map, and the owned map is not contiguous.
  explicit NodeAwareImport(const import_type& importer, const ExchangeOptions& options = {});
  /// The same for an Export. \note Collective, and throws, as above.
  explicit NodeAwareImport(const export_type& exporter, const ExchangeOptions& options = {});
  /// Several at once, such as those of a multigrid hierarchy: the ranks agree on all of them together, in as many
  /// messages as one takes.
  /// \param transfers Imports and Exports between maps on `comm`, in the same order on all ranks
  /// \note Collective, and throws, as above.
  static std::vector<std::unique_ptr<NodeAwareImport>> several(MPI_Comm comm,
                                                               const std::vector<const transfer_type*>& transfers,
                                                               const ExchangeOptions& options = {});

  /// A transfer that is known as a pattern, where there is no Tpetra::Import. Owned and target indices of the pattern
  /// count from the beginning of the maps.
  struct PatternTransfer {
    Teuchos::RCP<const map_type> owned, overlapping;
    Pattern pattern;
    std::vector<int> staysFrom, staysTo;  ///< owned and overlapping index of each entry that stays on this rank
  };
  /// \note Collective. \throws BadInput on all ranks, also if a pattern does not fit its maps, or those of other ranks
  static std::vector<std::unique_ptr<NodeAwareImport>> several(MPI_Comm comm, std::vector<PatternTransfer> transfers,
                                                               const ExchangeOptions& options = {});
  ~NodeAwareImport() override;
  NodeAwareImport(NodeAwareImport&&) noexcept;
  NodeAwareImport& operator=(NodeAwareImport&&) noexcept;

  /// target <- source.
  /// \param source over the owned map, one column or more
  /// \param target over the overlapping map, as many columns
  /// \param mode the same on all ranks
  /// \note Collective; bit-identical to Tpetra's doImport. With INSERT or REPLACE, the second of two imports in a row
  /// to the same memory, and those after it, receive one column in place where neighbours in a message are neighbours
  /// there, and all that comes through shared memory.
  /// \throws PlanMismatch if a vector does not fit its map, BadInput for an unknown mode. Whatever is thrown on one
  /// rank, those that would have got values from it throw PlanMismatch; also where it abandoned the exchange, see
  /// abandonForward()
  template <class Scalar>
  void doImport(const multivector_type<Scalar>& source, multivector_type<Scalar>& target,
                Tpetra::CombineMode mode) const;
  /// The same, with work while messages travel.
  /// \param meanwhile called once the entries of this rank itself are in the target, before others are
  template <class Scalar>
  void doImport(const multivector_type<Scalar>& source, multivector_type<Scalar>& target, Tpetra::CombineMode mode,
                const std::function<void()>& meanwhile) const;

  /// target <- source, the other way.
  /// \param source over the overlapping map
  /// \param target over the owned map
  /// \note Collective; equal to Tpetra's doExport but for the order of sums, which here is fixed by the route.
  /// \throws as doImport
  template <class Scalar>
  void doExport(const multivector_type<Scalar>& source, multivector_type<Scalar>& target,
                Tpetra::CombineMode mode) const;

  /// Whether these maps equal its own: the same entries in the same order on this rank, and a communicator of the same
  /// ranks. Where that is so on all ranks, it does what a new one between them would do.
  bool isBetween(const map_type& owned, const map_type& overlapping) const;
  Teuchos::RCP<const map_type> getOwnedMap() const;
  Teuchos::RCP<const map_type> getOverlappingMap() const;

  /// The route, messages and values of this halo, over all ranks. Where it is tuned online, as things are now.
  const HaloReport& report() const;
  /// Of the route that imports take; while it is tuned online, but for trials.
  const ExchangePlan& plan() const;

  /// The route and its messages in one line.
  std::string description() const override;
  /// VERB_LOW: route, messages, neighbours; VERB_MEDIUM: what was considered; VERB_HIGH: messages and memory of each
  /// rank; VERB_EXTREME: every message. The lines appear where `out` prints, which should be rank 0.
  /// \note Collective from VERB_HIGH on.
  void describe(Teuchos::FancyOStream& out,
                Teuchos::EVerbosityLevel level = Teuchos::Describable::verbLevel_default) const override;

  // For operators that overlap communication with work:

  /// The exchange that the next forward use takes, to be begun and ended by the caller; it may be another one each
  /// time. An operator that counts its uses for the tuner, as doImport does, calls recordUse() once the exchange is
  /// over, or discardUse() after an exception. \note Collective.
  template <class Scalar>
  exchange_type<Scalar>& selectForward() const;
  /// \param seconds that the user waited for what the exchange is part of
  /// \param exposed of these, in the exchange itself; both count only where wantsTimes()
  void recordUse(double seconds, double exposed, int columns) const;
  void discardUse() const;
  bool wantsTimes() const;
  /// Whether the next or present use is a sample of the tuner, so that an operator should try nothing of its own in it.
  bool isSampling() const;

  /// For exchanges in the reverse direction: always along the same route, so that sums do not depend on what was
  /// measured.
  /// \note Collective the first time.
  template <class Scalar>
  exchange_type<Scalar>& reverseExchange() const;

  /// In the place of a doImport, or of a doExport, by a rank that cannot take part because its own code threw before:
  /// no rank hangs, and those that would have got its values throw PlanMismatch. After selectForward() it ends that
  /// use, too.
  template <class Scalar>
  void abandonForward() const;
  template <class Scalar>
  void abandonReverse() const;

  /// The exchange that forward exchanges take but for trials, made when it is first asked for. What runs on it is
  /// neither timed nor counted. It may be gone after the next import or export of this object, which may tune it: ask
  /// again then.
  /// \note Collective.
  template <class Scalar>
  exchange_type<Scalar>& exchange() const;

  /// Local index i < numSame() is the same entry in both maps. The exchange fills the rest of the overlapping map,
  /// index i at ghost i - numSame(), except for the permuted entries, which are on this rank in another place: ghost
  /// permuteTo(k) is owned permuteFrom(k).
  int numSame() const;
  index_view permuteTo() const;
  index_view permuteFrom() const;

 private:
  struct State;
  explicit NodeAwareImport(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace Komvos
