#include "Komvos_MueLuPreconditioner.hpp"

#if __has_include(<Amesos2_config.h>)  // else MueLu is without it
#include <Amesos2_config.h>
#endif
#include <MueLu_CreateTpetraPreconditioner.hpp>
#include <MueLu_Hierarchy.hpp>
#include <MueLu_TpetraOperator.hpp>
#include <Teuchos_XMLParameterListHelpers.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <exception>
#include <iostream>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_Broadcast.hpp"
#include "Komvos_CoarseSolver.hpp"
#include "Komvos_DirectSolver.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_LevelOptions.hpp"
#include "Komvos_MueLuLevels.hpp"

// How this works. Entries of ours are taken out of the parameter list, which MueLu would refuse, and MueLu sets up its
// hierarchy. Then CoarseSolver, or DirectSolver, takes the place of a cheap smoother on the coarsest level, and
// makeNodeAware() replaces the rest if the list asks for it.
namespace Komvos {

namespace {

using Impl::MueLuLevels;
using Teuchos::RCP;

/// A direct solver as the smoother of the coarsest level. The solution does not depend on the initial guess.
class CoarsestSmoother : public Impl::LevelSmoother {
 public:
  virtual MPI_Comm comm() const = 0;
  virtual bool hasSameGraph(const Tpetra::CrsMatrix<>& matrix) const = 0;
  virtual void refactor(const Tpetra::CrsMatrix<>& matrix) = 0;
};

template <class Solver>
class CoarsestSmootherOf : public CoarsestSmoother {
 public:
  template <class... Arguments>
  explicit CoarsestSmootherOf(std::string name, const Arguments&... arguments)
      : name_(std::move(name)), solver_(arguments...) {}
  void apply(Tpetra::MultiVector<>& x, const Tpetra::MultiVector<>& rhs, bool) const override { solver_.apply(rhs, x); }
  std::size_t complexity() const override { return solver_.factorEntries(); }
  std::string description() const override { return "Komvos: " + name_; }
  MPI_Comm comm() const override {
    return Tpetra::Details::extractMpiCommFromTeuchos(*solver_.getDomainMap()->getComm());
  }
  bool hasSameGraph(const Tpetra::CrsMatrix<>& matrix) const override { return solver_.hasSameGraph(matrix); }
  void refactor(const Tpetra::CrsMatrix<>& matrix) override { solver_.refactor(matrix); }

 private:
  std::string name_;
  Solver solver_;
};

/// What solves on the coarsest level.
struct CoarsestChoice {
  bool ours = false;                   // else what MueLu takes
  std::set<int> levelsOfMueLu;         // but on these
  std::optional<DirectMethod> direct;  // else CoarseSolver
  int solvers = CoarseSolver::automatic;

