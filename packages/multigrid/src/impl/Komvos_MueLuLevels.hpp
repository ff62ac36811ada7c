/// \file Komvos_MueLuLevels.hpp
/// The levels of a MueLu hierarchy, in Tpetra's terms. All that knows Xpetra, which Trilinos wants to remove, is in the
/// .cpp file.
#pragma once

#include <Ifpack2_Preconditioner.hpp>
#include <MueLu_Hierarchy_fwd.hpp>
#include <Teuchos_ParameterList.hpp>
#include <Teuchos_RCP.hpp>
#include <Tpetra_CrsMatrix.hpp>
#include <Tpetra_Import.hpp>
#include <Tpetra_MultiVector.hpp>
#include <Tpetra_Operator.hpp>
#include <functional>
#include <memory>
#include <string>

#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "Komvos_TpetraShim.hpp"

namespace Komvos::Impl {

using MueLuHierarchy = MueLu::Hierarchy<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;
using Ifpack2Preconditioner =
    Ifpack2::Preconditioner<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode>;

/// Improves x in A x = b.
class LevelSmoother {
 public:
  virtual ~LevelSmoother() = default;
  /// \param zeroGuess x counts as 0, whatever it holds
  virtual void apply(Tpetra::MultiVector<>& x, const Tpetra::MultiVector<>& b, bool zeroGuess) const = 0;
  /// Entries that one apply reads, as MueLu reports them.
  virtual std::size_t complexity() const = 0;
  virtual std::string description() const { return "Komvos' smoother"; }
};

/// A smoother as MueLu made it.
struct MueLuSmoother {
  const void* identity = nullptr;  ///< the same for levels' entries that share it; null if there is none
  bool isOurs = false;             ///< setSmoother() put it there
  std::string type;                ///< of MueLu's object, for people
  std::size_t complexity = 0;
  Teuchos::RCP<Ifpack2Preconditioner> ifpack2;  ///< null if it is none of Ifpack2's
  Teuchos::ParameterList parameters;            ///< of Ifpack2's
  /// Of Ifpack2's; null if it is no CrsMatrix. In a hierarchy that is reused it may be an older one than the level's.
  Teuchos::RCP<const Tpetra::CrsMatrix<>> matrix;
};

/// Gets and replaces what a hierarchy keeps on its levels, by MueLu's names: "A", "P", "R", "PreSmoother" and so on.
/// Where rebalancing left a rank without a part of a level, there is nothing on it.
///
/// Where a matrix, a transfer or a smoother that was set throws on a rank in a cycle of several, the reason goes to
/// stderr and the rank's result becomes NaN, so that no other rank waits for it.
///
/// What replaces something is made at once, and the hierarchy changes when the Change that is returned is called: once
/// all ranks have what they need for theirs.
class MueLuLevels {
 public:
  using Change = std::function<void()>;

  explicit MueLuLevels(MueLuHierarchy& hierarchy) : hierarchy_(hierarchy) {}

  int count() const;

  /// Null if there is none, or if it is no Tpetra::CrsMatrix.
  Teuchos::RCP<const Tpetra::CrsMatrix<>> matrix(int level, const std::string& name) const;
  /// What residuals of the cycle are computed by, too. Keeps what MueLu knows about the matrix beside its entries.
  [[nodiscard]] Change setMatrix(int level, const std::string& name, const Teuchos::RCP<NodeAwareCrsMatrix<>>& matrix);
  /// Whether setMatrix() put this one there.
  bool isSet(int level, const std::string& name) const;

  /// What carries right-hand sides to the ranks of this level, solutions back, where P and R end on others. Null
  /// otherwise.
  /// \note Collective on the next finer level.
  Teuchos::RCP<const Tpetra::Import<>> importer(int level) const;
  /// P and R that end on the ranks of this level, in the place of those that do not, and of the importer.
  [[nodiscard]] Change setTransfer(int level, const std::string& name,
                                   const Teuchos::RCP<const Tpetra::Operator<>>& transfer);
  /// That of setTransfer(); null if it was not called for this one.
  Teuchos::RCP<const Tpetra::Operator<>> transfer(int level, const std::string& name) const;
  [[nodiscard]] Change removeImporter(int level);

  MueLuSmoother smoother(int level, const std::string& name) const;
  [[nodiscard]] Change setSmoother(int level, const std::string& name,
                                   const std::shared_ptr<const LevelSmoother>& smoother);
  [[nodiscard]] Change removeSmoother(int level, const std::string& name);

  /// One of those that renewVectors() makes, the largest.
  Teuchos::RCP<Tpetra::MultiVector<>> vectorOfFinestLevel() const;
  /// Vectors that MueLu keeps for cycles: needed after maps have changed. \note Collective.
  /// \param spared is freed first, so that there is memory for one. With too little for the others MueLu makes these in
  /// the next cycle; without the first one, the hierarchy cannot be used any more.
  void renewVectors(Teuchos::RCP<Tpetra::MultiVector<>> spared);

  /// Saves something with the finest level, where it outlives that a hierarchy is set up again.
  [[nodiscard]] Change saveForReuse(std::shared_ptr<const void> ours);
  /// What was saved last; null if nothing.
  std::shared_ptr<const void> savedForReuse() const;

 private:
  MueLuHierarchy& hierarchy_;
};

}  // namespace Komvos::Impl
