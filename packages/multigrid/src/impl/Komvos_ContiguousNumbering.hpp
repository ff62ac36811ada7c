/// \file Komvos_ContiguousNumbering.hpp
/// Rows and columns of a distributed matrix, numbered from rank to rank.
#pragma once

#include <Teuchos_RCP.hpp>
#include <Tpetra_CrsMatrix.hpp>
#include <Tpetra_Map.hpp>
#include <Tpetra_MultiVector.hpp>
#include <cstdint>
#include <functional>
#include <vector>

#include "Komvos_TpetraShim.hpp"

namespace Komvos::Impl {

using LevelMap = Tpetra::Map<DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;
using LevelMatrix = Tpetra::CrsMatrix<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;
using LevelVector = Tpetra::MultiVector<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;

/// `local` entries of this rank, numbered from rank to rank. \note Collective.
Teuchos::RCP<const LevelMap> consecutiveMap(int local, const Teuchos::RCP<const Teuchos::Comm<int>>& comm);

/// A vector of one column with these entries.
Teuchos::RCP<LevelVector> vectorOf(const Teuchos::RCP<const LevelMap>& map, const std::function<double(int)>& entry);

/// For each column of the matrix on this rank, its number where rows are numbered from rank to rank, those of a rank as
/// its map has them.
/// \param matrix square, with row map = domain map \param firstRow the number of this rank's first row
/// \note Collective.
/// \throws BadInput on all ranks if one has no memory for it
std::vector<int> numbersOfColumns(const LevelMatrix& matrix, int firstRow);

/// Of the places of this rank's entries.
std::uint64_t hashOfPlaces(const LevelMatrix& matrix);

/// Whether row, domain and range map are the same. \note Collective.
bool isSquareOnOneMap(const LevelMatrix& matrix);

}  // namespace Komvos::Impl
