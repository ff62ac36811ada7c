// How fast do rows of a sparse matrix move? Packing, unpacking, and whole transfers, against Tpetra's and memcpy.
//
// The sweep of Fuller and Hoemmen ("Thread parallel message packing"): N rows on each rank, with n entries each, all of
// which go to another rank; and cases that users complain of. run_row_transfer.py runs it.
#include <Trilinos_version.h>

#include <CLI/CLI.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_CrsMatrix.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <Tpetra_Details_packCrsMatrix.hpp>
#include <Tpetra_Details_unpackCrsMatrixAndCombine.hpp>
#include <Tpetra_Import.hpp>
#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_RowKernels.hpp"
#include "Komvos_RowTransfer.hpp"
#include "Komvos_Statistics.hpp"
#include "Komvos_SystemInfo.hpp"
#include "commit.hpp"
#include "support/text_format.hpp"

// How this works. Each way is one function, timed in turn with the others of its kind; a sample's time is the maximum
// over ranks. Packing and unpacking are local, of all rows; ours in the form that transfer() uses, and that of
// transferValues(), with the lists that a transfer keeps; those that it makes each time are made here, too. What is
// unpacked is compared with what was packed.
namespace {

using namespace Komvos;
using Json = nlohmann::ordered_json;
using Program::format;
using Teuchos::RCP;
using Teuchos::rcp;
using Map = Tpetra::Map<>;
using Matrix = Tpetra::CrsMatrix<>;
using GO = DefaultGlobalOrdinal;
using LO = DefaultLocalOrdinal;
using Device = DefaultNode::device_type;
using Space = Device::execution_space;
using Memory = Device::memory_space;
using Items = Impl::RowItems<Memory>;
using LocalMatrix = Matrix::local_matrix_device_type;
using LocalMap = Map::local_map_type;
using Rows = Impl::MatrixRows<double, LocalMap, LocalMatrix::row_map_type, LocalMatrix::index_type>;
using Words = Kokkos::View<std::uint64_t*, Memory>;

struct Options {
  GO rows = 1000;
  int entries = 50;
  std::string problem = "sweep";
  int samples = 30;
  std::string json = "-";
};

struct Way {
  std::string group, name;
  std::function<void()> run;
  std::function<void()> before;  // not timed
  std::vector<double> seconds;
};

RCP<Matrix> makeMatrix(const Options& options, const RCP<const Map>& rows) {
  const GO n = static_cast<GO>(rows->getGlobalNumElements());
  const bool dense = options.problem == "dense-rows";
  Teuchos::Array<std::size_t> lengths(Impl::localLength(*rows));
  for (std::size_t i = 0; i < static_cast<std::size_t>(lengths.size()); ++i) {
    lengths[static_cast<Teuchos::Ordinal>(i)] =
        static_cast<std::size_t>(dense && i < 4 ? n / 2 : std::min<GO>(n, options.entries));
  }
  const auto matrix = rcp(new Matrix(rows, lengths()));
  std::mt19937_64 random(static_cast<unsigned long>(1 + rows->getComm()->getRank()));
  std::vector<GO> columns;
  std::vector<double> values;
  for (std::size_t i = 0; i < static_cast<std::size_t>(lengths.size()); ++i) {
    const GO row = rows->getGlobalElement(static_cast<LO>(i));
    const auto count = static_cast<GO>(lengths[static_cast<Teuchos::Ordinal>(i)]);
    columns.clear();
    values.clear();
    const GO step = n / count;
    for (GO k = 0; k < count; ++k) {  // different columns all over the matrix
      columns.push_back((row + k * step + static_cast<GO>(random() % static_cast<unsigned long>(step))) % n);
      values.push_back(1e-3 * static_cast<double>(random() % 1000));
    }
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    matrix->insertGlobalValues(row, Teuchos::ArrayView<const GO>(columns.data(), columns.size()),
                               Teuchos::ArrayView<const double>(values.data(), columns.size()));
  }
  matrix->fillComplete();
  return matrix;
}

/// Where rows go: to the next rank; or, for "permuted", to another place on their own.
RCP<const Map> targetOf(const Options& options, const Map& rows) {
  const auto comm = rows.getComm();
  const int size = comm->getSize();
  std::vector<GO> mine;
  const GO first = options.problem == "permuted" ? rows.getMinGlobalIndex()
                                                 : static_cast<GO>((comm->getRank() + 1) % size) * options.rows;
  for (GO i = 0; i < options.rows; ++i) {
    mine.push_back(first + (options.problem == "permuted" ? (i * 7 + 3) % options.rows : i));
  }
  return rcp(new Map(Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid(),
                     Teuchos::ArrayView<const GO>(mine.data(), mine.size()), 0, comm));
}

/// Packing and unpacking of all rows, on this rank.
class LocalWork {
 public:
  explicit LocalWork(const RCP<Matrix>& matrix) : matrix_(matrix), local_(matrix->getLocalMatrixDevice()) {
    const int n = static_cast<int>(Impl::localRows(*matrix));
    std::int64_t entries = 0;
    for (int i = 0; i < n; ++i) {
      const auto count = static_cast<std::int64_t>(local_.graph.row_map(i + 1) - local_.graph.row_map(i));
      row_.push_back(i);
      to_.push_back(entries);
      length_.push_back(count);
      ids_.push_back(matrix->getRowMap()->getGlobalElement(i));
      for (const bool withColumns : {false, true}) {
        first_[withColumns].push_back(words_[withColumns]);
        words_[withColumns] += Impl::RowFormat<double>{withColumns}.words(count);
      }
      entries += count;
    }
    for (const bool withColumns : {false, true}) {
      buffer_[withColumns] = Words("buffer", words_[withColumns]);
    }
    columns_ = Kokkos::View<GO*, Memory>("columns", entries);
    values_ = Kokkos::View<double*, Memory>("values", entries);
    const Impl::RowFormat<double> format{false};
    std::vector<int> from;
    for (int i = 0; i < n; ++i) {
      for (std::int64_t k = 0; k < length_[i]; ++k) {
        from.push_back(~static_cast<int>(first_[0][i] + format.valuesAt(length_[i]) + k));
      }
    }
    valueItems_ = Items(length_, Impl::entriesPerItem<Space>());
    rowList_ = Impl::deviceList<Memory>("row", row_);
    for (const bool withColumns : {false, true}) {
      firstList_[withColumns] = Impl::deviceList<Memory>("first", first_[withColumns]);
    }
    sources_ = {Kokkos::View<int*, Memory>(), from, Impl::entriesPerItem<Space>()};
    prepareTpetra(n);
  }

