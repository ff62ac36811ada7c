/// \file Komvos_HMatrixOperatorFile_def.hpp
/// How it works. The file of a rank has the global indices of its maps, then its two matrices. In all files of one save
/// stands the same random number, so that files of two saves are never taken for one matrix. Maps and halos are made
/// anew from the indices. Ranks agree on errors after each step that can go wrong on one of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <istream>
#include <limits>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_HMatrixOperator.hpp"
#include "Komvos_HMatrixOperator_def.hpp"
#include "Komvos_RankFile.hpp"
#include "Komvos_SectionFile.hpp"

namespace Komvos {
namespace Impl {

constexpr std::uint32_t operatorFileVersion = 1;

/// The same on all ranks. \note Collective.
inline std::uint64_t commonRandom(MPI_Comm comm) {
  std::random_device device;
  std::uint64_t number = static_cast<std::uint64_t>(device()) << 32 | device();
  mpiCheck(MPI_Bcast(&number, 1, MPI_UINT64_T, 0, comm), "MPI_Bcast");
  return number;
}

/// Each of them in [0, all), and none twice. \throws BadInput
inline void requireIndices(const std::string& path, const char* name, std::vector<std::int64_t> indices,
                           std::int64_t all) {
  std::sort(indices.begin(), indices.end());
  const bool isInside = indices.empty() || (indices.front() >= 0 && indices.back() < all);
  if (!isInside || std::adjacent_find(indices.begin(), indices.end()) != indices.end()) {
    throw BadInput("'" + path + "': section '" + name + "' has an index twice, or one that is not between 0 and " +
                   std::to_string(all - 1));
  }
}

}  // namespace Impl

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
class HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::File {
 public:
  static void save(const State& s, const std::string& prefix) {
    const MPI_Comm comm = s.ours->get();
    const std::uint64_t number = Impl::commonRandom(comm);
    std::unique_ptr<Impl::RankFile> file;
    throwOnAllIfAny(comm, Impl::errorIn([&] {
                      const std::string path = Impl::pathOfRank(prefix, s.ours->rank());
                      file = std::make_unique<Impl::RankFile>(path, ".unfinished." + std::to_string(number));
                      write(s, number, file->stream());
                      file->close();
                    }));
    throwOnAllIfAny(comm, Impl::errorIn([&] { file->moveToPlace(); }));
    file->keep();
  }

