// Imports and exports, in both directions.
#include <Tpetra_Export.hpp>
#include <Tpetra_Import.hpp>

#include "comparison.hpp"

namespace twin {

namespace {

using Import = Tpetra::Import<LO, GO, Node>;
using Export = Tpetra::Export<LO, GO, Node>;

/// A map where every index belongs to one rank, and one that overlaps it.
struct Maps {
  std::string name;
  RCP<const Map> owned, overlapping;
};

/// \param same entries that start both maps \param percentOwn, percentOthers of the indices that are in the overlapping
/// map besides
Maps makeMaps(const std::string& name, bool anywhere, bool emptyRanks, int same, int percentOwn, int percentOthers,
              const Comm& comm) {
  const int size = comm->getSize(), rank = comm->getRank();
  std::vector<GO> owned, overlapping;
  for (GO i = 0; i < 13 * size; ++i) {
    int owner = anywhere ? below(size, i * 37ULL + 5) : static_cast<int>(i / 13);
    owner = emptyRanks && owner % 2 == 0 ? std::min(owner + 1, size - 1) : owner;
    if (owner == rank) {
      owned.push_back(3 * i + 1);
    }
  }
  const auto first = owned.begin() + std::min<std::size_t>(same, owned.size());
  overlapping.assign(owned.begin(), first);
  for (GO k = 13 * size - 1; k >= 0; --k) {
    const GO index = 3 * k + 1;
    const bool mine = std::find(owned.begin(), owned.end(), index) != owned.end();
    if (below(100, index * 97ULL + 1009 * rank) < (mine ? percentOwn : percentOthers) &&
        std::find(overlapping.begin(), overlapping.end(), index) == overlapping.end()) {
      overlapping.push_back(index);
    }
  }
  return {name, mapOf(owned, comm), mapOf(overlapping, comm)};
}

/// Whole numbers, so that sums are exact. The same on all ranks that have an index, if `rank` is.
template <class Scalar>
void fillWhole(Vectors<Scalar>& vectors, unsigned seed, int rank) {
  fill(vectors, seed, rank);
  for (std::size_t j = 0; j < vectors.getNumVectors(); ++j) {
    const auto column = vectors.getVectorNonConst(j);
    const auto view = column->getLocalViewHost(Tpetra::Access::ReadWrite);
    for (std::size_t i = 0; i < view.extent(0); ++i) {
      view(i, 0) = static_cast<Scalar>(std::floor(static_cast<double>(view(i, 0))));
    }
  }
}

const char* nameOf(Tpetra::CombineMode mode) {
  switch (mode) {
    case Tpetra::INSERT:
      return "INSERT";
    case Tpetra::REPLACE:
      return "REPLACE";
    case Tpetra::ADD:
      return "ADD";
    case Tpetra::ADD_ASSIGN:
      return "ADD_ASSIGN";
    case Tpetra::ABSMAX:
      return "ABSMAX";
    default:
      return "ZERO";
  }
}

template <class Scalar>
class TransferPair {
 public:
  TransferPair(Comparisons& comparisons, const Maps& maps, const Komvos::ExchangeOptions& options)
      : comparisons_(comparisons),
        maps_(maps),
        importer_(maps.owned, maps.overlapping),
        exporter_(maps.overlapping, maps.owned),
        ourImport_(importer_, options),
        ourExport_(exporter_, options) {}

  /// Copies to the overlapping map, by an Import and by an Export read backwards.
  void copies(const Vectors<Scalar>& source, Vectors<Scalar>& target, Vectors<Scalar>& whole, Tpetra::CombineMode mode,
              const std::string& what) {
    both(
        source, target, whole, name("Import", mode, what), [&](auto& x, auto& y) { y.doImport(x, importer_, mode); },
        [&](auto& x, auto& y) { ourImport_.doImport(x, y, mode); });
    both(
        source, target, whole, name("reversed Export", mode, what),
        [&](auto& x, auto& y) { y.doImport(x, exporter_, mode); },
        [&](auto& x, auto& y) { ourExport_.doImport(x, y, mode); });
  }

  /// Sums, or whatever the mode says, to the owned map, by an Export and by an Import read backwards.
  void sums(const Vectors<Scalar>& source, Vectors<Scalar>& target, Vectors<Scalar>& whole, Tpetra::CombineMode mode,
            const std::string& what) {
    both(
        source, target, whole, name("Export", mode, what), [&](auto& x, auto& y) { y.doExport(x, exporter_, mode); },
        [&](auto& x, auto& y) { ourExport_.doExport(x, y, mode); });
    both(
        source, target, whole, name("reversed Import", mode, what),
        [&](auto& x, auto& y) { y.doExport(x, importer_, mode); },
        [&](auto& x, auto& y) { ourImport_.doExport(x, y, mode); });
  }

 private:
  std::string name(const std::string& how, Tpetra::CombineMode mode, const std::string& what) const {
    return maps_.name + ", " + how + ", " + nameOf(mode) + what;
  }

