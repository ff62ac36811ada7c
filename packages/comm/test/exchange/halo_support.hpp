/// \file halo_support.hpp
/// Halos of every kind on plain views, with the values that an exchange must bring.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_Exchange.hpp"
#include "Komvos_HaloPlanner.hpp"
#include "Komvos_RouteChoice.hpp"
#include "Komvos_Settings.hpp"
#include "exchange/device_under_test.hpp"
#include "support/plan_simulation.hpp"
#include "support/test_patterns.hpp"

namespace KomvosTest {

using Komvos::Combine;
using Komvos::Exchange;
using Komvos::ExchangeOptions;
using Komvos::InMemorySetupTransport;
using Komvos::IntraNode;
using Komvos::Pairing;
using Komvos::RouteChoice;
using Device = DeviceUnderTest;
using Space = Device::execution_space;

template <class Scalar>
using Vector = Kokkos::View<Scalar**, Kokkos::LayoutLeft, Device>;
template <class Scalar>
using HostVector = std::vector<std::vector<Scalar>>;  // [column][entry]

inline int rankIn(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

inline int sizeOf(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size;
}

inline bool messagesAreStaged() {
  return Komvos::stagingForced() || (!Komvos::Impl::hostCanAccessBuffers<Space>() && !Komvos::gpuAwareMpi());
}

/// A number that only this value, column and salt have; small enough that sums of them are exact in float.
template <class Scalar>
Scalar valueOf(const ValueId& id, int column, int salt) {
  return static_cast<Scalar>(id.owner * 997 + id.local * 13 + column * 5 + salt);
}

template <class Scalar, class View>
void put(const HostVector<Scalar>& values, const View& view) {
  const auto host = Kokkos::create_mirror(view);
  for (std::size_t j = 0; j < values.size(); ++j) {
    for (std::size_t i = 0; i < values[j].size(); ++i) {
      host(i, j) = values[j][i];
    }
  }
  Kokkos::deep_copy(view, host);
}

template <class View>
auto get(const View& view) {
  using Scalar = typename View::non_const_value_type;
  const auto host = Kokkos::create_mirror(view);
  Kokkos::deep_copy(host, view);
  HostVector<Scalar> values(view.extent(1), std::vector<Scalar>(view.extent(0)));
  for (std::size_t j = 0; j < values.size(); ++j) {
    for (std::size_t i = 0; i < values[j].size(); ++i) {
      values[j][i] = host(i, j);
    }
  }
  return values;
}

template <class Scalar>
Vector<Scalar> toDevice(const HostVector<Scalar>& values) {
  const Vector<Scalar> view("test vector", values.empty() ? 0 : values[0].size(), values.size());
  put(values, view);
  return view;
}

/// One halo on a communicator: its patterns on all ranks, with gaps between the targets, and the plan of this rank.
struct Halo {
  MPI_Comm comm;
  int rank;
  std::vector<Pattern> patterns;
  NodeTopology topology;
  RouteChoice route;
  std::shared_ptr<const ExchangePlan> plan;

  Halo(MPI_Comm onComm, std::vector<Pattern> halo, const NodeTopology& where, RouteChoice choice,
       Pairing pairing = Pairing::byVolume, bool gaps = true)
      : comm(onComm), rank(rankIn(onComm)), patterns(std::move(halo)), topology(where), route(choice) {
    for (Pattern& pattern : patterns) {
      pattern.normalize();
      if (!gaps) {
        numberTargets(pattern);
        continue;
      }
      for (Pattern::Receive& receive : pattern.receives) {
        receive.target = 2 * receive.target + 1;
      }
      pattern.numTarget = 2 * pattern.numTarget + 1;
    }
    ExchangeOptions options;
    options.route = choice;
    options.pairing = pairing;
    options.topology = std::make_shared<const NodeTopology>(where);
    options.sockets = std::make_shared<const NodeTopology>(socketsOf(where, 2));
    plan = Komvos::planHalo(comm, patterns[rank], options).plan;
  }

  /// Targets in the order of the values, as in a column map: messages may arrive in place.
  static void numberTargets(Pattern& pattern) {
    int next = 0;
    for (Pattern::Receive& receive : pattern.receives) {
      receive.target = next++;
    }
  }

  const Pattern& mine() const { return patterns[rank]; }
  std::string name() const { return plan->route + " on " + topology.describe(); }

  /// The plans of all ranks.
  std::vector<ExchangePlan> allPlans() const {
    InMemorySetupTransport transport(topology.numRanks());
    const NodeTopology sockets = socketsOf(topology, 2);
    const auto rule = Komvos::makeRoute(route, topology, Pairing::byVolume, &sockets);
    return buildPlans(transport, topology, *rule, patterns);
  }

  template <class Scalar>
  HostVector<Scalar> owned(int columns, int salt) const {
    HostVector<Scalar> values(columns, std::vector<Scalar>(mine().numOwned));
    for (int j = 0; j < columns; ++j) {
      for (int i = 0; i < mine().numOwned; ++i) {
        values[j][i] = valueOf<Scalar>({rank, i}, j, salt);
      }
    }
    return values;
  }

  /// Targets after a forward exchange of owned(columns, salt) into a vector of `background`.
  template <class Scalar>
  HostVector<Scalar> filled(int columns, int salt, Scalar background, bool add = false) const {
    HostVector<Scalar> values(columns, std::vector<Scalar>(mine().numTarget, background));
    for (int j = 0; j < columns; ++j) {
      for (const Pattern::Receive& r : mine().receives) {
        values[j][r.target] = (add ? background : Scalar{}) + valueOf<Scalar>(r.value, j, salt);
      }
    }
    return values;
  }

  /// A number for each target, that other ranks can compute too.
  template <class Scalar>
  static Scalar targetValue(int rank, int target, int column) {
    const int value = 1 + rank * 31 + target * 3 + column;
    return static_cast<Scalar>((rank + target) % 2 == 0 ? value : -value);
  }

  template <class Scalar>
  HostVector<Scalar> ghosts(int columns) const {
    HostVector<Scalar> values(columns, std::vector<Scalar>(mine().numTarget));
    for (int j = 0; j < columns; ++j) {
      for (int t = 0; t < mine().numTarget; ++t) {
        values[j][t] = targetValue<Scalar>(rank, t, j);
      }
    }
    return values;
  }

  /// Owned values after a reverse exchange of ghosts(columns) onto `background`. Of several copies that of the highest
  /// rank, there of the highest target, is inserted: patterns are sorted by rank, receives of a value by target.
  template <class Scalar>
  HostVector<Scalar> combined(int columns, Scalar background, Combine how) const {
    HostVector<Scalar> values(columns, std::vector<Scalar>(mine().numOwned, background));
    for (const Pattern& pattern : patterns) {
      for (const Pattern::Receive& r : pattern.receives) {
        for (int j = 0; j < columns && r.value.owner == rank; ++j) {
          Scalar& value = values[j][r.value.local];
          const Scalar copy = targetValue<Scalar>(pattern.rank, r.target, j);
          value = how == Combine::insert ? copy
                  : how == Combine::add  ? static_cast<Scalar>(value + copy)
                                         : std::max(std::abs(value), std::abs(copy));
        }
      }
    }
    return values;
  }
};

/// Calls work(halo) for all topologies, on some patterns, along both routes or in turn.
template <class Work>
void onHalos(const Work& work, unsigned seed = 1) {
  const int size = sizeOf(MPI_COMM_WORLD);
  int turn = 0;
  for (const NamedTopology& where : topologiesFor(size)) {
    ++turn;  // each pattern meets both routes, for their number may be even
    for (const NamedPatterns& what : patternsFor(size, seed)) {
      for (const RouteChoice& route : routesInTurn(size, ++turn)) {
        SCOPED_TRACE(where.name + ", " + what.name);
        work(Halo(MPI_COMM_WORLD, what.patterns, where.topology, route));
      }
    }
  }
}

/// A halo in which every rank needs values of every other, on nodes of `ppn` ranks.
inline Halo denseHalo(int ppn, int values = 3, MPI_Comm comm = MPI_COMM_WORLD,
                      const RouteChoice& route = RouteChoice::threeStep) {
  const int size = sizeOf(comm);
  const Needs halo = allToAll(size, values);
  return Halo(comm, KomvosTest::patternsFromNeeds(halo.owner, halo.needs), NodeTopology::uniform(size, ppn), route);
}

template <class Scalar>
void checkForward(const Halo& halo, Exchange<Scalar, Device>& exchange, int columns, int salt) {
  const auto owned = toDevice(halo.owned<Scalar>(columns, salt));
  const auto ghosts = toDevice(HostVector<Scalar>(columns, std::vector<Scalar>(halo.mine().numTarget, Scalar{-7})));
  exchange.forward(Space(), owned, ghosts);
  EXPECT_EQ(halo.filled<Scalar>(columns, salt, Scalar{-7}), get(ghosts))
      << halo.name() << ", " << columns << " columns";
}

template <class Scalar>
void checkReverse(const Halo& halo, Exchange<Scalar, Device>& exchange, int columns) {
  const auto ghosts = toDevice(halo.ghosts<Scalar>(columns));
  for (const Combine how : {Combine::add, Combine::insert, Combine::absMax}) {
    const auto owned = toDevice(HostVector<Scalar>(columns, std::vector<Scalar>(halo.mine().numOwned, Scalar{-100})));
    exchange.reverse(Space(), ghosts, owned, how);
    EXPECT_EQ(halo.combined<Scalar>(columns, Scalar{-100}, how), get(owned))
        << halo.name() << ", " << columns << " columns, combine " << static_cast<int>(how);
  }
}

}  // namespace KomvosTest