  void pack(bool withColumns) {
    using Pack = Impl::PackRows<double, Rows, LocalMap, Memory>;
    const Rows rows{local_.graph.row_map, local_.graph.entries, matrix_->getColMap()->getLocalMap(),
                    local_.values.data()};
    Impl::packRows(space_,
                   Pack{{withColumns},
                        rows,
                        matrix_->getRowMap()->getLocalMap(),
                        rowList_,
                        firstList_[withColumns],
                        buffer_[withColumns].data()},
                   withColumns ? Items(length_, Impl::entriesPerItem<Space>()) : valueItems_);
    space_.fence();
  }
  void unpackRows() {
    const Kokkos::View<int, Memory> wrong("wrong");
    Kokkos::deep_copy(wrong, std::numeric_limits<int>::max());
    Impl::unpackRows(space_,
                     Impl::UnpackRows<double, GO, Memory>{{true},
                                                          buffer_[1].data(),
                                                          firstList_[1],
                                                          Impl::deviceList<Memory>("length", length_),
                                                          Impl::deviceList<Memory>("to", to_),
                                                          Impl::deviceList<Memory>("ids", ids_),
                                                          Words("sums", row_.size()),
                                                          columns_.data(),
                                                          values_.data(),
                                                          wrong},
                     length_);
    space_.fence();
    if (wrong() != std::numeric_limits<int>::max()) {
      throw Error("row " + std::to_string(wrong()) + " was not unpacked as it was packed");
    }
  }
  void unpackValues() {
    sources_.run<double>(space_, nullptr, reinterpret_cast<const double*>(buffer_[0].data()), values_.data(),
                         static_cast<int>(values_.extent(0)));
    space_.fence();
  }
  bool valuesAreBack() {
    Kokkos::deep_copy(values_, 0.0);
    pack(false);
    unpackValues();
    return std::memcmp(values_.data(), local_.values.data(), values_.size() * sizeof(double)) == 0;
  }

  void packByTpetra() {
    std::size_t constant = 0;
    Tpetra::Details::packCrsMatrixNew<double, LO, GO, DefaultNode>(*matrix_, exports_, packets_, lids_, constant);
  }
  void unpackByTpetra() {
    // Imports are in host and device memory, as after receiving.
    Tpetra::Details::unpackCrsMatrixAndCombineNew<double, LO, GO, DefaultNode>(*target_, exports_, packets_, lids_, 0,
                                                                               Tpetra::REPLACE);
  }
  /// As many bytes as Tpetra's message has, or ours.
  void copy(bool withColumns) { std::memcpy(copy_.data(), buffer_[withColumns].data(), words_[withColumns] * 8); }
  std::int64_t bytes(bool withColumns) const { return words_[withColumns] * 8; }
  /// The arrays of the matrix, or its values alone, into memory that is there.
  void copyMatrix(bool withColumns) {
    const auto copyTo = [](const auto& target, const auto& source) {
      std::memcpy(target.data(), source.data(), source.size() * sizeof(*source.data()));
    };
    copyTo(matrixValues_, local_.values);
    if (withColumns) {
      copyTo(matrixColumns_, local_.graph.entries);
      copyTo(matrixOffsets_, local_.graph.row_map);
    }
  }

