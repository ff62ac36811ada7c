#include "Komvos_RebalancedTransfer.hpp"

#include <utility>

namespace Komvos::Impl {

RebalancedTransfer::RebalancedTransfer(Teuchos::RCP<const matrix_type> matrix,
                                       std::shared_ptr<const NodeAwareImport<>> exchange, bool restricts)
    : matrix_(std::move(matrix)),
      nodeAware_(Teuchos::rcp_dynamic_cast<const NodeAwareCrsMatrix<>>(matrix_)),
      exchange_(std::move(exchange)),
      restricts_(restricts) {}

Teuchos::RCP<const RebalancedTransfer::map_type> RebalancedTransfer::getDomainMap() const {
  return restricts_ ? matrix_->getDomainMap() : exchange_->getOverlappingMap();
}

Teuchos::RCP<const RebalancedTransfer::map_type> RebalancedTransfer::getRangeMap() const {
  return restricts_ ? exchange_->getOverlappingMap() : matrix_->getRangeMap();
}

void RebalancedTransfer::makeRoomFor(std::size_t columns) const {
  if (after_.is_null() || after_->getNumVectors() != columns) {
    after_ = Teuchos::null;
    before_ = Teuchos::rcp(new multivector_type(exchange_->getOwnedMap(), columns));
    after_ = Teuchos::rcp(new multivector_type(exchange_->getOverlappingMap(), columns));
  }
}

void RebalancedTransfer::apply(const multivector_type& X, multivector_type& Y, Teuchos::ETransp mode,
                               DefaultScalar alpha, DefaultScalar beta) const {
  const bool toCoarse = restricts_ == (mode == Teuchos::NO_TRANS);
  // Where this rank throws, the others wait in what it does not come to.
  const auto abandonMatrix = [&] { nodeAware_.is_null() ? void() : nodeAware_->abandonApply(mode); };
  const auto orElse = [](const auto& work, const auto& abandon) {
    try {
      work();
    } catch (...) {
      abandon();
      throw;
    }
  };
  if (!toCoarse) {
    orElse([&] { makeRoomFor(X.getNumVectors()); },
           [&] { exchange_->abandonReverse<DefaultScalar>(), abandonMatrix(); });
    orElse([&] { exchange_->doExport(X, *before_, Tpetra::INSERT); }, abandonMatrix);
    matrix_->apply(*before_, Y, mode, alpha, beta);
    return;
  }
  const auto abandonExchange = [&] { exchange_->abandonForward<DefaultScalar>(); };
  orElse([&] { makeRoomFor(X.getNumVectors()); }, [&] { abandonMatrix(), abandonExchange(); });
  orElse([&] { matrix_->apply(X, *before_, mode); }, abandonExchange);
  if (beta == Teuchos::ScalarTraits<DefaultScalar>::zero() && alpha == Teuchos::ScalarTraits<DefaultScalar>::one()) {
    exchange_->doImport(*before_, Y, Tpetra::INSERT);
  } else {
    exchange_->doImport(*before_, *after_, Tpetra::INSERT);
    Y.update(alpha, *after_, beta);
  }
}

}  // namespace Komvos::Impl
