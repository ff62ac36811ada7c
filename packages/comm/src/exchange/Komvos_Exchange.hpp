/// \file Komvos_Exchange.hpp
/// A plan with buffers and MPI requests, ready to run many times.
#pragma once

#include <mpi.h>

#include <complex>
#include <memory>
#include <type_traits>

#include "Komvos_Combine.hpp"
#include "Komvos_GpuAwareMpi.hpp"
#include "Komvos_IntraNode.hpp"
#include "Komvos_KokkosShim.hpp"
#include "Komvos_Settings.hpp"

namespace Komvos {

struct ExchangePlan;

namespace Impl {

template <class Scalar>
struct IsStdComplex : std::false_type {};
template <class Real>
struct IsStdComplex<std::complex<Real>> : std::true_type {};

/// Whether the bytes of a value are all of it, so that they can be sent. A type that owns memory is not trivial to
/// destroy.
template <class Scalar>
constexpr bool travelsAsBytes = std::is_trivially_destructible_v<Scalar>&& std::is_standard_layout_v<Scalar>;

}  // namespace Impl

/// Fills ghost entries along one immutable plan, or combines them into the entries that they are copies of. At most one
/// exchange is in flight, in one direction. Movable, not copyable.
///
/// Message-driven: all receives of all stages are posted first (persistent requests on our buffers), then the first
/// sends; each later message is packed and started the moment the last value it carries has arrived. Once the most
/// columns have been used, another exchange with a number of them that was used before allocates nothing.
///
/// Vectors are Kokkos views [length x columns], columns contiguous. With an execution space whose memory the host
/// cannot reach, messages go through pinned host memory unless MPI is GPU-aware.
///
/// With IntraNode::sharedMemory the receiver of an on-node message copies its values from the memory of the sender,
/// into place, and into its own messages where they travel on; no MPI call is made for it, and a message of nothing but
/// what its sender got from others is not packed. Ranks share memory where the plan has them on one node and MPI says
/// so; where a node has none to give, its messages go by MPI. Not with buffers that only a GPU reaches (GPU-aware MPI).
///
/// \warning Deadlock: messages that travel on do so inside functions of their exchange, on each rank that they pass.
/// With IntraNode::sharedMemory, begin() also waits until the ranks of this node have copied the values of the last
/// exchange. If two exchanges are in flight at once, all ranks must end them in the same order, and both before they
/// begin either again. Destructors end exchanges, too, the last made first.
///
/// Kernels of one exchange run on the instance of the execution space that its functions are given. Where the next
/// exchange, in either direction, is given another instance, fence the first one before.
///
/// Least traffic of a forward exchange, a value of s bytes: each sent value is read and written once (2 s and a
/// 4-byte index), each needed value likewise, and a value that travels on once more.
///
/// \tparam Scalar float, double, Kokkos::complex of these, int, long, long long, and what else the vectors of this
/// Tpetra hold. For other types whose bytes are their value include Komvos_Exchange_def.hpp.
/// \tparam Device Kokkos::Device of the vectors: the one of a Tpetra node
template <class Scalar, class Device>
class Exchange {
  static_assert(Impl::travelsAsBytes<Scalar>,
                "Komvos::Exchange sends values as bytes: Scalar must not own memory elsewhere");
  static_assert(!Impl::IsStdComplex<Scalar>::value,
                "Komvos::Exchange works on Kokkos views: take Kokkos::complex in the place of std::complex");

 public:
  using execution_space = typename Device::execution_space;
  using const_view = Kokkos::View<const Scalar**, Kokkos::LayoutLeft, Device, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  using view = Kokkos::View<Scalar**, Kokkos::LayoutLeft, Device, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  /// A vector with interleaved columns: entry i, column j is data[i * columns + j].
  struct Interleaved {
    Scalar* data;
    std::size_t rows, columns;
  };

  /// Allocates for `maxColumns` columns; more are allocated when they are first used, and then go by messages. 0 is one
  /// column, and in shared memory as many as cost little: 8, or fewer where that is more than 1 MiB for a rank. The
  /// same number on all ranks.
  /// \param comm the communicator the plan was built on
  /// \param mpiIsGpuAware whether MPI may be given device pointers, the same on all ranks, as in PlannedHalo
  /// \param forceStaging for tests: all messages have host memory of their own, see Settings; the same on all ranks
  /// \note Collective on `comm`.
  /// \throws BadInput if `onNode` is IntraNode::automatic; Error on all ranks if MPI has no tags left for it
  Exchange(MPI_Comm comm, std::shared_ptr<const ExchangePlan> plan, int maxColumns = 0,
           IntraNode onNode = IntraNode::messages, bool mpiIsGpuAware = gpuAwareMpi(),
           bool forceStaging = stagingForced());
  /// Completes an exchange that is in flight, as abandonForward() does; else it waits until values that were sent have
  /// been received, and for no other rank. The communicator may be freed before. Shared memory is freed later, where
  /// all ranks meet (Impl::PrivateComm).
  ~Exchange();
  Exchange(Exchange&&) noexcept;
  Exchange& operator=(Exchange&&) noexcept;

