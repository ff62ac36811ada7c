// Compiles an exchange for a type that no library has, from the installed definitions, and moves values in it.
#include <Komvos_Exchange_def.hpp>
#include <Komvos_NodeAwareCrsMatrix_def.hpp>
#include <Komvos_NodeAwareImport_def.hpp>
#include <Tpetra_Core.hpp>
#include <Tpetra_Import.hpp>
#include <cstdio>
#include <memory>

int main(int argc, char** argv) {
  const Tpetra::ScopeGuard scope(&argc, &argv);
  const auto comm = Tpetra::getDefaultComm();
  const Teuchos::RCP<const Tpetra::Map<>> owned = Teuchos::rcp(new Tpetra::Map<>(100, 0, comm));
  const auto everywhere =
      Tpetra::createLocalMapWithNode<int, Komvos::DefaultGlobalOrdinal, Komvos::DefaultNode>(100, comm);
  using Halo = Komvos::NodeAwareImport<>;
  const Halo halo(Tpetra::Import<>(owned, everywhere));
  using Exchange = Komvos::Exchange<short, Halo::device_type>;
  using View = Kokkos::View<short**, Kokkos::LayoutLeft, Halo::device_type>;
  const auto plan = std::make_shared<const Komvos::ExchangePlan>(halo.plan());
  Exchange exchange(MPI_COMM_WORLD, plan);
  const View values("values", plan->numOwned, 1), ghosts("ghosts", plan->numTarget, 1);
  Kokkos::deep_copy(values, static_cast<short>(7));
  exchange.forward(Halo::execution_space(), Exchange::const_view(values), Exchange::view(ghosts));
  const auto arrived = Kokkos::create_mirror_view(ghosts);
  Kokkos::deep_copy(arrived, ghosts);
  int wrong = 0;
  for (const auto& delivery : plan->deliveries) {
    wrong += arrived(delivery.target, 0) == 7 ? 0 : 1;
  }
  if (comm->getRank() == 0) {
    std::printf("%zu short numbers arrived, %d wrong\n", plan->deliveries.size(), wrong);
  }
  return wrong == 0 && (comm->getSize() == 1) == plan->deliveries.empty() ? 0 : 1;
}