  std::shared_ptr<CoarsestSmoother> make(const Tpetra::CrsMatrix<>& matrix, const ExchangeOptions& options) const {
    if (!direct) {
      return std::make_shared<CoarsestSmootherOf<CoarseSolver>>("klu", matrix, options, solvers);
    }
    DirectOptions directOptions;
    directOptions.exchange = options;
    return std::make_shared<CoarsestSmootherOf<DirectSolver>>(toString(*direct), matrix, *direct, directOptions);
  }
};

/// MueLu's names of smoothers, and of no solver, for a coarsest level. It takes any other name for a direct solver of
/// Amesos2's, and the letters must be these.
const std::set<std::string> smoothersOfMueLu = {"none",
                                                "matlab",
                                                "RELAXATION",
                                                "CHEBYSHEV",
                                                "ILUT",
                                                "ILU",
                                                "RILUK",
                                                "SCHWARZ",
                                                "Amesos",
                                                "BLOCK RELAXATION",
                                                "BLOCK_RELAXATION",
                                                "BLOCKRELAXATION",
                                                "SPARSE BLOCK RELAXATION",
                                                "SPARSE_BLOCK_RELAXATION",
                                                "SPARSEBLOCKRELAXATION",
                                                "LINESMOOTHING_BANDEDRELAXATION",
                                                "LINESMOOTHING_BANDED_RELAXATION",
                                                "LINESMOOTHING_BANDED RELAXATION",
                                                "LINESMOOTHING_TRIDIRELAXATION",
                                                "LINESMOOTHING_TRIDI_RELAXATION",
                                                "LINESMOOTHING_TRIDI RELAXATION",
                                                "LINESMOOTHING_TRIDIAGONALRELAXATION",
                                                "LINESMOOTHING_TRIDIAGONAL_RELAXATION",
                                                "LINESMOOTHING_TRIDIAGONAL RELAXATION",
                                                "TOPOLOGICAL",
                                                "FAST_ILU",
                                                "FAST_IC",
                                                "FAST_ILDL",
                                                "HIPTMAIR"};

/// Direct solvers that this Amesos2 has beside KLU2, in small letters. Its header with Amesos2::query() needs headers
/// that packages of Trilinos leave out.
const std::set<std::string> solversOfAmesos2 = {
#ifdef HAVE_AMESOS2_SUPERLU
    "superlu",
#endif
#ifdef HAVE_AMESOS2_SUPERLUDIST
    "superlu_dist", "superludist",
#endif
#ifdef HAVE_AMESOS2_SUPERLUMT
    "superlu_mt",   "superlumt",
#endif
#ifdef HAVE_AMESOS2_UMFPACK
    "umfpack",
#endif
#ifdef HAVE_AMESOS2_MUMPS
    "mumps",
#endif
#ifdef HAVE_AMESOS2_BASKER
    "basker",
#endif
#if defined(HAVE_AMESOS2_CHOLMOD) && defined(HAVE_AMESOS2_EXPERIMENTAL)
    "cholmod",
#endif
#ifdef HAVE_AMESOS2_LAPACK
    "lapack",
#endif
#ifdef HAVE_AMESOS2_PARDISO_MKL
    "pardisomkl",   "pardiso_mkl",
#endif
#ifdef HAVE_AMESOS2_STRUMPACK
    "strumpack",
#endif
#if defined(HAVE_AMESOS2_SHYLUBASKER) || defined(HAVE_AMESOS2_SHYLU_NODEBASKER)
    "shylubasker",
#endif
#if defined(HAVE_AMESOS2_TACHO) || defined(HAVE_AMESOS2_SHYLU_NODETACHO)
    "tacho",
#endif
#if defined(HAVE_AMESOS2_CUSOLVER) && defined(HAVE_AMESOS2_CUSPARSE)
    "cusolver",
#endif
#ifdef HAVE_AMESOS2_CSS_MKL
    "cssmkl",       "css_mkl",
#endif
};

/// The list is for MueLu's interpreter of parameters of ML, its predecessor.
bool hasSyntaxOfMl(const Teuchos::ParameterList& parameters) {
  const std::string name = "parameterlist: syntax";
  return parameters.isType<std::string>(name) && parameters.get<std::string>(name) == "ml";
}

/// Levels with lists of their own that say how they are solved if they are the coarsest ones. Those that have
/// parameters alone mean the solver of the whole list: it is named there, for the whole list will have another one.
std::set<int> takeLevelsOfMueLu(Teuchos::ParameterList& parameters, const std::string& type) {
  std::set<int> levels;
  std::vector<std::string> names;
  for (auto entry = parameters.begin(); entry != parameters.end(); ++entry) {
    names.push_back(parameters.name(entry));
  }
  const std::string prefix = "level ";
  for (const std::string& name : names) {
    const bool isLevel = name.rfind(prefix, 0) == 0 && name.size() > prefix.size() && parameters.isSublist(name) &&
                         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix.size()), name.end(),
                                     [](unsigned char c) { return std::isdigit(c) != 0; });
    if (!isLevel) {
      continue;
    }
    Teuchos::ParameterList& list = parameters.sublist(name);
    if (list.isParameter("coarse: params") && !list.isParameter("coarse: type")) {
      list.set("coarse: type", type);
    }
    if (list.isParameter("coarse: type")) {
      levels.insert(std::stoi(name.substr(prefix.size())));
    }
  }
  return levels;
}

