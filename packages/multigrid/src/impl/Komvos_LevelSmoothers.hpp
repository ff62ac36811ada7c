/// \file Komvos_LevelSmoothers.hpp
/// Smoothers of Ifpack2 whose products exchange along node-aware routes.
#pragma once

#include <Teuchos_RCP.hpp>
#include <memory>
#include <string>

#include "Komvos_MueLuLevels.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"

namespace Komvos::Impl {

/// What to put in the place of a smoother.
struct SmootherReplacement {
  std::shared_ptr<const LevelSmoother> smoother;  ///< null if it stays
  std::string whyKept;                            ///< why it exchanges as before; empty if it does not
};

/// \param before one of Ifpack2's, not ours \param A its matrix \throws whatever Ifpack2 throws
SmootherReplacement replaceSmoother(const MueLuSmoother& before, const Teuchos::RCP<const NodeAwareCrsMatrix<>>& A);

}  // namespace Komvos::Impl
