#include "Komvos_ContiguousNumbering.hpp"

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
  const auto importer = matrix.getCrsGraph()->getImporter();
  const auto numbers = vectorOf(matrix.getDomainMap(), [&](int i) { return static_cast<double>(firstRow + i); });
  LevelVector imported(matrix.getColMap(), 1);
  if (importer.is_null()) {
    Tpetra::deep_copy(imported, *numbers);
  } else {
    imported.doImport(*numbers, *importer, Tpetra::INSERT);
  }
  const auto view = imported.getLocalViewHost(Tpetra::Access::ReadOnly);
  std::vector<int> columns(view.extent(0));
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