  /// `target` is a part of `whole`, or the same; both end as they were.
  template <class Tpetras, class Ours>
  void both(const Vectors<Scalar>& source, Vectors<Scalar>& target, Vectors<Scalar>& whole, const std::string& what,
            const Tpetras& tpetras, const Ours& ours) {
    const Vectors<Scalar> before(whole, Teuchos::Copy);
    tpetras(source, target);
    const Vectors<Scalar> expected(whole, Teuchos::Copy);
    Tpetra::deep_copy(whole, before);
    ours(source, target);
    comparisons_.sameBits(expected, whole, what + ", " + std::to_string(source.getNumVectors()) + " columns");
    Tpetra::deep_copy(whole, before);
  }

  Comparisons& comparisons_;
  const Maps& maps_;
  Import importer_;
  Export exporter_;
  Komvos::NodeAwareImport<> ourImport_, ourExport_;
};

using Modes = std::vector<Tpetra::CombineMode>;
const Modes copyModes{Tpetra::INSERT, Tpetra::REPLACE, Tpetra::ADD, Tpetra::ADD_ASSIGN, Tpetra::ABSMAX, Tpetra::ZERO};
const Modes sumModes{Tpetra::INSERT, Tpetra::REPLACE, Tpetra::ADD, Tpetra::ADD_ASSIGN, Tpetra::ABSMAX, Tpetra::ZERO};

bool writesAnyOf(Tpetra::CombineMode mode) { return mode == Tpetra::INSERT || mode == Tpetra::REPLACE; }

/// Where a mode takes any of several values for one entry, ranks give the same.
template <class Scalar>
void compareModes(Comparisons& comparisons, const Maps& maps, const Comm& comm, const Setting& setting,
                  const std::string& type) {
  TransferPair<Scalar> pair(comparisons, maps, setting.options);
  const auto overWidths = [&](Tpetra::CombineMode mode, const auto& work) {
    comparisons.enter("transfers of " + type + ": " + nameOf(mode), setting.name);
    for (int k = 0; k < 2; ++k) {
      const int width = 1 + (setting.turn + 4 * k + static_cast<int>(mode)) % 9;
      Vectors<Scalar> owned(maps.owned, width), overlapping(maps.overlapping, width);
      fillWhole(owned, 1, 0);
      fillWhole(overlapping, 2, writesAnyOf(mode) ? 0 : comm->getRank());
      work(owned, overlapping);
    }
  };
  for (const Tpetra::CombineMode mode : copyModes) {
    overWidths(mode, [&](auto& owned, auto& overlapping) { pair.copies(owned, overlapping, overlapping, mode, ""); });
  }
  for (const Tpetra::CombineMode mode : sumModes) {
    overWidths(mode, [&](auto& owned, auto& overlapping) { pair.sums(overlapping, owned, owned, mode, ""); });
  }
}

template <class Scalar>
void compareViews(Comparisons& comparisons, const Maps& maps, const Comm& comm, const Setting& setting) {
  TransferPair<Scalar> pair(comparisons, maps, setting.options);
  comparisons.enter("transfers: views", setting.name);
  Vectors<Scalar> owned(maps.owned, 6), overlapping(maps.overlapping, 6);
  fillWhole(owned, 5, 0);
  fillWhole(overlapping, 6, comm->getRank());
  const std::size_t mine[] = {4, 0, 2}, others[] = {1, 5, 3};
  const Teuchos::ArrayView<const std::size_t> some(mine, 3), more(others, 3);
  const Teuchos::Range1D range(1, 3);
  for (const Tpetra::CombineMode mode : {Tpetra::REPLACE, Tpetra::ADD_ASSIGN}) {
    pair.copies(*owned.subView(range), *overlapping.subViewNonConst(range), overlapping, mode, ", columns 1 to 3");
    pair.copies(*owned.subView(some), *overlapping.subViewNonConst(more), overlapping, mode, ", scattered columns");
    pair.copies(*owned.getVector(2), *overlapping.getVectorNonConst(4), overlapping, mode, ", one column");
  }
  for (const Tpetra::CombineMode mode : {Tpetra::ADD, Tpetra::ADD_ASSIGN}) {
    pair.sums(*overlapping.subView(range), *owned.subViewNonConst(range), owned, mode, ", columns 1 to 3");
    pair.sums(*overlapping.subView(some), *owned.subViewNonConst(more), owned, mode, ", scattered columns");
    pair.sums(*overlapping.getVector(1), *owned.getVectorNonConst(3), owned, mode, ", one column");
  }
}

}  // namespace

void compareTransfers(Comparisons& comparisons, const Comm& comm, const Setting& setting) {
  const Maps all[] = {
      makeMaps("same entries first", false, false, 5, 40, 20, comm),
      makeMaps("entries anywhere, permuted", true, false, 2, 70, 25, comm),
      makeMaps("empty ranks", false, true, 3, 50, 30, comm),
      makeMaps("everything everywhere", true, false, 0, 100, 100, comm),
      makeMaps("nothing from others", false, false, 0, 100, 0, comm),
  };
  for (const Maps& maps : all) {
    compareModes<double>(comparisons, maps, comm, setting, "double");
    compareModes<GO>(comparisons, maps, comm, setting, "global indices");
    compareViews<double>(comparisons, maps, comm, setting);
  }
}

}  // namespace twin
