#include "Komvos_BelosSolvers.hpp"

#include <TpetraCore_ETIHelperMacros.h>

#include <BelosCustomSolverFactory.hpp>
#include <BelosSolverFactory_Tpetra.hpp>
#include <algorithm>
#include <cctype>

#include "Komvos_PipelinedBiCGStab.hpp"

namespace Komvos {

namespace {

const char* const name = "PIPELINED BICGSTAB";

bool isOurs(std::string given) {
  std::transform(given.begin(), given.end(), given.begin(), [](unsigned char c) { return std::toupper(c); });
  return given == name;
}

template <class Solver>
class SolverFactory
    : public Belos::CustomSolverFactory<typename Solver::multivector_type::scalar_type,
                                        typename Solver::multivector_type, typename Solver::operator_type> {
 public:
  using solver_base_type = typename Solver::base_type;

  /// \return null if the name is not ours
  Teuchos::RCP<solver_base_type> getSolver(const std::string& given,
                                           const Teuchos::RCP<Teuchos::ParameterList>& parameters) override {
    if (!isOurs(given)) {
      return Teuchos::null;
    }
    const auto solver = Teuchos::rcp(new Solver);
    solver->setParameters(parameters);
    return solver;
  }

  int numSupportedSolvers() const override { return 1; }
  std::vector<std::string> supportedSolverNames() const override { return {name}; }
  bool isSupported(const std::string& given) const override { return isOurs(given); }
};

template <class Scalar, class LocalOrdinal, class GlobalOrdinal, class Node>
void registerFor() {
  using Solver = PipelinedBiCGStab<Scalar, LocalOrdinal, GlobalOrdinal, Node>;
  Belos::SolverFactory<Scalar, typename Solver::multivector_type, typename Solver::operator_type> factory;
  if (!factory.isSupported(name)) {
    factory.addFactory(Teuchos::rcp(new SolverFactory<Solver>));
  }
}

}  // namespace

#define KOMVOS_REGISTER(SCALAR, LO, GO, NODE) registerFor<SCALAR, LO, GO, NODE>();

void registerBelosSolvers() {
  TPETRA_ETI_MANGLING_TYPEDEFS()
  TPETRA_INSTANTIATE_SLGN_NO_ORDINAL_SCALAR(KOMVOS_REGISTER)
}

}  // namespace Komvos
