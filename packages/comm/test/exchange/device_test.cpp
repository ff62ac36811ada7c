// What an exchange leaves to the caller's kernels, and what it does not: on the test device, where a kernel runs only
// once somebody waits for it. Staged through the host, or GPU-aware with KOMVOS_GPU_AWARE_MPI=1. The cases of
// exchange_test.cpp run on it too.
#include <gtest/gtest.h>
#include <mpi.h>

#include "exchange/halo_support.hpp"

namespace {

using namespace KomvosTest;

class MpiOfThisRun : public testing::Environment {
  void SetUp() override { letMpiUseDeviceMemory(Komvos::gpuAwareMpi()); }
};
const auto* const mpiOfThisRun = testing::AddGlobalTestEnvironment(new MpiOfThisRun);

using Matrix = Vector<double>;
using HostMatrix = HostVector<double>;

/// What is in a vector now, without waiting for kernels.
HostMatrix now(const Matrix& view) {
  const double* const data = static_cast<const double*>(TestDeviceSpace::alias(view.data()));
  HostMatrix values;
  for (std::size_t j = 0; j < view.extent(1); ++j) {
    const double* const column = data + j * view.extent(0);
    values.emplace_back(column, column + view.extent(0));
  }
  return values;
}

/// Overwrites a vector without waiting for kernels, as a kernel on another stream could.
void overwrite(const Matrix& view, double value) {
  double* const data = static_cast<double*>(TestDeviceSpace::alias(view.data()));
  std::fill(data, data + view.span(), value);
}

struct Copy {
  Matrix to, from;
  void operator()(int i) const {
    for (std::size_t j = 0; j < to.extent(1); ++j) {
      to(i, j) = from(i, j);
    }
  }
};

/// On `space`, later.
void copyByKernel(const TestDevice& space, const Matrix& to, const Matrix& from) {
  Kokkos::parallel_for(Kokkos::RangePolicy<TestDevice>(space, 0, static_cast<int>(to.extent(0))), Copy{to, from});
}

Matrix filledWith(double value, int length, int columns) {
  return toDevice(HostMatrix(columns, std::vector<double>(length, value)));
}

class DeviceExchange : public testing::TestWithParam<IntraNode> {
 protected:
  /// Calls work(halo, exchange, columns) on all halos.
  template <class Work>
  static void onExchanges(const Work& work) {
    onHalos([&](const Halo& halo) {
      Exchange<double, Device> exchange(halo.comm, halo.plan, 2, GetParam());
      EXPECT_EQ(GetParam(), exchange.intraNode());
      for (const int columns : {1, 2, 3}) {
        work(halo, exchange, columns);
      }
    });
  }
};

INSTANTIATE_TEST_SUITE_P(With, DeviceExchange, testing::Values(IntraNode::messages, IntraNode::sharedMemory),
                         [](const auto& info) {
                           return info.param == IntraNode::messages ? "Messages" : "SharedMemory";
                         });

TEST_P(DeviceExchange, WaitsForItsOwnInstanceAndReadsWhatIsQueuedThere) {
  onExchanges([](const Halo& halo, Exchange<double, Device>& exchange, int columns) {
    const TestDevice space = TestDevice::makeInstance();
    const Matrix source = toDevice(halo.owned<double>(columns, 3));
    const Matrix ghostSource = toDevice(halo.ghosts<double>(columns));
    const Matrix owned = filledWith(-1, halo.mine().numOwned, columns);
    const Matrix ghosts = filledWith(-7, halo.mine().numTarget, columns);
    const Matrix sums = filledWith(100, halo.mine().numOwned, columns);
    copyByKernel(space, owned, source);
    exchange.begin(space, owned);
    exchange.end(space, ghosts);
    space.fence();
    EXPECT_EQ(halo.filled<double>(columns, 3, -7), now(ghosts)) << halo.name();
    copyByKernel(space, ghosts, ghostSource);
    exchange.beginReverse(space, ghosts);
    exchange.endReverse(space, sums);
    space.fence();
    EXPECT_EQ(halo.combined<double>(columns, 100, Combine::add), now(sums)) << halo.name();
  });
}

TEST_P(DeviceExchange, LetsTheVectorBeOverwrittenOnceBegun) {
  onExchanges([](const Halo& halo, Exchange<double, Device>& exchange, int columns) {
    const Matrix owned = toDevice(halo.owned<double>(columns, 4));
    const Matrix ghosts = filledWith(-7, halo.mine().numTarget, columns);
    exchange.begin(Space(), owned);
    overwrite(owned, 1e9);
    exchange.end(Space(), ghosts);
    EXPECT_EQ(halo.filled<double>(columns, 4, -7), get(ghosts)) << halo.name();
    const Matrix sources = toDevice(halo.ghosts<double>(columns));
    const Matrix sums = filledWith(100, halo.mine().numOwned, columns);
    exchange.beginReverse(Space(), sources);
    overwrite(sources, 1e9);
    exchange.endReverse(Space(), sums);
    EXPECT_EQ(halo.combined<double>(columns, 100, Combine::add), get(sums)) << halo.name();
  });
}

TEST_P(DeviceExchange, UnpacksTheLastValuesBeforeTheNextArrive) {
  onExchanges([](const Halo& halo, Exchange<double, Device>& exchange, int columns) {
    Matrix owned[2], ghosts[2], sums[2];
    for (int k = 0; k < 2; ++k) {
      owned[k] = toDevice(halo.owned<double>(columns, 100 * k));
      ghosts[k] = filledWith(-7, halo.mine().numTarget, columns);
      sums[k] = filledWith(100, halo.mine().numOwned, columns);
    }
    const Matrix sources = toDevice(halo.ghosts<double>(columns));
    MPI_Barrier(halo.comm);
    for (int k = 0; k < 2; ++k) {
      exchange.forward(Space(), owned[k], ghosts[k]);
    }
    for (int k = 0; k < 2; ++k) {
      exchange.reverse(Space(), sources, sums[k]);
    }
    for (int k = 0; k < 2; ++k) {
      EXPECT_EQ(halo.filled<double>(columns, 100 * k, -7), get(ghosts[k])) << halo.name() << ", exchange " << k;
      EXPECT_EQ(halo.combined<double>(columns, 100, Combine::add), get(sums[k])) << halo.name() << ", exchange " << k;
    }
  });
}

TEST_P(DeviceExchange, LetsNothingArriveInAVectorThatAKernelStillReads) {
  onExchanges([](const Halo& halo, Exchange<double, Device>& exchange, int columns) {
    const Matrix owned = toDevice(halo.owned<double>(columns, 5));
    const Matrix ghosts = filledWith(-7, halo.mine().numTarget, columns);
    const Matrix read = filledWith(0, halo.mine().numTarget, columns);
    copyByKernel(Space(), read, ghosts);
    exchange.begin(Space(), owned, ghosts);
    exchange.end(Space(), ghosts);
    EXPECT_EQ(HostMatrix(columns, std::vector<double>(halo.mine().numTarget, -7)), get(read)) << halo.name();
    EXPECT_EQ(halo.filled<double>(columns, 5, -7), get(ghosts)) << halo.name();
  });
}

TEST_P(DeviceExchange, FillsInterleavedColumns) {
  onExchanges([](const Halo& halo, Exchange<double, Device>& exchange, int columns) {
    const int numTarget = halo.mine().numTarget;
    const Matrix owned = toDevice(halo.owned<double>(columns, 6));
    const Matrix ghosts = filledWith(-7, columns, numTarget);  // entry i, column j is ghosts(j, i)
    const Exchange<double, Device>::Interleaved target{ghosts.data(), static_cast<std::size_t>(numTarget),
                                                       static_cast<std::size_t>(columns)};
    exchange.begin(Space(), owned, target);
    EXPECT_NE(messagesAreStaged(), exchange.finishOnNode(Space(), target));
    exchange.end(Space(), target);
    const HostMatrix expected = halo.filled<double>(columns, 6, -7);
    const HostMatrix found = get(ghosts);
    for (int i = 0; i < numTarget; ++i) {
      for (int j = 0; j < columns; ++j) {
        EXPECT_EQ(expected[j][i], found[i][j]) << halo.name() << ", target " << i << ", column " << j;
      }
    }
  });
}

TEST_P(DeviceExchange, GivesMpiMemoryThatItCanRead) {
  onExchanges([](const Halo& halo, Exchange<double, Device>& exchange, int columns) {
    takeMpiAddresses();
    const Matrix owned = toDevice(halo.owned<double>(columns, 1));
    const Matrix ghosts = filledWith(-7, halo.mine().numTarget, columns);
    exchange.forward(Space(), owned, ghosts);
    exchange.reverse(Space(), ghosts, owned);
    const MpiAddresses given = takeMpiAddresses();
    EXPECT_EQ(0, messagesAreStaged() ? given.onDevice : given.onHost);
    const auto messages = static_cast<long>(halo.plan->sends.size() + halo.plan->receives.size());
    if (GetParam() == IntraNode::messages) {
      EXPECT_EQ(2 * messages, given.onDevice + given.onHost) << "both directions";
    }
  });
}

}  // namespace