/// Whether something other than "coarse: type" says how the coarsest level is solved, whichever it is.
bool describesCoarsest(const Teuchos::ParameterList& parameters) {
  return parameters.isSublist("coarse: params") || parameters.isSublist("coarse: list") ||
         parameters.isSublist("Hierarchy");
}

/// In small letters, without the name of the package; empty if it is a smoother of MueLu's.
std::string directSolverOf(const std::string& type, bool ofMl) {
  if (ofMl ? type.rfind("Amesos", 0) != 0 : smoothersOfMueLu.count(type) > 0) {
    return {};
  }
  std::string name = type;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return c == '-' ? '_' : static_cast<char>(std::tolower(c)); });
  for (const std::string prefix : {"amesos2_", "amesos_"}) {
    name = name.rfind(prefix, 0) == 0 ? name.substr(prefix.size()) : name;
  }
  return name.empty() ? "klu" : name;
}

std::string typeOfCoarsest(const Teuchos::ParameterList& parameters) {
  return parameters.isType<std::string>("coarse: type") ? parameters.get<std::string>("coarse: type")
         : hasSyntaxOfMl(parameters)                    ? "Amesos-KLU"
                                                        : "Klu2";
}

/// One of ours by MueLu's name; null if it is none.
std::optional<DirectMethod> methodNamed(const std::string& solver) {
  if (solver == "mumps") {
    return DirectMethod::mumps;
  }
  return solver == "superlu_dist" || solver == "superludist" ? std::optional(DirectMethod::superluDist) : std::nullopt;
}

/// Takes an entry of ours out of the list.
/// \throws BadInput if it has another type
template <class Value>
std::optional<Value> take(Teuchos::ParameterList& parameters, const std::string& name, const char* type) {
  if (!parameters.isParameter(name)) {
    return std::nullopt;
  }
  if (!parameters.isType<Value>(name)) {
    throw BadInput("MueLu parameter \"" + name + "\" must be " + type);
  }
  const Value value = parameters.get<Value>(name);
  parameters.remove(name);
  return value;
}

const std::string coarseSolvers = "node-aware: coarse solvers";

/// \throws BadInput
int takeCoarseSolvers(Teuchos::ParameterList& parameters) {
  const std::string& name = coarseSolvers;
  if (parameters.isType<int>(name)) {
    const int solvers = *take<int>(parameters, name, "");
    if (solvers < 1) {
      throw BadInput("MueLu parameter \"" + name + "\" is " + std::to_string(solvers) + ", not 1 or more");
    }
    return solvers;
  }
  const std::string text = take<std::string>(parameters, name, "a string or an int").value_or("auto");
  if (text != "auto" && text != "one" && text != "each node") {
    throw BadInput("MueLu parameter \"" + name + "\" is \"" + text +
                   "\", not \"auto\", \"one\", \"each node\" or an int");
  }
  return text == "one" ? 1 : text == "each node" ? CoarseSolver::oneOnEachNode : CoarseSolver::automatic;
}

/// \return null: "klu" \throws BadInput
std::optional<DirectMethod> takeCoarseMethod(Teuchos::ParameterList& parameters) {
  const std::string name = "node-aware: coarse method";
  const std::string text = take<std::string>(parameters, name, "a string").value_or("klu");
  if (text == "klu") {
    return std::nullopt;
  }
  try {
    const DirectMethod method = parseDirectMethod(text);
    if (DirectSolver::isAvailable(method)) {
      return method;
    }
  } catch (const BadInput&) {
    throw BadInput("MueLu parameter \"" + name + "\" is \"" + text + "\", not \"klu\", \"mumps\" or \"superlu-dist\"");
  }
  throw BadInput("MueLu parameter \"" + name + "\": Komvos was compiled without " + text);
}

