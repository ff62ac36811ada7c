/// \file Komvos_RowTransfer.hpp
/// Moves rows of a sparse matrix between ranks along a node-aware route.
#pragma once

#include <Teuchos_RCP.hpp>
#include <Tpetra_CombineMode.hpp>
#include <Tpetra_CrsMatrix_fwd.hpp>
#include <Tpetra_Details_Transfer_fwd.hpp>
#include <Tpetra_Export_fwd.hpp>
#include <Tpetra_Import_fwd.hpp>
#include <Tpetra_Map_fwd.hpp>
#include <cstddef>
#include <memory>

#include "Komvos_ExchangeOptions.hpp"
#include "Komvos_KokkosShim.hpp"
#include "Komvos_TpetraShim.hpp"

namespace Komvos {

struct ExchangePlan;

/// Moves rows of a Tpetra::CrsMatrix from a source map to a target map, and makes a fill-complete matrix of them: as
/// Tpetra::importAndFillCompleteCrsMatrix and exportAndFillCompleteCrsMatrix.
///
/// \code
/// Komvos::RowTransfer<> transfer(exporter);                          // from overlapping rows to unique ones
/// auto A = transfer.transfer(*overlapping, Tpetra::ADD);             // shared rows are summed
/// ...                                                                // new values, same graph
/// transfer.transferValues(*overlapping, *A);
/// \endcode
///
/// transfer() moves columns and values, and finds the column map. transferValues() moves values only, along lists that
/// the last transfer() made; the first call completes them. Time steps and Newton's method use it.
///
/// Where all rows stay on their rank, at most permuted, and the domain map is the very one of the source, the new
/// matrix shares the column map and the import of the source, if that has its columns in Tpetra's order. On a rank
/// whose rows all stay, columns of the source that no row has are kept; on others they are not.
///
/// Packing and unpacking are thread-parallel over entries, not rows, so that a dense row is not a thread's work alone
/// ["Thread parallel message packing", Fuller and Hoemmen]. A row that several ranks of a node need crosses
/// the network once, along routes that combine. Messages go through MPI on nodes too.
///
/// Least traffic, for an entry with a value of 8 bytes: 20 bytes read and 16 written to pack it, 16 read and 16 written
/// to unpack it; values alone 8 and 8 to pack, 12 and 8 to unpack. Where it stays: 12 read and 12 written, and 4 read
/// again to see whether columns increase.
///
/// For all types that the installed Tpetra is compiled for and that have 4, 8 or 16 bytes, integers excepted.
template <class Scalar = DefaultScalar, class LocalOrdinal = DefaultLocalOrdinal,
          class GlobalOrdinal = DefaultGlobalOrdinal, class Node = DefaultNode>
class RowTransfer {
 public:
  using crs_matrix_type = Tpetra::CrsMatrix<Scalar, LocalOrdinal, GlobalOrdinal, Node>;
  using value_type = typename crs_matrix_type::impl_scalar_type;
  using device_type = typename Node::device_type;
  using map_type = Tpetra::Map<LocalOrdinal, GlobalOrdinal, Node>;
  using import_type = Tpetra::Import<LocalOrdinal, GlobalOrdinal, Node>;
  using export_type = Tpetra::Export<LocalOrdinal, GlobalOrdinal, Node>;

  /// Rows as arrays, on the device: row i has entries [offset(i), offset(i + 1)), in any order, columns repeated at
  /// will. What is repeated is added up. So element matrices can be appended as they come.
  struct Arrays {
    Kokkos::View<const std::size_t*, device_type> offset;  ///< [rows of the source map + 1]
    Kokkos::View<const GlobalOrdinal*, device_type> columns;
    Kokkos::View<const value_type*, device_type> values;
  };

  /// \param options route, pairing and topology; nothing is tuned, `automatic` is the standard route
  /// \note Collective on the communicator of the maps. \throws BadInput on all ranks, as NodeAwareImport
  explicit RowTransfer(const import_type& importer, const ExchangeOptions& options = {});
  explicit RowTransfer(const export_type& exporter, const ExchangeOptions& options = {});
  ~RowTransfer();
  RowTransfer(RowTransfer&&) noexcept;
  RowTransfer& operator=(RowTransfer&&) noexcept;

  /// \param source fill-complete, with the row map of the transfer's source
  /// \param mode of rows that several ranks have, or that stay on a rank and arrive there: ADD adds them in the order
  ///        of ranks, this rank's own first, so that results are the same bits in each run and along each route; REPLACE
  ///        or INSERT: the row of the highest rank replaces the others
  /// \param domain, range of the result; null: those of the source
  /// \return rows of the target map, columns sorted, without repetitions, fill-complete
  /// \note Collective.
  /// \throws BadInput on all ranks if the source does not fit, a mode is none of these, or a column is not in the
  /// domain map; PlanMismatch on all ranks if a row did not arrive as it was packed
  Teuchos::RCP<crs_matrix_type> transfer(const crs_matrix_type& source, Tpetra::CombineMode mode,
                                         Teuchos::RCP<const map_type> domain = Teuchos::null,
                                         Teuchos::RCP<const map_type> range = Teuchos::null);

  /// The same from arrays. \param domain, range of the result, not null
  /// \throws BadInput on all ranks if arrays do not fit, offsets decrease, or a map is null
  Teuchos::RCP<crs_matrix_type> transfer(const Arrays& source, Tpetra::CombineMode mode,
                                         const Teuchos::RCP<const map_type>& domain,
                                         const Teuchos::RCP<const map_type>& range);

  /// The same for values alone, with the mode of the last transfer().
  /// \param source of the same graph as in the last transfer()
  /// \param target what that returned, or another matrix of its graph
  /// \note Collective; no reduction after the first call.
  /// \throws PlanMismatch, as Exchange, if a matrix does not fit or values did not arrive; no rank hangs then
  void transferValues(const crs_matrix_type& source, crs_matrix_type& target);
  /// The same from arrays. \param source with the offsets and columns of the last transfer()
  void transferValues(const Arrays& source, crs_matrix_type& target);

  /// Of rows: each is one value.
  const ExchangePlan& plan() const;
  std::size_t memoryBytes() const;

 private:
  using transfer_type = Tpetra::Details::Transfer<LocalOrdinal, GlobalOrdinal, Node>;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace Komvos
