#include "Komvos_MueLuLevels.hpp"

#include <MueLu_Hierarchy.hpp>
#include <MueLu_Ifpack2Smoother.hpp>
#include <MueLu_Level.hpp>
#include <MueLu_SmootherBase.hpp>
#include <MueLu_TrilinosSmoother.hpp>
#include <Teuchos_CommHelpers.hpp>
#include <Xpetra_CrsMatrixWrap.hpp>
#include <Xpetra_TpetraCrsMatrix.hpp>
#include <Xpetra_TpetraImport.hpp>
#include <Xpetra_TpetraMap.hpp>
#include <Xpetra_TpetraMultiVector.hpp>
#include <exception>
#include <iostream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

// How this works. A level is a table of named entries, each of one type, mostly of an Xpetra base class: an operator is
// an RCP<Xpetra::Matrix>, or an RCP<Xpetra::Operator> where rebalancing may leave ranks without one. Get() of the base
// class finds both; Set() must use the type that is there, or factories that read the entry throw.
//
// MueLu takes residuals by Xpetra::TpetraCrsMatrix, and that by a function of Tpetra that imports ghosts itself:
// LevelMatrix overrides it.
namespace Komvos::Impl {

namespace {

using SC = DefaultScalar;
using LO = DefaultLocalOrdinal;
using GO = DefaultGlobalOrdinal;
using NO = DefaultNode;
using Teuchos::RCP;
using Teuchos::rcp;
using Teuchos::rcp_dynamic_cast;
using XpetraMatrix = Xpetra::Matrix<SC, LO, GO, NO>;
using XpetraCrsMatrix = Xpetra::CrsMatrix<SC, LO, GO, NO>;
using XpetraTpetraCrsMatrix = Xpetra::TpetraCrsMatrix<SC, LO, GO, NO>;
using XpetraCrsMatrixWrap = Xpetra::CrsMatrixWrap<SC, LO, GO, NO>;
using XpetraOperator = Xpetra::Operator<SC, LO, GO, NO>;
using XpetraVectors = Xpetra::MultiVector<SC, LO, GO, NO>;
using XpetraImport = Xpetra::Import<LO, GO, NO>;
using Smoother = MueLu::SmootherBase<SC, LO, GO, NO>;
using Ifpack2Smoother = MueLu::Ifpack2Smoother<SC, LO, GO, NO>;
using TrilinosSmoother = MueLu::TrilinosSmoother<SC, LO, GO, NO>;

/// What replaces MueLu's objects on a level.
///
/// What fails on one rank need not fail on the others, which an exception would leave waiting in the V-cycle. So the
/// reason goes to stderr, and the result of this rank is NaN, which a solver's next norm shows to all.
class PlaceInCycle {
 public:
  /// \param isAlone the finest level has one rank
  PlaceInCycle(int level, bool isAlone) : level_(level), isAlone_(isAlone) {}
  template <class Work>
  void run(const char* what, Tpetra::MultiVector<>& result, const Work& work) const {
    try {
      work();
    } catch (const std::exception& error) {
      if (isAlone_) {
        throw;
      }
      result.putScalar(std::numeric_limits<SC>::quiet_NaN());
      try {
        std::cerr << "komvos: no " + std::string(what) + " on level " + std::to_string(level_) +
                         " of the hierarchy: " + error.what() + "\n"
                  << std::flush;
      } catch (const std::exception&) {  // no memory for the text
      }
    }
  }

 private:
  int level_;
  bool isAlone_;
};

/// A matrix of ours where MueLu expects one of Xpetra's.
class LevelMatrix : public XpetraTpetraCrsMatrix {
 public:
  LevelMatrix(const RCP<NodeAwareCrsMatrix<>>& matrix, PlaceInCycle place)
      : XpetraTpetraCrsMatrix(RCP<Tpetra::CrsMatrix<>>(matrix)), matrix_(matrix), place_(place) {}
  using XpetraTpetraCrsMatrix::apply;
  void apply(const XpetraVectors& x, XpetraVectors& y, Teuchos::ETransp mode, DefaultScalar alpha,
             DefaultScalar beta) const override {
    auto& result = Xpetra::toTpetra(y);
    place_.run("product", result, [&] { matrix_->apply(Xpetra::toTpetra(x), result, mode, alpha, beta); });
  }
  void residual(const XpetraVectors& x, const XpetraVectors& b, XpetraVectors& r) const override {
    auto& result = Xpetra::toTpetra(r);
    place_.run("residual", result, [&] { matrix_->residual(Xpetra::toTpetra(x), Xpetra::toTpetra(b), result); });
  }

