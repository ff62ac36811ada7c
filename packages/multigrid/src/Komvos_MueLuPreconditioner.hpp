/// \file Komvos_MueLuPreconditioner.hpp
/// A MueLu preconditioner whose coarsest level is solved by CoarseSolver, and whose exchanges are node-aware if asked.
#pragma once

#include <Teuchos_ParameterList.hpp>
#include <Tpetra_CrsMatrix.hpp>
#include <Tpetra_MultiVector.hpp>
#include <Tpetra_Operator.hpp>
#include <functional>
#include <string>

#include "Komvos_ExchangeOptions.hpp"
#include "Komvos_NodeAwareHierarchy.hpp"
#include "Komvos_TpetraShim.hpp"

namespace Komvos {

/// One operator of a hierarchy: level 0 is the finest; name is "A", "P" or "R".
using LevelOperatorVisitor = std::function<void(int level, const std::string& name, const Tpetra::CrsMatrix<>& matrix)>;

/// As MueLu::CreateTpetraPreconditioner, also for ML's syntax. MueLu prints nothing unless `parameters` set a
/// "verbosity".
///
/// What solves on the coarsest level: MueLu's own if `parameters` have "coarse: params", a sublist "Hierarchy", a list
/// for that level with such entries, or a "coarse: type" that is a smoother, or a direct solver that Amesos2 has. MUMPS
/// and SuperLU_DIST that it has not are DirectSolver, if Komvos has them. Otherwise CoarseSolver, also in the place of
/// KLU2 (Debian 12's is wrong on two ranks and more); where a solver was named that nobody has, rank 0 says so on
/// stderr.
///
/// Entries of ours in the parameter list, or in an XML file, also one that "xml parameter file" names:
/// - "use node-aware": true lets all exchanges of a cycle be node-aware, by makeNodeAware(). Default: false. Unless
/// `made`
///   is given, rank 0 says on stderr what stays as it was.
/// - "node-aware: route", "node-aware: pairing", "node-aware: on node", "node-aware: tuning": as the fields of
///   ExchangeOptions, which they take precedence over, as text.
/// - "node-aware: coarse method": "klu" (default), or "mumps" or "superlu-dist": DirectSolver on all ranks of the
///   coarsest level, for one that is large.
/// - "node-aware: coarse solvers": with "klu", how many ranks solve, each with all of the matrix: "one", "each node",
///   "auto", or so many at most, an int (CoarseSolver::automatic).
///
/// \param nullspace   near null space, one column a mode (rigid body modes for elasticity); may be null
/// \param coordinates of the nodes, for repartitioning; may be null
/// \param visit       called for every level's operators once the hierarchy stands, if given; before they are replaced
/// \param made        receives what makeNodeAware() returns, if it is called; may be null
/// \note Collective on the matrix' communicator.
/// \throws BadInput on all ranks if an entry of ours or an option cannot be used, or if the coarsest matrix is
/// singular, also on ranks that have no part of it after rebalancing; whatever MueLu throws
Teuchos::RCP<Tpetra::Operator<>> createMueLuPreconditioner(const Teuchos::RCP<Tpetra::CrsMatrix<>>& matrix,
                                                           const Teuchos::ParameterList& parameters,
                                                           const Teuchos::RCP<Tpetra::MultiVector<>>& nullspace = {},
                                                           const Teuchos::RCP<Tpetra::MultiVector<>>& coordinates = {},
                                                           const LevelOperatorVisitor& visit = {},
                                                           const ExchangeOptions& options = {},
                                                           NodeAwareHierarchy* made = nullptr);
/// The same with MueLu's parameters from an XML file, which rank 0 reads.
Teuchos::RCP<Tpetra::Operator<>> createMueLuPreconditioner(const Teuchos::RCP<Tpetra::CrsMatrix<>>& matrix,
                                                           const std::string& xmlFile,
                                                           const Teuchos::RCP<Tpetra::MultiVector<>>& nullspace = {},
                                                           const Teuchos::RCP<Tpetra::MultiVector<>>& coordinates = {},
                                                           const ExchangeOptions& options = {},
                                                           NodeAwareHierarchy* made = nullptr);

/// How many ranks `parameters` let solve on the coarsest level, as CoarseSolver takes it. \throws BadInput
int coarseSolversOf(Teuchos::ParameterList parameters);

/// As MueLu::ReuseTpetraPreconditioner, for a matrix with the same graph: MueLu keeps what its "reuse: type" says. Then
/// the coarsest matrix is factored again, and what MueLu has made anew becomes node-aware, if it was before.
/// \param preconditioner of createMueLuPreconditioner; it must have been applied once, as MueLu demands
/// \return what is node-aware now
/// \note Collective, and throws, as createMueLuPreconditioner; BadInput if that has not made the preconditioner.
NodeAwareHierarchy reuseMueLuPreconditioner(const Teuchos::RCP<Tpetra::CrsMatrix<>>& matrix,
                                            Tpetra::Operator<>& preconditioner);

}  // namespace Komvos
