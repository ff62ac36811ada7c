#include "Komvos_NodeAwareHierarchy.hpp"

#include <MueLu_Hierarchy.hpp>
#include <MueLu_TpetraOperator.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_LevelOptions.hpp"
#include "Komvos_LevelSmoothers.hpp"
#include "Komvos_MueLuLevels.hpp"
#include "Komvos_RebalancedTransfer.hpp"

// How this works. First the exchanges of all levels are planned, those of one communicator together: to agree on twenty
// halos then costs what it costs for one. Ranks that rebalancing left without a part of a level have no part in its
// exchanges: what its ranks throw is kept until all have planned all that they have a part in, and all throw. Then
// level by level, from the finest, what takes their place is made: node-aware matrices, RebalancedTransfer for P and R
// with an importer, then smoothers; nothing in that is collective on a finer level than the one at hand. Whatever a
// rank throws there is kept until all have come to the end, where all throw. The hierarchy is changed only after that:
// one that some ranks had changed and others not could not be used any more.
//
// Where a hierarchy is set up again, MueLu puts matrices of its own in the place of ours. So the exchanges are saved
// with the finest level (SavedExchanges), by level and name. What has the same maps as before, on all ranks and with
// the same options, reuses its exchange, and only the rest is planned.
namespace Komvos {

namespace {

using Impl::MueLuLevels;
using Impl::MueLuSmoother;
using Teuchos::RCP;
using Teuchos::rcp;
using Teuchos::rcp_dynamic_cast;
using Matrix = Tpetra::CrsMatrix<>;
using NodeAwareMatrix = NodeAwareCrsMatrix<>;

MPI_Comm mpiOf(const Teuchos::Comm<int>& comm) { return Tpetra::Details::extractMpiCommFromTeuchos(comm); }

/// What is reused when a hierarchy is set up again. No values of matrices.
struct SavedExchanges {
  std::optional<std::uint64_t> options;  ///< their fingerprint
  std::shared_ptr<TuningCache> record;   ///< belongs to the options
  std::map<std::pair<int, std::string>, std::shared_ptr<const NodeAwareMatrix::Structure>> matrices;
  std::map<int, std::shared_ptr<const NodeAwareImport<>>> importers;
};

/// Walks a hierarchy, and keeps what it has made.
class HierarchyWalk {
 public:
  HierarchyWalk(MueLuLevels levels, MPI_Comm finest, const ExchangeOptions& options)
      : levels_(levels),
        finest_(finest),
        options_(finest, options),
        overlap_(options.overlap),
        record_(options.record),
        saved_(std::static_pointer_cast<const SavedExchanges>(levels_.savedForReuse())) {
    if (saved_ && !(options_.fingerprint() && saved_->options == options_.fingerprint() && saved_->record == record_)) {
      saved_ = nullptr;
    }
  }

  NodeAwareHierarchy run() {
    plan();
    throwOnAllIfAny(finest_, Impl::errorIn([&] { makeReplacements(); }));
    for (const MueLuLevels::Change& change : changes_) {
      change();
    }
    if (mapsChanged_) {
      levels_.renewVectors(std::move(spared_));
    }
    return std::move(result_);
  }

 private:
  void makeReplacements() {
    for (int level = 0; level < levels_.count(); ++level) {
      for (const char* const name : {"A", "P", "R", "Pbar"}) {
        replaceMatrix(level, name);
      }
      replaceImporter(level);
      smoothers_.clear();
      for (const char* const name : {"PreSmoother", "PostSmoother"}) {
        replaceSmoother(level, name);
      }
    }
    if (mapsChanged_) {
      spared_ = levels_.vectorOfFinestLevel();
    }
    saveExchanges();
  }

  void saveExchanges() {
    const auto saved = std::make_shared<SavedExchanges>();
    saved->options = options_.fingerprint();
    saved->record = record_;
    for (const LevelExchange& one : result_.exchanges) {
      if (!saved->options) {
        break;
      }
      if (one.transfer) {
        saved->importers[one.level] = one.transfer;
      } else {
        saved->matrices[{one.level, one.name}] = one.matrix->structure();
      }
    }
    changes_.push_back(levels_.saveForReuse(saved));
  }