 private:
  using BufferDevice = Tpetra::DistObject<char, LO, GO, DefaultNode>::buffer_device_type;

  void prepareTpetra(int n) {
    packets_ = Kokkos::DualView<std::size_t*, BufferDevice>("packets", n);
    Kokkos::DualView<LO*, BufferDevice> lids("lids", n);
    for (int i = 0; i < n; ++i) {
      lids.view_host()(i) = i;
    }
    lids.modify_host();
    lids.sync_device();
    lids_ = lids;
    target_ = rcp(new Matrix(matrix_->getCrsGraph()));
    target_->fillComplete(matrix_->getDomainMap(), matrix_->getRangeMap());
    target_->resumeFill();
    copy_ = Words("copy", words_[1]);
    matrixValues_ = decltype(matrixValues_)("values", local_.values.size());
    matrixColumns_ = decltype(matrixColumns_)("columns", local_.graph.entries.size());
    matrixOffsets_ = decltype(matrixOffsets_)("offsets", local_.graph.row_map.size());
  }

  RCP<Matrix> matrix_, target_;
  LocalMatrix local_;
  Space space_;
  std::vector<int> row_;
  std::vector<std::int64_t> first_[2], length_, to_;
  std::vector<GO> ids_;
  std::int64_t words_[2] = {0, 0};
  Words buffer_[2], copy_;
  Kokkos::View<GO*, Memory> columns_;
  Kokkos::View<double*, Memory> values_, matrixValues_;
  Kokkos::View<LO*, Memory> matrixColumns_;
  Kokkos::View<std::size_t*, Memory> matrixOffsets_;
  Impl::ValueSources<Memory> sources_;
  Kokkos::View<int*, Memory> rowList_;
  Kokkos::View<std::int64_t*, Memory> firstList_[2];
  Items valueItems_;
  Kokkos::DualView<char*, BufferDevice> exports_;
  Kokkos::DualView<std::size_t*, BufferDevice> packets_;
  Kokkos::DualView<const LO*, BufferDevice> lids_;
};

double maximum(MPI_Comm comm, double seconds) {
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, comm), "MPI_Allreduce");
  return seconds;
}

void take(std::vector<Way>& ways, int samples, MPI_Comm comm) {
  for (int sample = -2; sample < samples; ++sample) {  // two to warm up
    for (std::size_t i = 0; i < ways.size(); ++i) {
      Way& way = ways[(i + static_cast<std::size_t>(sample + 2)) % ways.size()];
      if (way.before) {
        way.before();
      }
      mpiCheck(MPI_Barrier(comm), "MPI_Barrier");
      const double start = MPI_Wtime();
      way.run();
      const double seconds = maximum(comm, MPI_Wtime() - start);
      if (sample >= 0) {
        way.seconds.push_back(seconds);
      }
    }
  }
}

/// Times, and ratios to the first way of each group within a sample.
Json resultsOf(const std::vector<Way>& ways) {
  Json json = Json::array();
  const Way* first = nullptr;
  for (const Way& way : ways) {
    first = first != nullptr && first->group == way.group ? first : &way;
    json.push_back({{"group", way.group},
                    {"way", way.name},
                    {"seconds", Impl::median(way.seconds)},
                    {"of_tpetra", Impl::median(Impl::ratios(way.seconds, first->seconds))}});
  }
  return json;
}

