/// \file test_device_kokkos.hpp
/// What Kokkos 3 wants to know about the test device: who accesses which memory, how it is copied, how kernels start.
#pragma once

#include <Kokkos_Core.hpp>
#include <functional>
#include <impl/Kokkos_SharedAlloc_timpl.hpp>
#include <memory>
#include <string>
#include <type_traits>

#include "Komvos_KokkosShim.hpp"
#include "support/test_device.hpp"

namespace Kokkos {

namespace Tools::Experimental {
template <>
struct DeviceTypeTraits<KomvosTest::TestDevice> {
  static constexpr DeviceType id = DeviceType::Unknown;
};
}  // namespace Tools::Experimental

namespace Impl {

template <>
struct MemorySpaceAccess<HostSpace, KomvosTest::TestDeviceSpace> {
  enum : bool { assignable = false, accessible = false, deepcopy = true };
};

template <>
struct MemorySpaceAccess<KomvosTest::TestDeviceSpace, HostSpace> {
  enum : bool { assignable = false, accessible = false, deepcopy = true };
};

template <>
struct MemorySpaceAccess<KomvosTest::TestPinnedSpace, KomvosTest::TestDeviceSpace> {
  enum : bool { assignable = false, accessible = false, deepcopy = true };
};

template <>
struct MemorySpaceAccess<KomvosTest::TestDeviceSpace, KomvosTest::TestPinnedSpace> {
  enum : bool { assignable = false, accessible = false, deepcopy = true };
};

template <>
struct MemorySpaceAccess<HostSpace, KomvosTest::TestPinnedSpace> {
  enum : bool { assignable = true, accessible = true, deepcopy = true };
};

template <>
struct MemorySpaceAccess<KomvosTest::TestPinnedSpace, HostSpace> {
  enum : bool { assignable = false, accessible = true, deepcopy = true };
};

/// Kernels are host code for the compiler: what a View may do is known at run time only.
template <>
struct verify_space<HostSpace, KomvosTest::TestDeviceSpace, false> {
  static void check() {
    if (!KomvosTest::TestDevice::isRunning()) {
      Kokkos::abort("host code accesses a View in device memory");
    }
  }
};

template <>
class SharedAllocationRecord<KomvosTest::TestDeviceSpace, void>
    : public HostInaccessibleSharedAllocationRecordCommon<KomvosTest::TestDeviceSpace> {
  using Space = KomvosTest::TestDeviceSpace;
  using Base = HostInaccessibleSharedAllocationRecordCommon<Space>;
  using RecordBase = SharedAllocationRecord<void, void>;
  friend class SharedAllocationRecordCommon<Space>;
  friend class HostInaccessibleSharedAllocationRecordCommon<Space>;

  const Space m_space;

 protected:
  SharedAllocationRecord() = default;
  SharedAllocationRecord(const Space& space, const std::string& label, std::size_t bytes,
                         RecordBase::function_type deallocate = &Base::deallocate)
      : Base(static_cast<SharedAllocationHeader*>(space.allocate(bytes + sizeof(SharedAllocationHeader))),
             bytes + sizeof(SharedAllocationHeader), deallocate),
        m_space(space) {
    const KomvosTest::OpenDeviceMemory open;
    this->_fill_host_accessible_header_info(*RecordBase::m_alloc_ptr, label);
  }
  ~SharedAllocationRecord() override { m_space.deallocate(RecordBase::m_alloc_ptr, RecordBase::m_alloc_size); }
};

template <>
class SharedAllocationRecord<KomvosTest::TestPinnedSpace, void>
    : public SharedAllocationRecordCommon<KomvosTest::TestPinnedSpace> {
  using Space = KomvosTest::TestPinnedSpace;
  using Base = SharedAllocationRecordCommon<Space>;
  using RecordBase = SharedAllocationRecord<void, void>;
  friend class SharedAllocationRecordCommon<Space>;

  const Space m_space;

 protected:
  SharedAllocationRecord() = default;
  SharedAllocationRecord(const Space& space, const std::string& label, std::size_t bytes,
                         RecordBase::function_type deallocate = &Base::deallocate)
      : Base(static_cast<SharedAllocationHeader*>(space.allocate(bytes + sizeof(SharedAllocationHeader))),
             bytes + sizeof(SharedAllocationHeader), deallocate),
        m_space(space) {
    this->_fill_host_accessible_header_info(*RecordBase::m_alloc_ptr, label);
  }
  ~SharedAllocationRecord() override { m_space.deallocate(RecordBase::m_alloc_ptr, RecordBase::m_alloc_size); }
};

template <class ExecutionSpace>
struct TestDeviceCopy {
  TestDeviceCopy(void* to, const void* from, std::size_t bytes) { KomvosTest::copyNow(to, from, bytes); }
  TestDeviceCopy(const ExecutionSpace& space, void* to, const void* from, std::size_t bytes) {
    if constexpr (std::is_same_v<ExecutionSpace, KomvosTest::TestDevice>) {
      KomvosTest::copyQueued(space, to, from, bytes);
    } else {
      space.fence();
      KomvosTest::copyNow(to, from, bytes);
    }
  }
};
template <class ExecutionSpace>
struct DeepCopy<HostSpace, KomvosTest::TestDeviceSpace, ExecutionSpace> : TestDeviceCopy<ExecutionSpace> {
  using TestDeviceCopy<ExecutionSpace>::TestDeviceCopy;
};
template <class ExecutionSpace>
struct DeepCopy<KomvosTest::TestDeviceSpace, HostSpace, ExecutionSpace> : TestDeviceCopy<ExecutionSpace> {
  using TestDeviceCopy<ExecutionSpace>::TestDeviceCopy;
};
template <class ExecutionSpace>
struct DeepCopy<KomvosTest::TestDeviceSpace, KomvosTest::TestDeviceSpace, ExecutionSpace>
    : TestDeviceCopy<ExecutionSpace> {
  using TestDeviceCopy<ExecutionSpace>::TestDeviceCopy;
};
template <class ExecutionSpace>
struct DeepCopy<KomvosTest::TestPinnedSpace, KomvosTest::TestDeviceSpace, ExecutionSpace>
    : TestDeviceCopy<ExecutionSpace> {
  using TestDeviceCopy<ExecutionSpace>::TestDeviceCopy;
};
template <class ExecutionSpace>
struct DeepCopy<KomvosTest::TestDeviceSpace, KomvosTest::TestPinnedSpace, ExecutionSpace>
    : TestDeviceCopy<ExecutionSpace> {
  using TestDeviceCopy<ExecutionSpace>::TestDeviceCopy;
};

// Kernels: those of the host, later.

using TestDeviceHost = Kokkos::DefaultHostExecutionSpace;

template <class Policy>
auto onHost(const Policy& policy) {
  return Kokkos::RangePolicy<TestDeviceHost, typename Policy::work_tag, Kokkos::IndexType<typename Policy::index_type>>(
      policy.begin(), policy.end());
}

/// Teams are teams of one host thread.
template <class... Properties>
class TeamPolicyInternal<KomvosTest::TestDevice, Properties...> : public PolicyTraits<Properties...> {
 public:
  using traits = PolicyTraits<Properties...>;
  using execution_policy = TeamPolicyInternal;
  using host_policy = Kokkos::TeamPolicy<TestDeviceHost, typename traits::work_tag>;
  using member_type = typename host_policy::member_type;