  /// A solver on the coarsest level has a copy of the matrix; nobody multiplies with it.
  bool isSolved(int level) const {
    const MueLuSmoother smoother = levels_.smoother(level, "PreSmoother");
    return level > 0 && level == levels_.count() - 1 && smoother.identity != nullptr && smoother.ifpack2.is_null();
  }

  /// Null: there is none, or nobody multiplies with it.
  RCP<const Matrix> matrixToReplace(int level, const std::string& name) const {
    const bool isUnused = name == "A" && isSolved(level) && !levels_.isSet(level, name);
    return isUnused ? Teuchos::null : levels_.matrix(level, name);
  }

  /// What is planned together. The lists of what is new have room for all, so that none grows between two collective
  /// calls.
  struct Batch {
    MPI_Comm comm;
    std::vector<RCP<const Matrix>> matrices;
    std::vector<std::shared_ptr<const NodeAwareMatrix::Structure>> structures;  // of each, from before, or null
    std::vector<RCP<const Tpetra::Import<>>> importers;
    std::vector<std::shared_ptr<const NodeAwareImport<>>> exchanges;  // of each, from before, or null
    std::vector<int> reusable;                                        // matrices, importers, the batch itself: 1 or 0
    std::vector<RCP<const Matrix>> newMatrices;
    std::vector<const NodeAwareImport<>::transfer_type*> newImporters;
  };

  /// That of a communicator with the same ranks; ranks meet them in the same order.
  static Batch& batchOn(std::vector<Batch>& batches, MPI_Comm comm) {
    const auto found = std::find_if(batches.begin(), batches.end(),
                                    [&](const Batch& one) { return Impl::haveTheSameRanks(one.comm, comm); });
    return found != batches.end() ? *found : batches.emplace_back(Batch{comm, {}, {}, {}, {}, {}, {}, {}});
  }

  void plan() {
    std::vector<Batch> batches;
    throwOnAllIfAny(finest_, Impl::errorIn([&] { collect(batches); }));
    std::string error;
    for (Batch& batch : batches) {
      const std::string here = Impl::errorIn([&] { plan(batch); });
      error = error.empty() ? here : error;
    }
    throwOnAllIfAny(finest_, error);
  }

  /// All that is to be exchanged, with the exchanges from before.
  void collect(std::vector<Batch>& batches) {
    for (int level = 0; level < levels_.count(); ++level) {
      for (const char* const name : {"A", "P", "R", "Pbar"}) {
        collect(batches, matrixToReplace(level, name), {level, name});
      }
      for (const char* const name : {"PreSmoother", "PostSmoother"}) {
        if (const MueLuSmoother smoother = levels_.smoother(level, name); !smoother.isOurs) {
          collect(batches, smoother.matrix, {level, "A"});
        }
      }
      levelImporters_.push_back(levels_.importer(level));
      if (const auto& importer = levelImporters_.back(); !importer.is_null()) {
        importers_[importer.get()] = nullptr;
        Batch& batch = batchOn(batches, mpiOf(*importer->getSourceMap()->getComm()));
        batch.importers.push_back(importer);
        batch.exchanges.push_back(saved_ ? found(saved_->importers, level) : nullptr);
      }
    }
    for (Batch& batch : batches) {
      batch.reusable.assign(batch.matrices.size() + batch.importers.size() + 1, 0);
      batch.newMatrices.reserve(batch.matrices.size());
      batch.newImporters.reserve(batch.importers.size());
    }
  }

  void collect(std::vector<Batch>& batches, const RCP<const Matrix>& matrix, const std::pair<int, std::string>& place) {
    if (matrix.is_null() || matrices_.count(matrix.get()) > 0) {
      return;
    }
    RCP<NodeAwareMatrix>& ours = matrices_[matrix.get()];
    originals_.push_back(matrix);  // so that no other gets its address
    ours = Teuchos::rcp_const_cast<NodeAwareMatrix>(rcp_dynamic_cast<const NodeAwareMatrix>(matrix));
    if (ours.is_null()) {
      Batch& batch = batchOn(batches, mpiOf(*matrix->getComm()));
      batch.matrices.push_back(matrix);
      batch.structures.push_back(saved_ ? found(saved_->matrices, place) : nullptr);
    }
  }