 private:
  RCP<NodeAwareCrsMatrix<>> matrix_;
  PlaceInCycle place_;
};

/// An operator of Tpetra's where MueLu expects one of Xpetra's.
class LevelOperatorWrap : public XpetraOperator {
 public:
  LevelOperatorWrap(RCP<const Tpetra::Operator<>> op, PlaceInCycle place) : op_(std::move(op)), place_(place) {}
  const RCP<const Tpetra::Operator<>>& wrapped() const { return op_; }
  /// An RCP<const Map>, and const itself from Trilinos 16 on.
  using MapPointer = decltype(std::declval<const XpetraOperator&>().getDomainMap());
  MapPointer getDomainMap() const override { return Xpetra::toXpetra(op_->getDomainMap()); }
  MapPointer getRangeMap() const override { return Xpetra::toXpetra(op_->getRangeMap()); }
  bool hasTransposeApply() const override { return op_->hasTransposeApply(); }
  void apply(const XpetraVectors& x, XpetraVectors& y, Teuchos::ETransp mode, SC alpha, SC beta) const override {
    auto& result = Xpetra::toTpetra(y);
    place_.run("transfer", result, [&] { op_->apply(Xpetra::toTpetra(x), result, mode, alpha, beta); });
  }
  void residual(const XpetraVectors& x, const XpetraVectors& b, XpetraVectors& r) const override {
    r.update(Teuchos::ScalarTraits<SC>::one(), b, Teuchos::ScalarTraits<SC>::zero());
    apply(x, r, Teuchos::NO_TRANS, -Teuchos::ScalarTraits<SC>::one(), Teuchos::ScalarTraits<SC>::one());
  }

 private:
  RCP<const Tpetra::Operator<>> op_;
  PlaceInCycle place_;
};

/// A smoother of ours where MueLu expects one of its own.
class LevelSmootherWrap : public Smoother {
 public:
  LevelSmootherWrap(std::shared_ptr<const LevelSmoother> smoother, PlaceInCycle place)
      : smoother_(std::move(smoother)), place_(place) {}
  void Apply(XpetraVectors& x, const XpetraVectors& b, bool zeroGuess) const override {
    auto& result = Xpetra::toTpetra(x);
    place_.run("solution", result, [&] { smoother_->apply(result, Xpetra::toTpetra(b), zeroGuess); });
  }
  size_t getNodeSmootherComplexity() const override { return smoother_->complexity(); }
  std::string description() const override { return smoother_->description(); }