  static std::unique_ptr<State> load(const Teuchos::RCP<const Teuchos::Comm<int>>& comm, const std::string& prefix,
                                     const ExchangeOptions& exchange) {
    auto state = std::make_unique<State>();
    State& s = *state;
    s.ours = Impl::PrivateComm::of(Tpetra::Details::extractMpiCommFromTeuchos(*comm));
    const MPI_Comm ours = s.ours->get();
    const std::string path = Impl::pathOfRank(prefix, s.ours->rank());
    std::ifstream in;
    Parts parts;
    throwOnAllIfAny(ours, Impl::errorIn([&] {
                      in = Impl::openRankFile(path);
                      parts = readParts(in, path, s.ours->rank(), s.ours->size());
                    }));
    requireOneSave(ours, path, parts.number);
    std::int64_t all = static_cast<std::int64_t>(parts.map.size());
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT64_T, MPI_SUM, ours), "MPI_Allreduce");
    throwOnAllIfAny(ours, Impl::errorIn([&] {
                      requireIndices(path, parts, all);
                      loadMatrices(in, path, parts, s);
                    }));
    s.map = mapOf(comm, parts.map);
    throwOnAllIfAny(ours, s.map->isOneToOne() ? std::string()
                                              : "HMatrixOperator::load: '" + path + "': an index of another rank, too");
    s.rowMap = mapOf(comm, parts.rows);
    s.columnMap = mapOf(comm, parts.columns);
    s.rowHalo = std::make_unique<halo_type>(typename State::import_type(s.map, s.rowMap), exchange);
    s.columnHalo = std::make_unique<halo_type>(typename State::import_type(s.map, s.columnMap), exchange);
    s.makeReport();
    return state;
  }

 private:
  /// What is in a file beside the matrix. Lists of global indices.
  struct Parts {
    std::uint64_t number = 0;
    std::vector<std::int64_t> map, rows, columns;
  };

  static Impl::FileKind kind() { return {"KomvosHO", Impl::operatorFileVersion, Impl::fileScalar<Scalar>()}; }

  static void write(const State& s, std::uint64_t number, std::ostream& out) {
    Impl::SectionWriter file(out, kind(), "HMatrixOperator::save");
    file.section("save", std::vector<std::uint64_t>{number});
    file.section("rank", std::vector<std::int64_t>{s.ours->rank(), s.ours->size()});
    file.section("map", indicesOf(*s.map));
    file.section("rows", indicesOf(*s.rowMap));
    file.section("columns", indicesOf(*s.columnMap));
    file.writeChecksum();
    s.own->save(out);
    s.other->save(out);
  }

  static Parts readParts(std::istream& in, const std::string& path, int rank, int size) {
    Impl::SectionReader file(in, kind(), "HMatrixOperator::load: '" + path + "'");
    Parts parts;
    const auto number = file.section<std::uint64_t>("save");
    const auto ranks = file.section<std::int64_t>("rank");
    parts.map = file.section<std::int64_t>("map");
    parts.rows = file.section<std::int64_t>("rows");
    parts.columns = file.section<std::int64_t>("columns");
    file.requireChecksum();
    if (number.size() != 1 || ranks.size() != 2) {
      file.fail(std::to_string(number.size()) + " and " + std::to_string(ranks.size()) +
                " numbers of the save, expected 1 and 2");
    }
    if (ranks[1] != size) {
      file.fail("saved by " + std::to_string(ranks[1]) + " ranks, and loaded by " + std::to_string(size));
    }
    if (ranks[0] != rank) {
      file.fail("the file of rank " + std::to_string(ranks[0]) + ", not of rank " + std::to_string(rank));
    }
    parts.number = number[0];
    return parts;
  }

  /// \note Collective.
  static void requireOneSave(MPI_Comm comm, const std::string& path, std::uint64_t number) {
    std::uint64_t first = number;
    mpiCheck(MPI_Bcast(&first, 1, MPI_UINT64_T, 0, comm), "MPI_Bcast");
    const std::string error = "HMatrixOperator::load: '" + path + "' is of another save than that of rank 0";
    throwOnAllIfAny(comm, first == number ? std::string() : error);
  }

  static void requireIndices(const std::string& path, const Parts& parts, std::int64_t all) {
    if (all > static_cast<std::int64_t>(std::numeric_limits<GlobalOrdinal>::max()) ||
        all > std::numeric_limits<int>::max()) {
      throw BadInput("HMatrixOperator::load: " + std::to_string(all) + " unknowns; at most 2^31 - 1 are possible");
    }
    Impl::requireIndices(path, "map", parts.map, all);
    Impl::requireIndices(path, "rows", parts.rows, all);
    Impl::requireIndices(path, "columns", parts.columns, all);
  }

  static void loadMatrices(std::istream& in, const std::string& path, const Parts& parts, State& s) {
    const std::string where = "HMatrixOperator::load: '" + path + "': ";
    try {
      s.own = std::make_unique<matrix_type>(matrix_type::load(in));
      s.other = std::make_unique<matrix_type>(matrix_type::load(in));
    } catch (const BadInput& error) {
      throw BadInput(where + error.what());
    }
    if (in.peek() != std::istream::traits_type::eof()) {
      throw BadInput(where + "there are bytes behind its end");
    }
    const PlaceRanges rows = s.placesOf(&matrix_type::rowPlaces), columns = s.placesOf(&matrix_type::columnPlaces);
    if (parts.rows.size() != static_cast<std::size_t>(rows.length()) ||
        parts.columns.size() != static_cast<std::size_t>(columns.length())) {
      throw BadInput(where + "indices of " + std::to_string(parts.rows.size()) + " rows and " +
                     std::to_string(parts.columns.size()) + " columns, but its blocks have " +
                     std::to_string(rows.length()) + " and " + std::to_string(columns.length()));
    }
    s.place(*s.own, rows, columns);
    s.place(*s.other, rows, columns);
  }

  static std::vector<std::int64_t> indicesOf(const map_type& map) {
    std::vector<std::int64_t> indices(Impl::localLength(map));
    for (std::size_t i = 0; i < indices.size(); ++i) {
      indices[i] = static_cast<std::int64_t>(map.getGlobalElement(static_cast<LocalOrdinal>(i)));
    }
    return indices;
  }

  static Teuchos::RCP<const map_type> mapOf(const Teuchos::RCP<const Teuchos::Comm<int>>& comm,
                                            const std::vector<std::int64_t>& list) {
    const std::vector<GlobalOrdinal> indices(list.begin(), list.end());
    using Size = typename Teuchos::ArrayView<const GlobalOrdinal>::size_type;
    return Teuchos::rcp(
        new map_type(Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid(),
                     Teuchos::ArrayView<const GlobalOrdinal>(indices.data(), static_cast<Size>(indices.size())), 0,
                     comm));
  }
};

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::HMatrixOperator(std::unique_ptr<State> state)
    : state_(std::move(state)) {}

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
void HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::save(const std::string& prefix) const {
  File::save(*state_, prefix);
}

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
auto HMatrixOperator<Scalar, LocalOrdinal, GlobalOrdinal, Node>::load(
    const Teuchos::RCP<const Teuchos::Comm<int>>& comm, const std::string& prefix, const ExchangeOptions& exchange)
    -> Teuchos::RCP<HMatrixOperator> {
  return Teuchos::rcp(new HMatrixOperator(File::load(comm, prefix, exchange)));
}

/// Compiles HMatrixOperator of float, double or std::complex<double>, for maps of these types; in namespace Komvos. For
/// a scalar that Tpetra is not compiled for, KOMVOS_NODEAWAREIMPORT_SCALAR_INSTANT too.
#define KOMVOS_HMATRIXOPERATOR_INSTANT(SCALAR, LO, GO, NODE) template class HMatrixOperator<SCALAR, LO, GO, NODE>;

}  // namespace Komvos