  TeamPolicyInternal(const KomvosTest::TestDevice& space, int teams, int, int = 1) : space_(space), host_(teams, 1) {}
  TeamPolicyInternal(const KomvosTest::TestDevice& space, int teams, const Kokkos::AUTO_t&, int = 1)
      : TeamPolicyInternal(space, teams, 1) {}

  const KomvosTest::TestDevice& space() const { return space_; }
  const host_policy& host() const { return host_; }
  int league_size() const { return host_.league_size(); }
  int team_size() const { return 1; }
  int impl_vector_length() const { return 1; }
  static int vector_length_max() { return 1024; }
  TeamPolicyInternal& set_scratch_size(int level, const PerTeamValue& bytes) {
    host_.set_scratch_size(level, bytes);
    return *this;
  }

 private:
  KomvosTest::TestDevice space_;
  host_policy host_;
};

/// Queues execute() of a host kernel. Its views are not counted, as those of a kernel on a GPU.
template <class HostKernel, class... Arguments>
void enqueueKernel(const KomvosTest::TestDevice& device, const Arguments&... arguments) {
  shared_allocation_tracking_disable();
  auto kernel = std::make_shared<HostKernel>(arguments...);
  shared_allocation_tracking_enable();
  device.enqueue(KomvosTest::TestDevice::Work::kernel, [kernel] { kernel->execute(); });
}

template <class Functor, class... Traits>
class ParallelFor<Functor, Kokkos::RangePolicy<Traits...>, KomvosTest::TestDevice> {
  using Policy = Kokkos::RangePolicy<Traits...>;
  using HostPolicy = decltype(onHost(std::declval<Policy>()));

