#include "Komvos_NodeAwareHierarchy.hpp"

#include <MueLu_Hierarchy.hpp>
#include <MueLu_TpetraOperator.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <map>
#include <utility>

#include "Komvos_Error.hpp"
#include "Komvos_LevelOptions.hpp"
#include "Komvos_LevelSmoothers.hpp"
#include "Komvos_MueLuLevels.hpp"
#include "Komvos_RebalancedTransfer.hpp"

// How this works. Level by level, from the finest: matrices are replaced by node-aware ones, then P and R with an
// importer by RebalancedTransfer, then smoothers. Each exchange is set up on the ranks of its level, with options for
// these; ranks that rebalancing left without a part of a level have no part in it. Whatever a rank throws is kept until
// all have come to the end, where all throw.
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
      : levels_(levels), options_(finest, options) {}

  NodeAwareHierarchy run() {
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
      levels_.renewVectors();
    }
    return std::move(result_);
  }

 private:
  /// A solver on the coarsest level has a copy of the matrix; nobody multiplies with it.
  bool isSolved(int level) const {
    const MueLuSmoother smoother = levels_.smoother(level, "PreSmoother");
    return level > 0 && level == levels_.count() - 1 && smoother.identity != nullptr && smoother.ifpack2.is_null();
  }

  void replaceMatrix(int level, const std::string& name) {
    const RCP<const Matrix> before = levels_.matrix(level, name);
    const bool isUnused = name == "A" && isSolved(level) && !levels_.isSet(level, name);
    if (before.is_null() || isUnused) {
      return;
    }
    const RCP<NodeAwareMatrix> ours = nodeAware(before);
    if (!levels_.isSet(level, name)) {
      levels_.setMatrix(level, name, ours);
    }
    result_.exchanges.push_back({level, name, ours, nullptr});
  }

  /// One for each matrix, wherever it stands.
  RCP<NodeAwareMatrix> nodeAware(const RCP<const Matrix>& before) {
    RCP<NodeAwareMatrix>& ours = matrices_[before.get()];
    if (ours.is_null()) {
      ours = Teuchos::rcp_const_cast<NodeAwareMatrix>(rcp_dynamic_cast<const NodeAwareMatrix>(before));
      originals_.push_back(before);  // so that no other gets its address
    }
    if (ours.is_null()) {
      ours = makeNodeAware(before, options_.on(mpiOf(*before->getComm())));
    }
    return ours;
  }

  void replaceImporter(int level) {
    const RCP<const Tpetra::Import<>> importer = levels_.importer(level);
    if (importer.is_null()) {
      return;
    }
    const auto exchange =
        std::make_shared<const NodeAwareImport<>>(*importer, options_.on(mpiOf(*importer->getSourceMap()->getComm())));
    for (const char* const name : {"P", "R", "Pbar"}) {
      const RCP<const Matrix> matrix = levels_.matrix(level, name);
      if (!matrix.is_null()) {
        const bool restricts = name[0] == 'R';
        levels_.setTransfer(level, name, rcp(new Impl::RebalancedTransfer(matrix, exchange, restricts)));
      }
    }
    levels_.removeImporter(level);
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
      known->second = Impl::replaceSmoother(before, nodeAware(before.matrix));
    }
    if (known->second.smoother) {
      levels_.setSmoother(level, name, known->second.smoother);
    }
    if (isNew && !known->second.whyKept.empty()) {
      result_.kept.push_back("level " + std::to_string(level) + ", " + name + ": " + known->second.whyKept);
    }
  }

  MueLuLevels levels_;
  Impl::LevelOptions options_;
  NodeAwareHierarchy result_;
  bool mapsChanged_ = false;
  std::map<const Matrix*, RCP<NodeAwareMatrix>> matrices_;
  std::vector<RCP<const Matrix>> originals_;
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
  } catch (const std::exception& thrown) {
    error = thrown.what();
  }
  throwOnAllIfAny(comm, error);
  return result;
}

NodeAwareHierarchy makeNodeAware(
    MueLu::TpetraOperator<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>& preconditioner,
    const ExchangeOptions& options) {
  return makeNodeAware(*preconditioner.GetHierarchy(), options);
}

}  // namespace Komvos
