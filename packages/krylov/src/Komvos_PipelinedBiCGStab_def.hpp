#pragma once

#include <BelosStatusTestOutputFactory.hpp>
#include <Teuchos_CommHelpers.hpp>
#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>

#include "Komvos_DetectedTopology.hpp"
#include "Komvos_MergedIteration_def.hpp"
#include "Komvos_PipelinedBiCGStab.hpp"
#include "Komvos_PipelinedIteration_def.hpp"
#include "Komvos_PrivateComm.hpp"
#include "Komvos_ReplicatedVectors.hpp"

namespace Komvos {

namespace Impl {

/// Belos' users give verbosity and style as numbers or as its enumerations.
template <class Enumeration>
void makeNumber(Teuchos::ParameterList& list, const std::string& name) {
  if (list.isType<Enumeration>(name)) {
    list.set(name, static_cast<int>(list.get<Enumeration>(name)));
  }
}

/// As Belos, which takes a tolerance in double for all scalars.
template <class Magnitude>
void makeMagnitude(Teuchos::ParameterList& list, const std::string& name) {
  if (!std::is_same_v<Magnitude, double> && list.isType<double>(name)) {
    list.set(name, static_cast<Magnitude>(list.get<double>(name)));
  }
}

inline void requireVariant(const std::string& variant) {
  TEUCHOS_TEST_FOR_EXCEPTION(variant != "auto" && variant != "pipelined" && variant != "merged" &&
                                 variant != "replicated" && variant != "replicated-pipelined",
                             std::invalid_argument,
                             "Komvos::PipelinedBiCGStab: \"Variant\" is \""
                                 << variant << "\", not auto, pipelined, merged, replicated or replicated-pipelined");
}

}  // namespace Impl

template <class S, class L, class G, class N>
PipelinedBiCGStab<S, L, G, N>::PipelinedBiCGStab()
    : parameters_(Teuchos::parameterList(*getValidParameters())),
      achievedTolerance_(Teuchos::ScalarTraits<magnitude_type>::zero()) {}

template <class S, class L, class G, class N>
PipelinedBiCGStab<S, L, G, N>::PipelinedBiCGStab(const Teuchos::RCP<problem_type>& problem,
                                                 const Teuchos::RCP<Teuchos::ParameterList>& parameters)
    : PipelinedBiCGStab() {
  TEUCHOS_TEST_FOR_EXCEPTION(problem.is_null(), std::invalid_argument,
                             "Komvos::PipelinedBiCGStab: the linear problem is null");
  setProblem(problem);
  setParameters(parameters);
}

template <class S, class L, class G, class N>
Teuchos::RCP<const Teuchos::ParameterList> PipelinedBiCGStab<S, L, G, N>::getValidParameters() const {
  if (!validParameters_.is_null()) {
    return validParameters_;
  }
  const auto list = Teuchos::parameterList("PIPELINED BICGSTAB");
  list->set("Convergence Tolerance", static_cast<magnitude_type>(Belos::DefaultSolverParameters::convTol),
            "Residual norm, scaled, at which a system counts as solved.");
  list->set("Maximum Iterations", 1000, "Steps at most; a step takes two products.");
  list->set("Verbosity", static_cast<int>(Belos::Errors), "What to print: a sum of Belos::MsgType.");
  list->set("Output Style", static_cast<int>(Belos::General), "How to print: Belos::OutputType.");
  list->set("Output Frequency", -1, "Print each so many iterations; -1: at the end only.");
  list->set("Deflation Quorum", 1, "Accepted for compatibility: a system that is solved is left alone at once.");
  list->set("Output Stream", Teuchos::rcpFromRef<std::ostream>(std::cout), "Where to print.");
  list->set("Show Maximum Residual Norm Only", false, "Print the largest residual norm of several systems only.");
  list->set("Implicit Residual Scaling", std::string("Norm of Initial Residual"),
            "What residual norms are divided by.");
  list->set("Residual Scaling", std::string("Norm of Initial Residual"),
            "As \"Implicit Residual Scaling\", which is the newer name.");
  list->set("Timer Label", std::string("Belos"), "Before the name of the timer.");
  list->set("Variant", std::string("auto"),
            "auto, pipelined, merged: two blocking reductions; or replicated, replicated-pipelined: whole vectors on "
            "every rank, no reductions.");
  list->set("Residual Replacement", true,
            "Compute residuals anew where rounding errors have grown too large; pipelined variants only.");
  list->set("Node-Aware Reductions", true, "Add up within nodes through shared memory, then one rank of each node.");
  list->set("Check True Residual", true, "Compute it before a system counts as solved.");
  list->set(
      "Stagnation Window", 500,
      "Give up a system whose residual norm has not fallen by a tenth in so many iterations, nor in as many as it "
      "took to fall so far; 0: never.");
  validParameters_ = list;
  return validParameters_;
}

template <class S, class L, class G, class N>
void PipelinedBiCGStab<S, L, G, N>::setParameters(const Teuchos::RCP<Teuchos::ParameterList>& parameters) {
  if (parameters.is_null()) {
    return;
  }
  Teuchos::ParameterList given(*parameters);
  Impl::makeNumber<Belos::MsgType>(given, "Verbosity");
  Impl::makeNumber<Belos::OutputType>(given, "Output Style");
  Impl::makeMagnitude<magnitude_type>(given, "Convergence Tolerance");
  given.validateParameters(*getValidParameters());
  if (given.isParameter("Variant")) {
    Impl::requireVariant(given.get<std::string>("Variant"));
  }
  TEUCHOS_TEST_FOR_EXCEPTION(given.isParameter("Stagnation Window") && given.get<int>("Stagnation Window") < 0,
                             std::invalid_argument,
                             "Komvos::PipelinedBiCGStab: \"Stagnation Window\" is "
                                 << given.get<int>("Stagnation Window") << ", not 0 or more");
  // Two names for the same thing. If both are given, the one that is new counts, then the older name, as in Belos.
  const std::string newer = "Implicit Residual Scaling", older = "Residual Scaling";
  if (given.isParameter(newer) || given.isParameter(older)) {
    const auto brings = [&](const std::string& name) {
      return given.isParameter(name) && given.get<std::string>(name) != parameters_->get<std::string>(name);
    };
    const bool takesOlder = brings(older) || (!brings(newer) && given.isParameter(older));
    const auto scaling = given.get<std::string>(takesOlder ? older : newer);
    Belos::convertStringToScaleType(scaling);  // throws if there is no such scaling
    given.set(newer, scaling);
    given.set(older, scaling);
  }
  parameters_->setParameters(given);
}

template <class S, class L, class G, class N>
void PipelinedBiCGStab<S, L, G, N>::setUserConvStatusTest(const Teuchos::RCP<status_test_type>& test,
                                                          const typename combination_type::ComboType& how) {
  userTest_ = test;
  userCombination_ = how;
}

template <class S, class L, class G, class N>
void PipelinedBiCGStab<S, L, G, N>::setDebugStatusTest(const Teuchos::RCP<status_test_type>& test) {
  debugTest_ = test;
}

template <class S, class L, class G, class N>
void PipelinedBiCGStab<S, L, G, N>::reset(Belos::ResetType type) {
  if ((type & Belos::Problem) != 0 && !problem_.is_null()) {
    problem_->setProblem();
  }
}

/// Of one solve, for it may have other parameters than the last one.
template <class S, class L, class G, class N>
void PipelinedBiCGStab<S, L, G, N>::makeTests() {
  const Teuchos::ParameterList& list = *parameters_;
  printer_ = Teuchos::rcp(
      new Belos::OutputManager<S>(list.get<int>("Verbosity"), list.get<Teuchos::RCP<std::ostream>>("Output Stream")));
  const int allSystems = -1;
  residualTest_ = Teuchos::rcp(new residual_test_type(list.get<magnitude_type>("Convergence Tolerance"), allSystems,
                                                      list.get<bool>("Show Maximum Residual Norm Only")));
  residualTest_->defineScaleForm(Belos::convertStringToScaleType(list.get<std::string>("Implicit Residual Scaling")),
                                 Belos::TwoNorm);
  convergenceTest_ = residualTest_;
  // The other styles take tests of residual norms only.
  int style = list.get<int>("Output Style");
  if (!userTest_.is_null()) {
    convergenceTest_ = Teuchos::rcp(new combination_type(userCombination_, residualTest_, userTest_));
    style = Belos::General;
  }
  using Iterations = Belos::StatusTestMaxIters<S, multivector_type, operator_type>;
  const auto iterations = Teuchos::rcp(new Iterations(list.get<int>("Maximum Iterations")));
  allTests_ = Teuchos::rcp(new combination_type(combination_type::OR, iterations, convergenceTest_));
  Belos::StatusTestOutputFactory<S, multivector_type, operator_type> factory(style);
  outputTest_ = factory.create(printer_, allTests_, list.get<int>("Output Frequency"),
                               Belos::Passed + Belos::Failed + Belos::Undefined);
  outputTest_->setSolverDesc(" Pipelined BiCGStab ");
  // The user's tests may remember the last solve.
  outputTest_->reset();
  if (!debugTest_.is_null()) {
    debugTest_->reset();
  }
}

/// Residuals are not preconditioned; what Belos divides them by would be, and the quotient would say nothing.
template <class S, class L, class G, class N>
void PipelinedBiCGStab<S, L, G, N>::requireComparableScaling() const {
  const std::string& scaling = parameters_->get<std::string>("Implicit Residual Scaling");
  TEUCHOS_TEST_FOR_EXCEPTION(
      problem_->isLeftPrec() && scaling.find("Preconditioned") != std::string::npos, std::invalid_argument,
      "Komvos::PipelinedBiCGStab: \"Implicit Residual Scaling\" is \""
          << scaling << "\", but with a left preconditioner residuals are those of the system without it; take \"Norm "
          << "of Initial Residual\" or \"Norm of RHS\"");
}

template <class S, class L, class G, class N>
std::string PipelinedBiCGStab<S, L, G, N>::chooseVariant() const {
  const std::string& variant = parameters_->get<std::string>("Variant");
  if (variant != "auto") {
    return variant;
  }
  // With a preconditioner the pipelined variant moves 14 vectors more, without 6: for this many rows of one column, at
  // 8 GB/s on a host and 2 TB/s on a device, that takes about 100 us an iteration, or 50.
  const Tpetra::global_size_t mostRows = Impl::runsOnHost<typename N::execution_space>() ? 8000 : 2000000;
  const auto& map = *problem_->getOperator()->getDomainMap();
  const auto own = Impl::PrivateComm::of(Tpetra::Details::extractMpiCommFromTeuchos(*map.getComm()));
  const bool isSmall = map.getGlobalNumElements() * problem_->getRHS()->getNumVectors() <=
                       mostRows * static_cast<Tpetra::global_size_t>(own->size());
  return isSmall && Impl::detectedTopology(*own)->numNodes() > 1 ? "pipelined" : "merged";
}

/// Kernels go through the rows of vectors side by side.
template <class S, class L, class G, class N>
void PipelinedBiCGStab<S, L, G, N>::requireVectorsThatFit() const {
  const auto& x = *problem_->getLHS();
  const auto& b = *problem_->getRHS();
  const auto& map = *problem_->getOperator()->getDomainMap();
  const bool fit = x.getNumVectors() == b.getNumVectors() && x.getMap()->isSameAs(map) && b.getMap()->isSameAs(map);
  TEUCHOS_TEST_FOR_EXCEPTION(!fit, std::invalid_argument,
                             "Komvos::PipelinedBiCGStab: the solution has "
                                 << x.getNumVectors() << " columns of " << x.getGlobalLength()
                                 << " elements and the right-hand side " << b.getNumVectors() << " of "
                                 << b.getGlobalLength() << "; they need as many, over the operator's domain map ("
                                 << map.getGlobalNumElements() << " elements)");
}

/// Null if the vectors of the variant are dealt out. \note Collective.
template <class S, class L, class G, class N>
auto PipelinedBiCGStab<S, L, G, N>::replicated() -> std::shared_ptr<const replicated_type> {
  if (variant_ != "replicated" && variant_ != "replicated-pipelined") {
    return nullptr;
  }
  const auto map = problem_->getOperator()->getDomainMap();
  const int same = replicated_ != nullptr && replicated_->map().get() == map.get() ? 1 : 0;
  int sameOnAll = 0;
  Teuchos::reduceAll(*map->getComm(), Teuchos::REDUCE_MIN, 1, &same, &sameOnAll);
  if (sameOnAll == 0) {
    replicated_ = std::make_shared<replicated_type>(map);
  }
  return replicated_;
}

template <class S, class L, class G, class N>
Belos::ReturnType PipelinedBiCGStab<S, L, G, N>::solve() {
  TEUCHOS_TEST_FOR_EXCEPTION(problem_.is_null() || !problem_->isProblemSet(), std::logic_error,
                             "Komvos::PipelinedBiCGStab::solve: the linear problem is "
                                 << (problem_.is_null() ? "null" : "not set: call its setProblem()"));
  requireComparableScaling();
  requireVectorsThatFit();
  const std::string label = parameters_->get<std::string>("Timer Label");
  timer_ = Teuchos::TimeMonitor::getNewCounter(label + ": PipelinedBiCGStab total solve time");
  makeTests();
  std::vector<int> columns(problem_->getRHS()->getNumVectors());
  for (std::size_t j = 0; j < columns.size(); ++j) {
    columns[j] = static_cast<int>(j);
  }
  problem_->setLSIndex(columns);

  using Iteration = Impl::BiCGStabIteration<S, L, G, N>;
  Impl::BiCGStabOptions options;
  options.replaceResiduals = parameters_->get<bool>("Residual Replacement");
  options.checkTrueResidual = parameters_->get<bool>("Check True Residual");
  options.nodeAwareSums = parameters_->get<bool>("Node-Aware Reductions");
  options.maxIterations = parameters_->get<int>("Maximum Iterations");
  options.stagnationWindow = parameters_->get<int>("Stagnation Window");
  variant_ = chooseVariant();
  std::unique_ptr<Iteration> iteration;
  if (wasPipelined()) {
    iteration.reset(new Impl::PipelinedIteration<S, L, G, N>(problem_, printer_, outputTest_, residualTest_, options,
                                                             replicated()));
  } else {
    iteration.reset(
        new Impl::MergedIteration<S, L, G, N>(problem_, printer_, outputTest_, residualTest_, options, replicated()));
  }
  {
    Teuchos::TimeMonitor monitor(*timer_);
    iteration->setDebugTest(debugTest_);
    if (!userTest_.is_null()) {
      iteration->setUsersTest(convergenceTest_, userCombination_ != combination_type::OR);
    }
    iteration->initialize();
    iteration->iterate();
    iteration->finish();
  }
  problem_->setCurrLS();
  allTests_->print(printer_->stream(Belos::FinalSummary));
  if (printer_->isVerbosity(Belos::TimingDetails)) {
    Teuchos::TimeMonitor::summarize(printer_->stream(Belos::TimingDetails));
  }
  numIters_ = iteration->getNumIters();
  numReplacements_ = iteration->counts().replacements;
  numRestarts_ = iteration->counts().restarts;
  accuracyLost_ = iteration->hasLostAccuracy();
  const auto* values = residualTest_->getTestValue();
  const bool known = iteration->stop() != Impl::BiCGStabStop::notANumber && values != nullptr && !values->empty();
  achievedTolerance_ =
      known ? *std::max_element(values->begin(), values->end()) : std::numeric_limits<magnitude_type>::quiet_NaN();
  const bool converged = known && iteration->stop() == Impl::BiCGStabStop::none && !iteration->isDisproved() &&
                         convergenceTest_->getStatus() == Belos::Passed;
  if (!converged && iteration->stop() == Impl::BiCGStabStop::none) {
    printer_->stream(Belos::Warnings) << "Komvos::PipelinedBiCGStab: not converged after " << numIters_
                                      << " iterations; the largest scaled residual norm is " << achievedTolerance_
                                      << std::endl;
  }
  return converged ? Belos::Converged : Belos::Unconverged;
}

template <class S, class L, class G, class N>
std::string PipelinedBiCGStab<S, L, G, N>::description() const {
  std::ostringstream text;
  text << "Komvos::PipelinedBiCGStab<" << Teuchos::ScalarTraits<S>::name()
       << ">{Variant: " << parameters_->get<std::string>("Variant")
       << ", Convergence Tolerance: " << parameters_->get<magnitude_type>("Convergence Tolerance") << "}";
  return text.str();
}

}  // namespace Komvos

#define KOMVOS_PIPELINEDBICGSTAB_INSTANT(SCALAR, LO, GO, NODE) template class PipelinedBiCGStab<SCALAR, LO, GO, NODE>;