 private:
  std::shared_ptr<const LevelSmoother> smoother_;
  PlaceInCycle place_;
};

RCP<MueLu::Level> levelOf(MueLuHierarchy& hierarchy, int level) { return hierarchy.GetLevel(level); }

RCP<XpetraOperator> operatorOf(MueLu::Level& level, const std::string& name) {
  return level.IsAvailable(name) ? level.Get<RCP<XpetraOperator>>(name) : RCP<XpetraOperator>();
}

/// The Xpetra matrix with Tpetra's inside; null if it is none.
RCP<const XpetraTpetraCrsMatrix> crsMatrixOf(MueLu::Level& level, const std::string& name) {
  const auto wrapped = rcp_dynamic_cast<XpetraCrsMatrixWrap>(operatorOf(level, name));
  return wrapped.is_null() ? RCP<const XpetraTpetraCrsMatrix>()
                           : rcp_dynamic_cast<const XpetraTpetraCrsMatrix>(wrapped->getCrsMatrix());
}

RCP<Smoother> smootherOf(MueLu::Level& level, const std::string& name) {
  return level.IsAvailable(name) ? level.Get<RCP<Smoother>>(name) : RCP<Smoother>();
}

const std::string removedImporter = "Komvos: Importer";
const std::string savedExchanges = "Komvos: exchanges";

RCP<const XpetraImport> importerOf(MueLu::Level& level, const std::string& name) {
  return level.IsAvailable(name) ? level.Get<RCP<const XpetraImport>>(name) : RCP<const XpetraImport>();
}

/// Whether the rows of A are where the importer ends, on all ranks. \note Collective on `comm`.
bool endsAtMatrix(const XpetraImport& importer, MueLu::Level& level, const Teuchos::Comm<int>& comm) {
  const auto A = crsMatrixOf(level, "A");
  const auto target = Xpetra::toTpetra(importer.getTargetMap());
  const int fits =
      A.is_null() ? localLength(*target) == 0 : A->getTpetra_CrsMatrix()->getRowMap()->locallySameAs(*target);
  int all = 0;
  Teuchos::reduceAll(comm, Teuchos::REDUCE_MIN, 1, &fits, &all);
  return all == 1;
}

/// Replaces or adds an entry as one that MueLu has made itself: what a user sets is not made again when a hierarchy is
/// reused.
template <class Entry>
MueLuLevels::Change put(const RCP<MueLu::Level>& level, const std::string& name, const Entry& entry) {
  return [level, name, entry] {
    const MueLu::FactoryBase* const made = MueLu::NoFactory::get();
    const bool isUsers = level->IsAvailable(name) && (level->GetKeepFlag(name, made) & MueLu::UserData) != 0;
    level->Set<Entry>(name, entry);
    if (!isUsers) {
      level->AddKeepFlag(name, made, MueLu::Final);
      level->RemoveKeepFlag(name, made, MueLu::UserData);
    }
  };
}

PlaceInCycle placeOf(MueLuHierarchy& hierarchy, int level) {
  const auto finest = operatorOf(*levelOf(hierarchy, 0), "A");
  return {level, !finest.is_null() && finest->getDomainMap()->getComm()->getSize() == 1};
}

/// MueLu's own factories: Ifpack2 refuses them, MueLu takes them out of the list before.
void removeFactories(Teuchos::ParameterList& parameters) {
  std::vector<std::string> names;
  for (auto entry = parameters.begin(); entry != parameters.end(); ++entry) {
    const std::string& name = parameters.name(entry);
    if (parameters.isType<RCP<const MueLu::FactoryBase>>(name) || parameters.isType<RCP<MueLu::FactoryBase>>(name)) {
      names.push_back(name);
    }
  }
  for (const std::string& name : names) {
    parameters.remove(name);
  }
}

bool holdsMatrix(MueLu::Level& level, const std::string& name) {
  return level.GetTypeName(name).find("Xpetra::Matrix<") != std::string::npos;
}

}  // namespace

int MueLuLevels::count() const { return hierarchy_.GetNumLevels(); }

RCP<const Tpetra::CrsMatrix<>> MueLuLevels::matrix(int level, const std::string& name) const {
  const auto matrix = crsMatrixOf(*levelOf(hierarchy_, level), name);
  return matrix.is_null() ? RCP<const Tpetra::CrsMatrix<>>() : matrix->getTpetra_CrsMatrix();
}

bool MueLuLevels::isSet(int level, const std::string& name) const {
  return !rcp_dynamic_cast<const LevelMatrix>(crsMatrixOf(*levelOf(hierarchy_, level), name)).is_null();
}

MueLuLevels::Change MueLuLevels::setMatrix(int level, const std::string& name,
                                           const RCP<NodeAwareCrsMatrix<>>& matrix) {
  const RCP<MueLu::Level> entries = levelOf(hierarchy_, level);
  const RCP<XpetraMatrix> wrapped =
      rcp(new XpetraCrsMatrixWrap(RCP<XpetraCrsMatrix>(rcp(new LevelMatrix(matrix, placeOf(hierarchy_, level))))));
  if (const auto before = rcp_dynamic_cast<XpetraMatrix>(operatorOf(*entries, name)); !before.is_null()) {
    if (before->IsView("stridedMaps")) {
      wrapped->CreateView("stridedMaps", before);
    }
    wrapped->SetMaxEigenvalueEstimate(before->GetMaxEigenvalueEstimate());
  }
  if (holdsMatrix(*entries, name)) {
    return put<RCP<XpetraMatrix>>(entries, name, wrapped);
  }
  return put<RCP<XpetraOperator>>(entries, name, wrapped);
}

RCP<const Tpetra::Import<>> MueLuLevels::importer(int level) const {
  MueLu::Level& entries = *levelOf(hierarchy_, level);
  const RCP<XpetraOperator> P = operatorOf(entries, "P");
  if (P.is_null()) {
    return {};
  }
  RCP<const XpetraImport> importer = importerOf(entries, "Importer");
  if (importer.is_null()) {
    // Where "reuse: type" keeps maps and values alone are new, MueLu makes P and R again, which end on the maps before
    // rebalancing, but not the importer.
    importer = importerOf(entries, removedImporter);
    if (importer.is_null() || !importer->getSourceMap()->isSameAs(*P->getDomainMap()) ||
        !endsAtMatrix(*importer, entries, *P->getDomainMap()->getComm())) {
      return {};
    }
  }
  if (importer->getTargetMap()->isSameAs(*P->getDomainMap())) {
    return {};
  }
  return rcp_dynamic_cast<const Xpetra::TpetraImport<LO, GO, NO>>(importer, true)->getTpetra_Import();
}

MueLuLevels::Change MueLuLevels::setTransfer(int level, const std::string& name,
                                             const RCP<const Tpetra::Operator<>>& transfer) {
  return put<RCP<XpetraOperator>>(levelOf(hierarchy_, level), name,
                                  rcp(new LevelOperatorWrap(transfer, placeOf(hierarchy_, level))));
}

RCP<const Tpetra::Operator<>> MueLuLevels::transfer(int level, const std::string& name) const {
  const auto wrap = rcp_dynamic_cast<const LevelOperatorWrap>(operatorOf(*levelOf(hierarchy_, level), name));
  return wrap.is_null() ? RCP<const Tpetra::Operator<>>() : wrap->wrapped();
}

MueLuLevels::Change MueLuLevels::removeImporter(int level) {
  const RCP<MueLu::Level> entries = levelOf(hierarchy_, level);
  const RCP<const XpetraImport> importer = importerOf(*entries, "Importer");
  if (importer.is_null()) {
    return [] {};
  }
  return [entries, importer, remove = put<RCP<const XpetraImport>>(entries, "Importer", Teuchos::null)] {
    // As a user's entry: these outlive the set-up of a hierarchy that is reused.
    entries->Set(removedImporter, importer);
    remove();
  };
}

MueLuSmoother MueLuLevels::smoother(int level, const std::string& name) const {
  const RCP<Smoother> found = smootherOf(*levelOf(hierarchy_, level), name);
  MueLuSmoother result;
  if (found.is_null()) {
    return result;
  }
  result.identity = found.get();
  result.isOurs = !rcp_dynamic_cast<LevelSmootherWrap>(found).is_null();
  result.type = found->description();
  result.complexity = found->getNodeSmootherComplexity();
  const auto either = rcp_dynamic_cast<TrilinosSmoother>(found);  // Ifpack's or Ifpack2's
  const auto ifpack2 =
      rcp_dynamic_cast<Ifpack2Smoother>(either.is_null() ? found : RCP<Smoother>(either->getSmoother()));
  if (!ifpack2.is_null()) {
    result.ifpack2 = ifpack2->getPreconditioner();
    result.parameters = ifpack2->GetParameterList();
    removeFactories(result.parameters);
    result.matrix = rcp_dynamic_cast<const Tpetra::CrsMatrix<>>(result.ifpack2->getMatrix());
  }
  return result;
}

MueLuLevels::Change MueLuLevels::setSmoother(int level, const std::string& name,
                                             const std::shared_ptr<const LevelSmoother>& smoother) {
  return put<RCP<Smoother>>(levelOf(hierarchy_, level), name,
                            rcp(new LevelSmootherWrap(smoother, placeOf(hierarchy_, level))));
}

MueLuLevels::Change MueLuLevels::removeSmoother(int level, const std::string& name) {
  return [entries = levelOf(hierarchy_, level), name] {
    if (entries->IsAvailable(name)) {
      entries->Delete(name, MueLu::NoFactory::get());
    }
  };
}

// As a user's entry, which MueLu does not remove.
MueLuLevels::Change MueLuLevels::saveForReuse(std::shared_ptr<const void> ours) {
  return [entries = levelOf(hierarchy_, 0), ours = std::move(ours)] { entries->Set(savedExchanges, ours); };
}

std::shared_ptr<const void> MueLuLevels::savedForReuse() const {
  MueLu::Level& entries = *levelOf(hierarchy_, 0);
  return entries.IsAvailable(savedExchanges) ? entries.Get<std::shared_ptr<const void>>(savedExchanges) : nullptr;
}

RCP<Tpetra::MultiVector<>> MueLuLevels::vectorOfFinestLevel() const {
  return rcp(new Tpetra::MultiVector<>(matrix(0, "A")->getRangeMap(), 1));
}

// With none at all MueLu could not set up the hierarchy again. A cycle makes those that are missing, but looks at the
// first one, which is made first, without asking whether it is there.
void MueLuLevels::renewVectors(RCP<Tpetra::MultiVector<>> spared) {
  hierarchy_.DeleteLevelMultiVectors();
  spared = Teuchos::null;
  try {
    hierarchy_.AllocateLevelMultiVectors(1);
  } catch (const std::exception&) {
    hierarchy_.AllocateLevelMultiVectors(1);  // those that are still missing
  }
}

}  // namespace Komvos::Impl
