#include "Komvos_ContiguousNumbering.hpp"

#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>

#include "Komvos_Error.hpp"
#include "Komvos_Hash.hpp"

namespace Komvos::Impl {

using Teuchos::RCP;
using Teuchos::rcp;

RCP<const LevelMap> consecutiveMap(int local, const RCP<const Teuchos::Comm<int>>& comm) {
  return rcp(
      new LevelMap(Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid(), static_cast<std::size_t>(local), 0, comm));
}

RCP<LevelVector> vectorOf(const RCP<const LevelMap>& map, const std::function<double(int)>& entry) {
  const auto vector = rcp(new LevelVector(map, 1));
  const auto view = vector->getLocalViewHost(Tpetra::Access::OverwriteAll);
  for (std::size_t i = 0; i < view.extent(0); ++i) {
    view(i, 0) = entry(static_cast<int>(i));
  }
  return vector;
}

std::vector<int> numbersOfColumns(const LevelMatrix& matrix, int firstRow) {
  RCP<LevelVector> numbers, imported;
  std::vector<int> columns;
  throwOnAllIfAny(Tpetra::Details::extractMpiCommFromTeuchos(*matrix.getComm()), errorIn([&] {
                    numbers = vectorOf(matrix.getDomainMap(), [&](int i) { return static_cast<double>(firstRow + i); });
                    imported = rcp(new LevelVector(matrix.getColMap(), 1));
                    columns.resize(imported->getLocalLength());
                  }));
  if (const auto importer = matrix.getCrsGraph()->getImporter(); importer.is_null()) {
    Tpetra::deep_copy(*imported, *numbers);
  } else {
    imported->doImport(*numbers, *importer, Tpetra::INSERT);
  }
  const auto view = imported->getLocalViewHost(Tpetra::Access::ReadOnly);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    columns[i] = static_cast<int>(view(i, 0));
  }
  return columns;
}

std::uint64_t hashOfPlaces(const LevelMatrix& matrix) {
  const auto local = matrix.getLocalMatrixHost().graph;
  const auto columns = matrix.getColMap();
  std::uint64_t hash = 0;
  for (int row = 0; row < static_cast<int>(local.numRows()); ++row) {
    hash = mix(hash, local.row_map(row + 1));
    for (auto k = local.row_map(row); k < local.row_map(row + 1); ++k) {
      hash = mix(hash, static_cast<std::uint64_t>(columns->getGlobalElement(local.entries(k))));
    }
  }
  return hash;
}

bool isSquareOnOneMap(const LevelMatrix& matrix) {
  return matrix.getDomainMap()->isSameAs(*matrix.getRowMap()) && matrix.getRangeMap()->isSameAs(*matrix.getRowMap());
}

}  // namespace Komvos::Impl
