#include "Komvos_NodeAwareHierarchy.hpp"

#include <MueLu_Hierarchy.hpp>
#include <MueLu_TpetraOperator.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <algorithm>
#include <exception>
#include <functional>
#include <map>
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

/// Walks a hierarchy, and keeps what it has made.
class HierarchyWalk {
 public:
  HierarchyWalk(MueLuLevels levels, MPI_Comm finest, const ExchangeOptions& options)
      : levels_(levels), finest_(finest), options_(finest, options) {}

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

  /// What is planned together.
  struct Batch {
    MPI_Comm comm;
    std::vector<RCP<const Matrix>> matrices;
    std::vector<RCP<const Tpetra::Import<>>> importers;
  };

  /// That of a communicator with the same ranks; ranks meet them in the same order.
  static Batch& batchOn(std::vector<Batch>& batches, MPI_Comm comm) {
    const auto found = std::find_if(batches.begin(), batches.end(),
                                    [&](const Batch& one) { return Impl::haveTheSameRanks(one.comm, comm); });
    return found != batches.end() ? *found : batches.emplace_back(Batch{comm, {}, {}});
  }

  void plan() {
    std::vector<Batch> batches;
    for (int level = 0; level < levels_.count(); ++level) {
      std::vector<RCP<const Matrix>> found;
      for (const char* const name : {"A", "P", "R", "Pbar"}) {
        found.push_back(matrixToReplace(level, name));
      }
      for (const char* const name : {"PreSmoother", "PostSmoother"}) {
        const MueLuSmoother smoother = levels_.smoother(level, name);
        found.push_back(smoother.isOurs ? Teuchos::null : smoother.matrix);
      }
      for (const RCP<const Matrix>& matrix : found) {
        if (!matrix.is_null() && matrices_.count(matrix.get()) == 0) {
          RCP<NodeAwareMatrix>& ours = matrices_[matrix.get()];
          originals_.push_back(matrix);  // so that no other gets its address
          ours = Teuchos::rcp_const_cast<NodeAwareMatrix>(rcp_dynamic_cast<const NodeAwareMatrix>(matrix));
          if (ours.is_null()) {
            batchOn(batches, mpiOf(*matrix->getComm())).matrices.push_back(matrix);
          }
        }
      }
      levelImporters_.push_back(levels_.importer(level));
      if (const auto& importer = levelImporters_.back(); !importer.is_null()) {
        batchOn(batches, mpiOf(*importer->getSourceMap()->getComm())).importers.push_back(importer);
      }
    }
    std::string error;
    for (const Batch& batch : batches) {
      const std::string here = Impl::errorIn([&] { plan(batch); });
      error = error.empty() ? here : error;
    }
    throwOnAllIfAny(finest_, error);
  }

  void plan(const Batch& batch) {
    const ExchangeOptions& options = options_.on(batch.comm);
    const std::vector<RCP<NodeAwareMatrix>> made = NodeAwareMatrix::several(batch.comm, batch.matrices, options);
    for (std::size_t i = 0; i < made.size(); ++i) {
      matrices_[batch.matrices[i].get()] = made[i];
    }
    std::vector<const NodeAwareImport<>::transfer_type*> transfers;
    for (const auto& importer : batch.importers) {
      transfers.push_back(importer.get());
    }
    if (!transfers.empty()) {
      auto exchanges = NodeAwareImport<>::several(batch.comm, transfers, options);
      for (std::size_t i = 0; i < exchanges.size(); ++i) {
        importers_[transfers[i]] = std::move(exchanges[i]);
      }
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
