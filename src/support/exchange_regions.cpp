#include "support/exchange_regions.hpp"

#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <cstring>
#include <utility>

namespace Komvos::Program {

namespace {

bool isExchange(const char* name) {
  return std::strncmp(name, "Tpetra::DistObject::", 20) == 0 || std::strncmp(name, "Komvos::Exchange::", 18) == 0;
}

}  // namespace

ExchangeRegions* ExchangeRegions::active_ = nullptr;

ExchangeRegions::ExchangeRegions(std::function<void(double)> ended) : ended_(std::move(ended)) {
  active_ = this;
  Kokkos::Tools::Experimental::set_push_region_callback(push);
  Kokkos::Tools::Experimental::set_pop_region_callback(pop);
}

ExchangeRegions::~ExchangeRegions() {
  Kokkos::Tools::Experimental::set_push_region_callback(nullptr);
  Kokkos::Tools::Experimental::set_pop_region_callback(nullptr);
  active_ = nullptr;
}

void ExchangeRegions::push(const char* name) {
  ExchangeRegions& self = *active_;
  if (self.depthOfExchange_ == 0 && isExchange(name)) {
    self.depthOfExchange_ = self.depth_ + 1;
    self.begin_ = MPI_Wtime();
  }
  ++self.depth_;
}

void ExchangeRegions::pop() {
  ExchangeRegions& self = *active_;
  if (self.depthOfExchange_ > 0 && self.depth_ == self.depthOfExchange_) {
    self.depthOfExchange_ = 0;
    self.ended_(MPI_Wtime() - self.begin_);
  }
  --self.depth_;
}

}  // namespace Komvos::Program