/// Takes what says how the coarsest level is solved out of the list, where that is for us. Factories, and parameters of
/// a coarse solver, are for MueLu's own; so are smoothers, and direct solvers that Amesos2 has, but not KLU2, which
/// MueLu also takes for those that Amesos2 has not. \throws BadInput where entries contradict each other
CoarsestChoice takeCoarsest(Teuchos::ParameterList& parameters, int rank) {
  const bool saysMethod = parameters.isParameter("node-aware: coarse method");
  const bool saysWhereToSolve = parameters.isParameter(coarseSolvers);
  CoarsestChoice coarsest;
  coarsest.solvers = takeCoarseSolvers(parameters);
  const std::optional<DirectMethod> method = takeCoarseMethod(parameters);
  const bool isMl = hasSyntaxOfMl(parameters), describes = describesCoarsest(parameters);
  const std::string type = typeOfCoarsest(parameters), solver = directSolverOf(type, isMl);
  const std::optional<DirectMethod> named = methodNamed(solver);
  const bool isKlu = solver == "klu" || solver == "klu2";
  // What both name is ours, whether Amesos2 has it or not; KLU is what MueLu takes anyway, and contradicts nothing.
  const bool agrees = isKlu || (method && method == named);
  if (saysMethod && (describes || !agrees)) {
    throw BadInput(
        "MueLu parameters \"node-aware: coarse method\" and \"coarse: type\", \"coarse: params\" or \"Hierarchy\" "
        "contradict each other");
  }
  coarsest.ours = !describes && !solver.empty() && (saysMethod || solversOfAmesos2.count(solver) == 0);
  const bool isAvailable = named && DirectSolver::isAvailable(*named);
  coarsest.direct = saysMethod ? method : coarsest.ours && isAvailable ? named : std::nullopt;
  if (saysWhereToSolve && (coarsest.direct || !coarsest.ours)) {
    throw BadInput(
        "MueLu parameter \"node-aware: coarse solvers\" is for Komvos' own coarse solver, which \"node-aware: coarse "
        "method\", \"coarse: type\", \"coarse: params\" or \"Hierarchy\" replaces");
  }
  if (coarsest.ours && !isKlu && !coarsest.direct && rank == 0) {
    std::cerr << "komvos: MueLu parameter \"coarse: type\" is \"" << type
              << "\", which this Amesos2 does not have: KLU solves on the coarsest level" << std::endl;
  }
  if (coarsest.ours) {  // cheap to set up; replaced below
    coarsest.levelsOfMueLu = takeLevelsOfMueLu(parameters, type);
    parameters.set("coarse: type", isMl ? "Jacobi" : "RELAXATION");
  } else if (!describes && !solver.empty() && !isMl) {
    parameters.set("coarse: type", solver);  // MueLu does not know all names that we do
  }
  return coarsest;
}

/// Takes what concerns exchanges out of the list. \return whether the hierarchy becomes node-aware
bool takeNodeAware(Teuchos::ParameterList& parameters, ExchangeOptions& options) {
  const auto takeParsed = [&parameters](const char* name, const auto& parse, auto& option) {
    if (const auto text = take<std::string>(parameters, name, "a string")) {
      try {
        option = parse(*text);
      } catch (const BadInput& error) {
        throw BadInput(std::string("MueLu parameter \"") + name + "\": " + error.what());
      }
    }
  };
  takeParsed("node-aware: route", parseRoute, options.route);
  takeParsed("node-aware: pairing", parsePairing, options.pairing);
  takeParsed("node-aware: on node", parseIntraNode, options.intraNode);
  takeParsed("node-aware: tuning", parseTuning, options.tuning);
  return take<bool>(parameters, "use node-aware", "true or false").value_or(false);
}

void setUserData(Teuchos::ParameterList& parameters, const RCP<Tpetra::MultiVector<>>& nullspace,
                 const RCP<Tpetra::MultiVector<>>& coordinates) {
  Teuchos::ParameterList& userData = parameters.sublist("user data");
  if (!nullspace.is_null()) {
    userData.set("Nullspace", nullspace);
  }
  if (!coordinates.is_null()) {
    userData.set("Coordinates", coordinates);
  }
}

/// Whether the coarsest matrix can be factored again where the one before was.
/// \param before null: there was none on this rank
/// \note Collective on the communicator of the matrix.
bool canFactorAgain(const CoarsestSmoother* before, const Tpetra::CrsMatrix<>& matrix) {
  const MPI_Comm comm = Tpetra::Details::extractMpiCommFromTeuchos(*matrix.getComm());
  int can = before != nullptr && Impl::haveTheSameRanks(comm, before->comm()) ? 1 : 0;
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &can, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
  return can != 0 && before->hasSameGraph(matrix);
}

