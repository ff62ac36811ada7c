#include "bench/halo_bench.hpp"

#include <Tpetra_Details_extractMpiCommFromTeuchos.hpp>
#include <Tpetra_Import.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "Komvos_Error.hpp"
#include "Komvos_Exchange.hpp"
#include "Komvos_ExchangePlan.hpp"
#include "Komvos_NodeAwareCrsMatrix.hpp"
#include "Komvos_OverlapChoice.hpp"
#include "Komvos_Statistics.hpp"
#include "support/text_format.hpp"

// How this works. HaloBench makes all variants first: each is a function that brings the ghosts of x, or computes
// y = A x, and keeps the objects it needs. Then run() calls them in turn. The vectors are shared by all variants.
namespace Komvos::Program {

namespace {

using Teuchos::RCP;
using Teuchos::rcp;
using Import = Tpetra::Import<>;

constexpr int warmUps = 3;

RCP<const Import> withIsend(const Import& import) {
  const auto parameters = Teuchos::parameterList();
  parameters->set("Send type", "Isend");
  return rcp(new Import(import.getSourceMap(), import.getTargetMap(), parameters));
}

RCP<Matrix> withImport(const Matrix& matrix, const RCP<const Import>& import) {
  const auto graph = matrix.getCrsGraph();
  return rcp(new Matrix(matrix.getLocalMatrixDevice(), graph->getRowMap(), graph->getColMap(), graph->getDomainMap(),
                        graph->getRangeMap(), import, graph->getExporter()));
}

class HaloBench {
 public:
  HaloBench(const RCP<const Matrix>& matrix, const HaloBenchSettings& settings)
      : matrix_(matrix), settings_(settings), comm_(Tpetra::Details::extractMpiCommFromTeuchos(*matrix->getComm())) {
    x_ = rcp(new MultiVector(matrix->getDomainMap(), 1));
    y_ = rcp(new MultiVector(settings.product ? matrix->getRangeMap() : matrix->getColMap(), 1));
    x_->randomize();
    addTpetra("tpetra", import());
    addTpetra("tpetra-isend", withIsend(*import()));
    addOurs({"standard, persistent", true}, RouteChoice::standard, IntraNode::messages);
    addOurs({"standard, shared-memory"}, RouteChoice::standard, IntraNode::sharedMemory);
    for (const RouteChoice& route : settings.routes) {
      if (route == RouteChoice::standard) {
        continue;  // it is there already
      }
      for (const IntraNode intraNode : {IntraNode::messages, IntraNode::sharedMemory}) {
        addOurs({toString(route) + ", " + toString(intraNode)}, route, intraNode);
      }
    }
    addOurs({"auto", false, true}, RouteChoice::automatic, IntraNode::automatic);
  }

  /// \param onSample called before each sample with its number, negative while warming up
  void run(const std::function<void(int)>& onSample);

  std::vector<TimedVariant> take();

 private:
  struct Variant {
    TimedVariant result;
    std::function<void()> run;
    const NodeAwareImport<>* halo;  // null for Tpetra's; owned by `run`
  };

  RCP<const Import> import() const { return matrix_->getCrsGraph()->getImporter(); }
  double maximum(double mine) const {
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_MAX, comm_), "MPI_Allreduce");
    return mine;
  }

  void addTpetra(const std::string& name, const RCP<const Import>& import);
  void addOurs(TimedVariant variant, const RouteChoice& route, IntraNode intraNode);
  double exchangeSeconds(const NodeAwareImport<>& halo) const;

  RCP<const Matrix> matrix_;
  const HaloBenchSettings& settings_;
  MPI_Comm comm_;
  RCP<MultiVector> x_, y_;
  std::vector<Variant> variants_;
};

void HaloBench::addTpetra(const std::string& name, const RCP<const Import>& import) {
  const TimedVariant variant{name, true};
  if (settings_.product) {
    const RCP<const Matrix> matrix = withImport(*matrix_, import);
    variants_.push_back({variant, [this, matrix] { matrix->apply(*x_, *y_); }, nullptr});
  } else {
    variants_.push_back({variant, [this, import] { y_->doImport(*x_, *import, Tpetra::INSERT); }, nullptr});
  }
}

