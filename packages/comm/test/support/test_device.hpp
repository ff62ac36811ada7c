/// \file test_device.hpp
/// A Kokkos device that is as unforgiving as a GPU can be, and runs on the host.
///
/// - Kernels and copies on TestDevice are queued, as on a CUDA stream: one queue an instance. They run in order, and
///   only when somebody waits for them: fence() of the instance, Kokkos::fence() (and so a blocking deep_copy), or the
///   release of device memory. A forgotten fence is seen each time: what the kernel writes is not there.
/// - Memory of TestDeviceSpace is whole pages without access rights. They have some only while a queue runs, so that
///   host code which reads or writes them ends with SIGSEGV at that very line; through a View, Kokkos aborts first. New
///   memory is filled with 0xFF (NaN).
/// - TestPinnedSpace is memory of the host for messages that are staged. Kernels cannot access it, though on some GPUs
///   they could: what is staged is to be copied.
/// - MPI has its own mapping of the same pages (device_mpi.cpp): with letMpiUseDeviceMemory(true) it may be given
///   device pointers, else one in an MPI call ends the program.
///
/// For Kokkos 3: the interfaces between Kokkos and an execution space are other ones in Kokkos 4. Include
/// test_device_kokkos.hpp to use it.
#pragma once

#include <Kokkos_Core.hpp>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>

namespace KomvosTest {

class TestDeviceSpace;

class TestDevice {
 public:
  using execution_space = TestDevice;
  using memory_space = TestDeviceSpace;
  using size_type = std::size_t;
  using device_type = Kokkos::Device<TestDevice, TestDeviceSpace>;
  using array_layout = Kokkos::LayoutLeft;
  using scratch_memory_space = Kokkos::DefaultHostExecutionSpace::scratch_memory_space;  // a team is one of the host

  /// The default instance: all of these share a queue.
  TestDevice();
  /// An instance with a queue of its own.
  static TestDevice makeInstance();

  /// Runs what is queued on this instance. The string is Kokkos 3.5's label.
  void fence(const std::string& = {}) const;
  enum class Work { kernel, copy };
  void enqueue(Work kind, std::function<void()> work) const;
  std::size_t numQueued() const;

  static bool impl_is_initialized() { return Kokkos::is_initialized(); }
  /// Runs what is queued, on all instances.
  static void impl_static_fence();
  /// Whether a kernel or a copy is running: device memory can be accessed.
  static bool isRunning();

  static int in_parallel() { return isRunning() ? 1 : 0; }
  static int concurrency() { return 1; }
  static void print_configuration(std::ostream&, bool = false) {}
  static const char* name() { return "KomvosTest::TestDevice"; }
  std::uint32_t impl_instance_id() const noexcept;

 private:
  struct Queue;
  explicit TestDevice(std::shared_ptr<Queue> queue) : queue_(std::move(queue)) {}
  std::shared_ptr<Queue> queue_;
};

class TestDeviceSpace {
 public:
  using memory_space = TestDeviceSpace;
  using execution_space = TestDevice;
  using device_type = TestDevice::device_type;
  using size_type = std::size_t;

  void* allocate(std::size_t bytes) const;
  void* allocate(const char*, std::size_t bytes, std::size_t = 0) const { return allocate(bytes); }
  /// Waits for all kernels first, as cudaFree does.
  void deallocate(void* pointer, std::size_t bytes) const;
  void deallocate(const char*, void* pointer, std::size_t bytes, std::size_t = 0) const { deallocate(pointer, bytes); }
  static constexpr const char* name() { return "KomvosTest::TestDeviceSpace"; }

  static bool contains(const void* pointer);
  /// The same byte where the host may access it at any time; for MPI only.
  static void* alias(const void* pointer);
  /// Bytes that are allocated now.
  static std::size_t allocatedBytes();
};

class TestPinnedSpace {
 public:
  using memory_space = TestPinnedSpace;
  using execution_space = Kokkos::DefaultHostExecutionSpace;
  using device_type = Kokkos::Device<execution_space, TestPinnedSpace>;
  using size_type = std::size_t;

  void* allocate(std::size_t bytes) const;
  void* allocate(const char*, std::size_t bytes, std::size_t = 0) const { return allocate(bytes); }
  void deallocate(void* pointer, std::size_t bytes) const;
  void deallocate(const char*, void* pointer, std::size_t bytes, std::size_t = 0) const { deallocate(pointer, bytes); }
  static constexpr const char* name() { return "KomvosTest::TestPinnedSpace"; }
};

/// Device memory can be accessed while one of these lives.
class OpenDeviceMemory {
 public:
  OpenDeviceMemory();
  ~OpenDeviceMemory();
  OpenDeviceMemory(const OpenDeviceMemory&) = delete;
  OpenDeviceMemory& operator=(const OpenDeviceMemory&) = delete;
};

/// Copies after all that is queued, and returns when it is done.
void copyNow(void* to, const void* from, std::size_t bytes);
/// Copies in the queue of `device`: the host's memory is read or written then.
void copyQueued(const TestDevice& device, void* to, const void* from, std::size_t bytes);

/// What MPI calls do with device pointers: false, the default, ends the program; true is GPU-aware MPI. Messages that
/// are received there fill the memory with 0xFF when the receive starts: what was there must not be needed any more.
void letMpiUseDeviceMemory(bool allowed);
/// Addresses that MPI was given for persistent messages since the last call.
struct MpiAddresses {
  long onHost = 0;
  long onDevice = 0;
};
MpiAddresses takeMpiAddresses();

}  // namespace KomvosTest