void run(const Options& options) {
  const auto comm = Tpetra::getDefaultComm();
  const MPI_Comm mpi = Tpetra::Details::extractMpiCommFromTeuchos(*comm);
  const RCP<const Map> rows = rcp(new Map(Teuchos::OrdinalTraits<Tpetra::global_size_t>::invalid(),
                                          static_cast<std::size_t>(options.rows), 0, comm));
  const RCP<Matrix> matrix = makeMatrix(options, rows);
  const RCP<const Matrix> source = matrix;
  LocalWork work(matrix);
  work.packByTpetra();
  const auto columnsAndValues = true, valuesAlone = false;
  std::vector<Way> ways;
  const auto add = [&ways](const std::string& group, const std::string& name, std::function<void()> way,
                           std::function<void()> before = {}) {
    ways.push_back({group, name, std::move(way), std::move(before), {}});
  };
  add("pack", "Tpetra", [&] { work.packByTpetra(); });
  add("pack", "Komvos", [&] { work.pack(columnsAndValues); });
  add("pack", "memcpy", [&] { work.copy(columnsAndValues); });
  add("pack", "Komvos, values alone", [&] { work.pack(valuesAlone); });
  add("pack", "memcpy, values alone", [&] { work.copy(valuesAlone); });
  add("unpack", "Tpetra", [&] { work.unpackByTpetra(); });
  add("unpack", "Komvos", [&] { work.unpackRows(); });
  add("unpack", "memcpy", [&] { work.copy(columnsAndValues); });
  add("unpack", "Komvos, values alone", [&] { work.unpackValues(); });
  add("unpack", "memcpy, values alone", [&] { work.copy(valuesAlone); });

  const RCP<const Map> target = targetOf(options, *rows);
  const Tpetra::Import<> import(rows, target);
  RowTransfer<> transfer(import), again(import);  // again: with the lists of an earlier transfer
  // Tpetra moves values into a matrix that has the graph already; it must be open for that.
  const RCP<Matrix> theirs =
      rcp(new Matrix(Tpetra::importAndFillCompleteCrsMatrix<Matrix>(source, import, rows, rows)->getCrsGraph()));
  theirs->fillComplete(rows, rows);
  RCP<Matrix> ours;
  const RCP<Matrix> kept = again.transfer(*matrix, Tpetra::REPLACE);
  add("transfer", "Tpetra", [&] { Tpetra::importAndFillCompleteCrsMatrix<Matrix>(source, import, rows, rows); });
  add("transfer", "Komvos", [&] { ours = transfer.transfer(*matrix, Tpetra::REPLACE); });
  add("transfer", "memcpy", [&] { work.copyMatrix(columnsAndValues); });
  add(
      "transfer values", "Tpetra", [&] { theirs->doImport(*matrix, import, Tpetra::REPLACE); },
      [&] { theirs->isFillActive() ? void() : theirs->resumeFill(); });
  add("transfer values", "Komvos", [&] { again.transferValues(*matrix, *kept); });
  add("transfer values", "memcpy", [&] { work.copyMatrix(valuesAlone); });
  take(ways, options.samples, mpi);
  if (!work.valuesAreBack()) {
    throw Error("values that were unpacked are not those that were packed");
  }
  const Json report{{"benchmark", "rows of a sparse matrix, packed, unpacked and moved"},
                    {"commit", KOMVOS_COMMIT},
                    {"trilinos", TRILINOS_VERSION_STRING},
                    {"problem", options.problem},
                    {"rows_per_rank", options.rows},
                    {"entries_per_row", options.entries},
                    {"bytes", work.bytes(columnsAndValues)},
                    {"ranks", comm->getSize()},
                    {"threads", Space().concurrency()},
                    {"samples", options.samples},
                    {"processor", Impl::processorName()},
                    {"mpi", Impl::mpiLibraryName()},
                    {"results", resultsOf(ways)}};
  if (comm->getRank() == 0) {
    std::cout << format("%s, %lld rows of %d entries on each of %d ranks, %d threads\n", options.problem.c_str(),
                        static_cast<long long>(options.rows), options.entries, comm->getSize(), Space().concurrency());
    for (const Json& one : report["results"]) {
      std::cout << format("  %-16s %-22s %10.1f us  %.2f\n", one["group"].get<std::string>().c_str(),
                          one["way"].get<std::string>().c_str(), 1e6 * one["seconds"].get<double>(),
                          one["of_tpetra"].get<double>());
    }
    if (options.json != "-") {
      std::ofstream file(options.json);
      file << report.dump(1) << "\n" << std::flush;
      throwOnAllIfAny(MPI_COMM_SELF, file.good() ? "" : "cannot write " + options.json);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Tpetra::ScopeGuard scope(&argc, &argv);
  Options options;
  CLI::App app("Times how rows of a sparse matrix are packed, unpacked and moved");
  app.add_option("--rows", options.rows, "on each rank")->check(CLI::PositiveNumber);
  app.add_option("--entries", options.entries, "in each row")->check(CLI::PositiveNumber);
  app.add_option("--problem", options.problem)->check(CLI::IsMember({"sweep", "dense-rows", "permuted"}));
  app.add_option("--samples", options.samples)->check(CLI::PositiveNumber);
  app.add_option("--json", options.json, "file to write");
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
  } catch (const std::exception& error) {
    std::cerr << "row_transfer: " << error.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 0;
}