/// Puts a direct solver in the place of the coarsest level's smoothers. After rebalancing, its matrix lives on a part
/// of the ranks, and the others have none. If it throws on some ranks, all ranks of `comm` throw.
/// \param solver the one before, if any; replaced if it does not fit
/// \note Collective on `comm`, the communicator of the finest level.
void replaceCoarseSolver(MPI_Comm comm, MueLuLevels& levels, const ExchangeOptions& options,
                         const CoarsestChoice& choice, std::shared_ptr<CoarsestSmoother>& solver) {
  const int coarsest = levels.count() - 1;  // fewer on ranks that coarse levels have left
  const bool isMueLus = choice.levelsOfMueLu.count(coarsest) > 0;
  Impl::LevelOptions onFinest(comm, options);
  // Until all ranks are here again: with it may go the last that holds its communicator, which is freed by all its
  // ranks together.
  const std::shared_ptr<CoarsestSmoother> before = std::move(solver);
  std::string error;
  try {
    if (const auto matrix = levels.matrix(coarsest, "A"); !matrix.is_null() && !isMueLus) {
      if (canFactorAgain(before.get(), *matrix)) {
        before->refactor(*matrix);
        solver = before;
      } else {
        const ExchangeOptions& here = onFinest.on(Tpetra::Details::extractMpiCommFromTeuchos(*matrix->getComm()));
        solver = choice.make(*matrix, here);
      }
      levels.setSmoother(coarsest, "PreSmoother", solver)();
      levels.removeSmoother(coarsest, "PostSmoother")();
    }
  } catch (...) {
    error = Impl::textOf(std::current_exception());
  }
  throwOnAllIfAny(comm, error);
}

/// What createMueLuPreconditioner() returns: remembers what was asked for.
class MueLuPreconditioner
    : public MueLu::TpetraOperator<DefaultScalar, DefaultLocalOrdinal, DefaultGlobalOrdinal, DefaultNode> {
 public:
  using Hierarchy = Impl::MueLuHierarchy;
  MueLuPreconditioner(const RCP<Hierarchy>& hierarchy, ExchangeOptions options, CoarsestChoice coarsest,
                      bool becomesNodeAware)
      : TpetraOperator(hierarchy),
        options_(std::move(options)),
        coarsest_(coarsest),
        becomesNodeAware_(becomesNodeAware) {}

  /// After MueLu has set up the hierarchy, for the first time or again. \param comm of the finest level, which may be
  /// another one than before
  void addCoarseSolver(MPI_Comm comm) {
    if (coarsest_.ours) {
      MueLuLevels levels(*GetHierarchy());
      replaceCoarseSolver(comm, levels, options_, coarsest_, solver_);
    }
  }
  /// \return nothing if it is not asked for
  NodeAwareHierarchy makeNodeAwareIfAsked() {
    return becomesNodeAware_ ? makeNodeAware(*GetHierarchy(), options_) : NodeAwareHierarchy();
  }

 private:
  ExchangeOptions options_;
  CoarsestChoice coarsest_;
  bool becomesNodeAware_;
  std::shared_ptr<CoarsestSmoother> solver_;
};

MPI_Comm mpiOf(const Tpetra::CrsMatrix<>& matrix) {
  return Tpetra::Details::extractMpiCommFromTeuchos(*matrix.getComm());
}

/// Entries of the file are added to the list, in the place of those that it has. Rank 0 reads the file: Teuchos' own
/// function leaves the others waiting where it cannot. \note Collective.
void addXml(Teuchos::ParameterList& parameters, const std::string& file, MPI_Comm comm) {
  const std::string text = Impl::broadcastFile(comm, file, "MueLu parameters: " + file + " cannot be read");
  try {
    Teuchos::updateParametersFromXmlString(text, Teuchos::Ptr<Teuchos::ParameterList>(&parameters));
  } catch (const std::exception& thrown) {
    throw BadInput("MueLu parameters: " + file + " is not a ParameterList in XML: " + thrown.what());
  }
}