  template <class Map>
  static typename Map::mapped_type found(const Map& map, const typename Map::key_type& key) {
    const auto at = map.find(key);
    return at != map.end() ? at->second : nullptr;
  }

  /// Finds out what is reusable on all ranks.
  static void agreeOnReuse(Batch& batch) {
    std::vector<int>& reusable = batch.reusable;
    const std::string error = Impl::errorIn([&] {
      for (std::size_t i = 0; i < batch.matrices.size(); ++i) {
        const auto& structure = batch.structures[i];
        reusable[i] = structure && NodeAwareMatrix::fits(*structure, *batch.matrices[i]) ? 1 : 0;
      }
      for (std::size_t i = 0; i < batch.importers.size(); ++i) {
        const auto& importer = *batch.importers[i];
        const auto& exchange = batch.exchanges[i];
        reusable[batch.matrices.size() + i] =
            exchange && exchange->isBetween(*importer.getSourceMap(), *importer.getTargetMap()) ? 1 : 0;
      }
    });
    reusable.back() = error.empty() ? 1 : 0;
    mpiCheck(
        MPI_Allreduce(MPI_IN_PLACE, reusable.data(), static_cast<int>(reusable.size()), MPI_INT, MPI_MIN, batch.comm),
        "MPI_Allreduce");
    if (reusable.back() == 0) {
      throwOnAllIfAny(batch.comm, error);
    }
  }

  void plan(Batch& batch) {
    agreeOnReuse(batch);
    std::string error;  // thrown when others wait no more
    for (std::size_t i = 0; i < batch.matrices.size(); ++i) {
      const RCP<const Matrix>& matrix = batch.matrices[i];
      if (batch.reusable[i] == 0) {
        batch.newMatrices.push_back(matrix);
        continue;
      }
      const std::string here = Impl::errorIn(
          [&] { matrices_[matrix.get()] = rcp(new NodeAwareMatrix(matrix, *batch.structures[i], overlap_)); });
      error = error.empty() ? here : error;
    }
    for (std::size_t i = 0; i < batch.importers.size(); ++i) {
      if (batch.reusable[batch.matrices.size() + i] == 0) {
        batch.newImporters.push_back(batch.importers[i].get());
      } else {
        importers_[batch.importers[i].get()] = batch.exchanges[i];
      }
    }
    if (!batch.newMatrices.empty()) {
      const auto made = NodeAwareMatrix::several(batch.comm, batch.newMatrices, options_.on(batch.comm));
      for (std::size_t i = 0; i < made.size(); ++i) {
        matrices_[batch.newMatrices[i].get()] = made[i];
      }
    }
    if (!batch.newImporters.empty()) {
      auto exchanges = NodeAwareImport<>::several(batch.comm, batch.newImporters, options_.on(batch.comm));
      for (std::size_t i = 0; i < exchanges.size(); ++i) {
        importers_[batch.newImporters[i]] = std::move(exchanges[i]);
      }
    }
    if (!error.empty()) {
      throw Error(error);
    }
  }

  void replaceMatrix(int level, const std::string& name) {
    const RCP<const Matrix> before = matrixToReplace(level, name);
    if (before.is_null()) {
      if (const auto transfer = replacedTransfer(level, name); !transfer.is_null()) {
        result_.exchanges.push_back({level, name, transfer->matrix(), nullptr});
      }
      return;
    }
    const RCP<NodeAwareMatrix> ours = matrices_.at(before.get());
    if (!levels_.isSet(level, name)) {
      changes_.push_back(levels_.setMatrix(level, name, ours));
    }
    result_.exchanges.push_back({level, name, ours, nullptr});
  }

  /// Of an earlier call; null if there is none.
  RCP<const Impl::RebalancedTransfer> replacedTransfer(int level, const std::string& name) const {
    return rcp_dynamic_cast<const Impl::RebalancedTransfer>(levels_.transfer(level, name));
  }