void HaloBench::addOurs(TimedVariant variant, const RouteChoice& route, IntraNode intraNode) {
  ExchangeOptions options = settings_.exchange;
  options.route = route;
  options.intraNode = intraNode;
  if (settings_.product) {
    const auto matrix = rcp(new NodeAwareCrsMatrix<>(*matrix_, options));
    variants_.push_back({std::move(variant), [this, matrix] { matrix->apply(*x_, *y_); }, matrix->importHalo()});
  } else {
    const auto halo = std::make_shared<NodeAwareImport<>>(*import(), options);
    variants_.push_back({std::move(variant), [this, halo] { halo->doImport(*x_, *y_, Tpetra::INSERT); }, halo.get()});
  }
  Variant& added = variants_.back();
  added.result.report = added.halo->report();
  added.result.exchangeSeconds = exchangeSeconds(*added.halo);
}

/// For an exchange like that of `halo`, maximum over ranks. Made twice: the first one also makes what all share.
double HaloBench::exchangeSeconds(const NodeAwareImport<>& halo) const {
  const auto plan = std::make_shared<const ExchangePlan>(halo.plan());
  double seconds = 0;
  for (int time = 0; time < 2; ++time) {
    mpiCheck(MPI_Barrier(comm_), "MPI_Barrier");
    const double start = MPI_Wtime();
    const Exchange<double, NodeAwareImport<>::device_type> made(comm_, plan, 1, halo.report().intraNode);
    seconds = MPI_Wtime() - start;
  }
  return maximum(seconds);
}

void HaloBench::run(const std::function<void(int)>& onSample) {
  const std::size_t count = variants_.size();
  for (const Variant& variant : variants_) {  // matrices decide how much they overlap
    for (int k = 0; settings_.product && k < Impl::OverlapChoice::mostProducts; ++k) {
      variant.run();
    }
  }
  for (int sample = -warmUps; sample < settings_.samples; ++sample) {
    onSample(sample);
    for (std::size_t i = 0; i < count; ++i) {
      Variant& variant = variants_[(i + sample + warmUps) % count];
      mpiCheck(MPI_Barrier(comm_), "MPI_Barrier");
      const double start = MPI_Wtime();
      for (int k = 0; k < settings_.repeats; ++k) {
        variant.run();
      }
      Impl::fence(NodeAwareImport<>::execution_space(), "komvos bench halo: complete before the clock is read");
      const double seconds = maximum((MPI_Wtime() - start) / settings_.repeats);
      if (sample >= 0) {
        variant.result.seconds.push_back(seconds);
      }
    }
  }
}

std::vector<TimedVariant> HaloBench::take() {
  std::vector<TimedVariant> results;
  for (Variant& variant : variants_) {
    long& bytes = variant.result.memoryBytes;
    bytes = variant.halo != nullptr ? static_cast<long>(variant.halo->exchange<double>().memoryBytes()) : 0;
    mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_LONG, MPI_MAX, comm_), "MPI_Allreduce");
    results.push_back(std::move(variant.result));
  }
  return results;
}

std::size_t fastestBaseline(const std::vector<TimedVariant>& variants) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < variants.size(); ++i) {
    if (variants[i].isBaseline && Impl::median(variants[i].seconds) < Impl::median(variants[best].seconds)) {
      best = i;
    }
  }
  return best;
}

/// Counted here, because MueLu's P and R do not know it themselves.
long long globalEntries(const Matrix& matrix) {
  auto entries = static_cast<long long>(Impl::localEntries(matrix));
  const MPI_Comm comm = Tpetra::Details::extractMpiCommFromTeuchos(*matrix.getComm());
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, &entries, 1, MPI_LONG_LONG, MPI_SUM, comm), "MPI_Allreduce");
  return entries;
}

}  // namespace

HaloTimes timeHalo(const std::string& name, const RCP<const Matrix>& matrix, const HaloBenchSettings& settings,
                   StatusLine& status) {
  HaloTimes times;
  times.name = name;
  times.rows = static_cast<long long>(matrix->getGlobalNumRows());
  times.entries = globalEntries(*matrix);
  HaloBench bench(matrix, settings);
  bench.run(
      [&](int sample) { status.show(name + format(": sample %d of %d", std::max(sample, 0), settings.samples)); });
  times.variants = bench.take();
  times.bestBaseline = fastestBaseline(times.variants);
  return times;
}

}  // namespace Komvos::Program
