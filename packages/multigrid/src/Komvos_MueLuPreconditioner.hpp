/// \file Komvos_MueLuPreconditioner.hpp
/// A MueLu preconditioner whose coarsest level is solved by CoarseSolver.
#pragma once

#include <Teuchos_ParameterList.hpp>
#include <Tpetra_CrsMatrix.hpp>
#include <Tpetra_MultiVector.hpp>
#include <Tpetra_Operator.hpp>
#include <functional>
#include <string>

#include "Komvos_ExchangeOptions.hpp"
#include "Komvos_TpetraShim.hpp"

namespace Komvos {

/// One operator of a hierarchy: level 0 is the finest; name is "A", "P" or "R".
using LevelOperatorVisitor = std::function<void(int level, const std::string& name, const Tpetra::CrsMatrix<>& matrix)>;

/// As MueLu::CreateTpetraPreconditioner. Unless `parameters` name a "coarse: type" other than KLU2, the coarsest level
/// is solved by Komvos' CoarseSolver (Debian 12's KLU2 is wrong on two ranks and more). MueLu prints nothing unless
/// `parameters` set a "verbosity".
/// \param nullspace   near null space, one column a mode (rigid body modes for elasticity); may be null
/// \param coordinates of the nodes, for repartitioning; may be null
/// \param visit       called for every level's operators once the hierarchy stands, if given
/// \note Collective on the matrix' communicator.
/// \throws BadInput on all ranks if the coarsest matrix is singular, also on those that have no part of it after
/// rebalancing; whatever MueLu throws
Teuchos::RCP<Tpetra::Operator<>> createMueLuPreconditioner(const Teuchos::RCP<Tpetra::CrsMatrix<>>& matrix,
                                                           const Teuchos::ParameterList& parameters,
                                                           const Teuchos::RCP<Tpetra::MultiVector<>>& nullspace = {},
                                                           const Teuchos::RCP<Tpetra::MultiVector<>>& coordinates = {},
                                                           const LevelOperatorVisitor& visit = {},
                                                           const ExchangeOptions& options = {});

}  // namespace Komvos