  void replaceImporter(int level) {
    const RCP<const Tpetra::Import<>>& importer = levelImporters_[level];
    if (importer.is_null()) {
      if (const auto transfer = replacedTransfer(level, "P"); !transfer.is_null()) {
        result_.exchanges.push_back({level, "Importer", Teuchos::null, transfer->exchange()});
      }
      return;
    }
    const std::shared_ptr<const NodeAwareImport<>> exchange = importers_.at(importer.get());
    for (const char* const name : {"P", "R", "Pbar"}) {
      if (const RCP<const Matrix> before = matrixToReplace(level, name); !before.is_null()) {
        const bool restricts = name[0] == 'R';
        const auto transfer = rcp(new Impl::RebalancedTransfer(matrices_.at(before.get()), exchange, restricts));
        changes_.push_back(levels_.setTransfer(level, name, transfer));
      }
    }
    changes_.push_back(levels_.removeImporter(level));
    mapsChanged_ = true;
    result_.exchanges.push_back({level, "Importer", Teuchos::null, exchange});
  }

  void replaceSmoother(int level, const std::string& name) {
    const MueLuSmoother before = levels_.smoother(level, name);
    if (before.identity == nullptr || before.isOurs) {
      return;
    }
    const auto [known, isNew] = smoothers_.try_emplace(before.identity);
    if (isNew && before.matrix.is_null()) {
      known->second.whyKept = before.type + " is none of Ifpack2's smoothers with a CrsMatrix";
    } else if (isNew) {
      known->second = Impl::replaceSmoother(before, matrices_.at(before.matrix.get()));
    }
    if (const auto smoother = known->second.smoother) {
      changes_.push_back(levels_.setSmoother(level, name, smoother));
    }
    if (isNew && !known->second.whyKept.empty()) {
      result_.kept.push_back("level " + std::to_string(level) + ", " + name + ": " + known->second.whyKept);
    }
  }

  MueLuLevels levels_;
  MPI_Comm finest_;
  Impl::LevelOptions options_;
  std::optional<Overlap> overlap_;
  std::shared_ptr<TuningCache> record_;
  std::shared_ptr<const SavedExchanges> saved_;  // null if nothing can be reused
  NodeAwareHierarchy result_;
  std::vector<MueLuLevels::Change> changes_;  // of the hierarchy, in this order
  bool mapsChanged_ = false;
  RCP<Tpetra::MultiVector<>> spared_;  // memory for the largest vector of a cycle
  std::map<const Matrix*, RCP<NodeAwareMatrix>> matrices_;
  std::vector<RCP<const Matrix>> originals_;
  std::vector<RCP<const Tpetra::Import<>>> levelImporters_;
  std::map<const void*, std::shared_ptr<const NodeAwareImport<>>> importers_;
  std::map<const void*, Impl::SmootherReplacement> smoothers_;  // of one level
};

}  // namespace

NodeAwareHierarchy makeNodeAware(Impl::MueLuHierarchy& hierarchy, const ExchangeOptions& options) {
  MueLuLevels levels(hierarchy);
  const RCP<const Matrix> finest = levels.matrix(0, "A");
  if (finest.is_null()) {
    throw BadInput("makeNodeAware: the hierarchy has no Tpetra::CrsMatrix on its finest level");
  }
  const MPI_Comm comm = mpiOf(*finest->getComm());
  NodeAwareHierarchy result;
  std::string error;
  try {
    result = HierarchyWalk(levels, comm, options).run();
  } catch (...) {
    error = Impl::textOf(std::current_exception());
  }
  throwOnAllIfAny(comm, error);
  return result;
}

NodeAwareHierarchy makeNodeAware(
    MueLu::TpetraOperator<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>& preconditioner,
    const ExchangeOptions& options) {
  const RCP<Impl::MueLuHierarchy> hierarchy = preconditioner.GetHierarchy();
  if (hierarchy.is_null()) {
    throw BadInput("makeNodeAware: the preconditioner has no hierarchy");
  }
  return makeNodeAware(*hierarchy, options);
}

}  // namespace Komvos