 public:
  ParallelFor(const Functor& functor, const Policy& policy) : functor_(functor), policy_(policy) {}
  void execute() const {
    enqueueKernel<ParallelFor<Functor, HostPolicy, TestDeviceHost>>(policy_.space(), functor_, onHost(policy_));
  }

 private:
  Functor functor_;
  Policy policy_;
};

template <class Functor, class... Traits>
class ParallelFor<Functor, Kokkos::TeamPolicy<Traits...>, KomvosTest::TestDevice> {
  using Policy = TeamPolicyInternal<KomvosTest::TestDevice, Traits...>;

 public:
  ParallelFor(const Functor& functor, const Policy& policy) : functor_(functor), policy_(policy) {}
  void execute() const {
    enqueueKernel<ParallelFor<Functor, typename Policy::host_policy, TestDeviceHost>>(policy_.space(), functor_,
                                                                                      policy_.host());
  }

 private:
  Functor functor_;
  Policy policy_;
};

template <class Functor, class... Traits>
class ParallelFor<Functor, Kokkos::MDRangePolicy<Traits...>, KomvosTest::TestDevice> {
  using Policy = Kokkos::MDRangePolicy<Traits...>;
  using HostPolicy = Kokkos::MDRangePolicy<TestDeviceHost, typename Policy::iteration_pattern,
                                           typename Policy::work_tag, Kokkos::IndexType<typename Policy::index_type>>;

 public:
  ParallelFor(const Functor& functor, const Policy& policy) : functor_(functor), policy_(policy) {}
  void execute() const {
    enqueueKernel<ParallelFor<Functor, HostPolicy, TestDeviceHost>>(
        policy_.space(), functor_, HostPolicy(policy_.m_lower, policy_.m_upper, policy_.m_tile));
  }
  template <class AnyPolicy, class AnyFunctor>
  static int max_tile_size_product(const AnyPolicy&, const AnyFunctor&) {
    return 1024;
  }

 private:
  Functor functor_;
  Policy policy_;
};

/// \tparam Result a View on the host, or a reducer
template <class Functor, class Reducer, class... Traits>
class ParallelReduce<Functor, Kokkos::RangePolicy<Traits...>, Reducer, KomvosTest::TestDevice> {
  using Policy = Kokkos::RangePolicy<Traits...>;
  using HostPolicy = decltype(onHost(std::declval<Policy>()));

 public:
  template <class Result>
  ParallelReduce(const Functor& functor, const Policy& policy, const Result& result)
      : enqueue_([functor, policy, result] {
          enqueueKernel<ParallelReduce<Functor, HostPolicy, Reducer, TestDeviceHost>>(policy.space(), functor,
                                                                                      onHost(policy), result);
        }) {}
  void execute() const { enqueue_(); }

 private:
  std::function<void()> enqueue_;
};

template <class Functor, class... Traits>
class ParallelScan<Functor, Kokkos::RangePolicy<Traits...>, KomvosTest::TestDevice> {
  using Policy = Kokkos::RangePolicy<Traits...>;
  using HostPolicy = decltype(onHost(std::declval<Policy>()));

 public:
  ParallelScan(const Functor& functor, const Policy& policy) : functor_(functor), policy_(policy) {}
  void execute() const {
    enqueueKernel<ParallelScan<Functor, HostPolicy, TestDeviceHost>>(policy_.space(), functor_, onHost(policy_));
  }

 private:
  Functor functor_;
  Policy policy_;
};

/// Kokkos fences the space before the total is used.
template <class Functor, class Total, class... Traits>
class ParallelScanWithTotal<Functor, Kokkos::RangePolicy<Traits...>, Total, KomvosTest::TestDevice> {
  using Policy = Kokkos::RangePolicy<Traits...>;
  using HostPolicy = decltype(onHost(std::declval<Policy>()));

 public:
  ParallelScanWithTotal(const Functor& functor, const Policy& policy, Total& total)
      : functor_(functor), policy_(policy), total_(total) {}
  void execute() const {
    enqueueKernel<ParallelScanWithTotal<Functor, HostPolicy, Total, TestDeviceHost>>(policy_.space(), functor_,
                                                                                     onHost(policy_), std::ref(total_));
  }

 private:
  Functor functor_;
  Policy policy_;
  Total& total_;
};

}  // namespace Impl
}  // namespace Kokkos

namespace Komvos::Impl {

template <>
struct BufferSpace<KomvosTest::TestDevice> {
  using type = KomvosTest::TestDeviceSpace;
  using pinned = KomvosTest::TestPinnedSpace;
};

}  // namespace Komvos::Impl
