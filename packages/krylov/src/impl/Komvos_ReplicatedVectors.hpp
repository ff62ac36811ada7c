/// \file Komvos_ReplicatedVectors.hpp
/// Vectors of which every rank has all elements.
#pragma once

#include <Teuchos_OrdinalTraits.hpp>
#include <Teuchos_RCP.hpp>
#include <Tpetra_Import.hpp>
#include <Tpetra_Map.hpp>
#include <Tpetra_MultiVector.hpp>
#include <functional>
#include <limits>
#include <string>

#include "Komvos_Error.hpp"
#include "Komvos_NodeAwareImport.hpp"
#include "Komvos_TpetraShim.hpp"

namespace Komvos::Impl {

/// Goes from vectors of a map, which is dealt out to ranks, to whole ones, whose elements stand rank after rank (see
/// WholeVectorOperator). Norms and sums of whole vectors need no communication.
template <class LocalOrdinal, class GlobalOrdinal, class Node>
class ReplicatedVectors {
 public:
  using map_type = Tpetra::Map<LocalOrdinal, GlobalOrdinal, Node>;
  template <class Scalar>
  using multivector_type = Tpetra::MultiVector<Scalar, LocalOrdinal, GlobalOrdinal, Node>;

  /// \param map one-to-one \note Collective. \throws BadInput on all ranks if whole vectors are too long
  explicit ReplicatedVectors(const Teuchos::RCP<const map_type>& map)
      : map_(map), placeMap_(placeMapOf(*map)), wholeMap_(wholeMapOf(*map)), halo_(import_type(placeMap_, wholeMap_)) {
    begin_ = localLength(*placeMap_) > 0 ? static_cast<std::size_t>(placeMap_->getMinGlobalIndex()) : 0;
  }

  const Teuchos::RCP<const map_type>& map() const { return map_; }
  const Teuchos::RCP<const map_type>& wholeMap() const { return wholeMap_; }

  /// This rank's own elements of a whole vector: a view on the map.
  template <class Scalar>
  Teuchos::RCP<const multivector_type<Scalar>> own(const multivector_type<Scalar>& whole) const {
    return whole.offsetView(map_, begin_);
  }
  template <class Scalar>
  Teuchos::RCP<multivector_type<Scalar>> own(multivector_type<Scalar>& whole) const {
    return whole.offsetViewNonConst(map_, begin_);
  }

  /// An all-gather along node-aware routes.
  /// \param own over the map \param whole set on all ranks \param meanwhile runs while messages travel
  /// \note Collective. \throws PlanMismatch on all ranks that would have got elements of one that abandoned it
  template <class Scalar>
  void gather(const multivector_type<Scalar>& own, multivector_type<Scalar>& whole,
              const std::function<void()>& meanwhile) const {
    const auto from = own.offsetView(placeMap_, 0);
    if (meanwhile) {
      halo_.doImport(*from, whole, Tpetra::INSERT, meanwhile);
    } else {
      halo_.doImport(*from, whole, Tpetra::INSERT);
    }
  }

  /// In the place of a gather, by a rank that has nothing to give because its own code threw.
  template <class Scalar>
  void abandon() const {
    halo_.template abandonForward<Scalar>();
  }

 private:
  using import_type = Tpetra::Import<LocalOrdinal, GlobalOrdinal, Node>;

  static Teuchos::RCP<const map_type> placeMapOf(const map_type& map) {
    return Teuchos::rcp(
        new map_type(Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid(), localLength(map), 0, map.getComm()));
  }
  static Teuchos::RCP<const map_type> wholeMapOf(const map_type& map) {
    const Tpetra::global_size_t length = map.getGlobalNumElements();
    if (length > static_cast<Tpetra::global_size_t>(std::numeric_limits<LocalOrdinal>::max())) {
      throw BadInput("PipelinedBiCGStab: " + std::to_string(length) +
                     " unknowns are too many for vectors that every rank holds whole");
    }
    return Teuchos::rcp(new map_type(length, 0, map.getComm(), Tpetra::LocallyReplicated));
  }

  Teuchos::RCP<const map_type> map_, placeMap_, wholeMap_;  // placeMap_: elements counted rank after rank
  NodeAwareImport<LocalOrdinal, GlobalOrdinal, Node> halo_;
  std::size_t begin_ = 0;
};

}  // namespace Komvos::Impl