  /// Packs on `space` and starts all messages that have no predecessor.
  /// \param owned [plan.numOwned x k]; reusable on return
  /// \note Collective on the plan's ranks, with the same k.
  /// \throws PlanMismatch here, and from end() on every rank that would have got values from here, if `owned` has
  /// another shape; no rank hangs. Error if another exchange is in flight.
  void begin(const execution_space& space, const const_view& owned);

  /// The same, and lets messages arrive in `ghosts` without a copy where their values are neighbours there (one column,
  /// messages not staged through the host), and through shared memory wherever they are there. For work space that is
  /// used again and again: each new address costs new requests.
  /// \param ghosts as given to end(); not to be touched until then
  void begin(const execution_space& space, const const_view& owned, const view& ghosts);
  /// The same for ghosts with interleaved columns: there, any number of columns can arrive in place.
  void begin(const execution_space& space, const const_view& owned, const Interleaved& ghosts);

  /// Lets messages travel on; call it now and then between begin and end, for MPI seldom moves long messages by itself.
  /// After end it moves on what this rank sent, if a receiver was late. At any time it moves on a solver's reduction.
  ///
  /// \return true once all values have arrived; those of others may still be on their way
  bool progress();

  /// Waits for values that come straight from this node and writes them, so that rows that need no others can be
  /// computed before end().
  /// \return whether `ghosts` has these values now; if not, messages are staged through the host, and end() brings all
  /// \throws PlanMismatch if `ghosts` has another shape, or is not what begin() was given to fill; the exchange is then
  /// completed and over, so that ranks whose values travel through this one do not wait
  [[nodiscard]] bool finishOnNode(const execution_space& space, const view& ghosts, Combine combine = Combine::insert);
  [[nodiscard]] bool finishOnNode(const execution_space& space, const Interleaved& ghosts,
                                  Combine combine = Combine::insert);

  /// Waits for the rest and writes it.
  /// \param ghosts [plan.numTarget x k]; ready on `space`, not yet on the host. Entries that the plan does not fill
  ///        are left alone.
  /// \note In the place of every begin; waits for the ranks whose values are needed, and for those behind them, not for
  /// those that need values from here: the next begin() does, in either direction.
  /// \throws PlanMismatch if `ghosts` has another shape, is not what begin() was given to fill, or values from another
  ///         rank did not arrive, or in another number; the exchange is over then. Error if none was begun.
  void end(const execution_space& space, const view& ghosts, Combine combine = Combine::insert);
  void end(const execution_space& space, const Interleaved& ghosts, Combine combine = Combine::insert);

  /// begin and end. \note Collective, and throws, as these.
  void forward(const execution_space& space, const const_view& owned, const view& ghosts,
               Combine combine = Combine::insert);

  /// The reverse direction: starts sending ghost values back towards their owners, combined at every hop.
  /// \param ghosts [plan.numTarget x k]; reusable on return
  /// \param combine the same on all ranks
  /// \note Collective, and throws, as begin.
  void beginReverse(const execution_space& space, const const_view& ghosts, Combine combine = Combine::add);
  /// Combines what arrives with `owned`, as said to beginReverse. Bit-reproducible: every sum has an order fixed by the
  /// plan.
  /// \param owned [plan.numOwned x k]; entries of which no rank has a ghost are left alone
  /// \throws as end
  void endReverse(const execution_space& space, const view& owned);
  /// beginReverse and endReverse.
  void reverse(const execution_space& space, const const_view& ghosts, const view& owned,
               Combine combine = Combine::add);

  /// Lets the partners of an exchange that this rank cannot take part in finish, with an error, instead of waiting
  /// for ever. For callers that check their arguments themselves, and for those that throw between begin() and end():
  /// then what was begun is completed here instead, the partners lose nothing, and the exchange can be used again.
  /// \note In the place of an exchange, or of its end.
  void abandonForward();
  void abandonReverse();

  const ExchangePlan& plan() const;
  /// What it holds on this rank: plan, lists, buffers, requests; of each direction from its first use on. Not what MPI
  /// holds for it.
  std::size_t memoryBytes() const;
  /// Whether IntraNode::sharedMemory can be used at all with vectors of this device.
  static bool canShareMemory(bool mpiIsGpuAware = gpuAwareMpi(), bool forceStaging = stagingForced());
  /// sharedMemory only where it was asked for and this node has it.
  IntraNode intraNode() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace Komvos