/// The file that the list names, as MueLu reads it. \note Collective.
void addNamedXml(Teuchos::ParameterList& parameters, MPI_Comm comm) {
  const std::string file = take<std::string>(parameters, "xml parameter file", "a string").value_or("");
  if (!file.empty()) {
    addXml(parameters, file, comm);
  }
}

void visitLevels(const MueLuLevels& levels, const LevelOperatorVisitor& visit) {
  for (int level = 0; level < levels.count(); ++level) {
    for (const char* name : {"A", "P", "R"}) {
      if (const auto found = levels.matrix(level, name); !found.is_null()) {
        visit(level, name, *found);
      }
    }
  }
}

}  // namespace

RCP<Tpetra::Operator<>> createMueLuPreconditioner(const RCP<Tpetra::CrsMatrix<>>& matrix,
                                                  const Teuchos::ParameterList& given,
                                                  const RCP<Tpetra::MultiVector<>>& nullspace,
                                                  const RCP<Tpetra::MultiVector<>>& coordinates,
                                                  const LevelOperatorVisitor& visit, const ExchangeOptions& options,
                                                  NodeAwareHierarchy* made) {
  Teuchos::ParameterList parameters(given);
  addNamedXml(parameters, mpiOf(*matrix));
  ExchangeOptions exchange = options;
  const bool becomesNodeAware = takeNodeAware(parameters, exchange);
  const CoarsestChoice coarsest = takeCoarsest(parameters, matrix->getComm()->getRank());
  if (hasSyntaxOfMl(parameters)) {
    parameters.get("ML output", 0);  // sets it where it is not there
  } else {
    parameters.get("verbosity", "none");
  }
  setUserData(parameters, nullspace, coordinates);
  const auto ordinary = MueLu::CreateTpetraPreconditioner(RCP<Tpetra::Operator<>>(matrix), parameters);
  const auto preconditioner =
      Teuchos::rcp(new MueLuPreconditioner(ordinary->GetHierarchy(), exchange, coarsest, becomesNodeAware));
  preconditioner->addCoarseSolver(mpiOf(*matrix));
  if (visit) {
    visitLevels(MueLuLevels(*preconditioner->GetHierarchy()), visit);
  }
  NodeAwareHierarchy hierarchy = preconditioner->makeNodeAwareIfAsked();
  if (made != nullptr) {
    *made = std::move(hierarchy);
  } else if (matrix->getComm()->getRank() == 0) {  // who asks by a parameter alone would not learn it
    for (const std::string& one : hierarchy.kept) {
      std::cerr << "komvos: MueLu parameter \"use node-aware\": stays as it was: " << one << std::endl;
    }
  }
  return preconditioner;
}

RCP<Tpetra::Operator<>> createMueLuPreconditioner(const RCP<Tpetra::CrsMatrix<>>& matrix, const std::string& xmlFile,
                                                  const RCP<Tpetra::MultiVector<>>& nullspace,
                                                  const RCP<Tpetra::MultiVector<>>& coordinates,
                                                  const ExchangeOptions& options, NodeAwareHierarchy* made) {
  Teuchos::ParameterList parameters;
  addXml(parameters, xmlFile, mpiOf(*matrix));
  return createMueLuPreconditioner(matrix, parameters, nullspace, coordinates, {}, options, made);
}

int coarseSolversOf(Teuchos::ParameterList parameters) { return takeCoarseSolvers(parameters); }

NodeAwareHierarchy reuseMueLuPreconditioner(const RCP<Tpetra::CrsMatrix<>>& matrix,
                                            Tpetra::Operator<>& preconditioner) {
  auto* const ours = dynamic_cast<MueLuPreconditioner*>(&preconditioner);
  if (ours == nullptr) {
    throw BadInput("reuseMueLuPreconditioner: createMueLuPreconditioner has not made this preconditioner");
  }
  MueLu::ReuseTpetraPreconditioner(matrix, *ours);
  ours->addCoarseSolver(mpiOf(*matrix));
  return ours->makeNodeAwareIfAsked();
}

}  // namespace Komvos
