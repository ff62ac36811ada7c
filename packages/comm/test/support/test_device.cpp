#include "test_device.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <new>
#include <utility>
#include <vector>

// How this works. One memory file holds all device memory of the process, and is mapped twice: without access rights
// where pointers of users point, and with all rights where only MPI (device_mpi.cpp) looks. Running a queue gives
// rights to the first mapping, and takes them away again. Pinned memory is the reverse: it has no rights while a kernel
// runs. Where the processor has protection keys (pkeys(7)), that takes one instruction. Elsewhere the rights of pages
// change, of those that were ever used, which takes half of the time of a test.
//
// Keys are for a thread, so they are used where kernels run on one thread. Other threads, if there are any, begin with
// its rights.

namespace KomvosTest {

namespace {

constexpr std::size_t arenaBytes = std::size_t{1} << 30;  // of address space; pages are taken when they are touched

/// Whole pages of one address range.
class Pages {
 public:
  Pages(char* start, int rights) : start_(start), rights_(rights), key_(keyFor(start)) {
    free_[0] = arenaBytes;
    apply();
  }

  std::size_t allocate(std::size_t bytes) {
    const std::size_t wanted = wholePages(bytes);
    const auto piece = std::find_if(free_.begin(), free_.end(), [&](const auto& p) { return p.second >= wanted; });
    if (piece == free_.end()) {
      throw std::bad_alloc();
    }
    const auto [offset, length] = *piece;
    free_.erase(piece);
    if (length > wanted) {
      free_[offset + wanted] = length - wanted;
    }
    allocated_ += wanted;
    if (offset + wanted > used_) {
      used_ = offset + wanted;
      apply();
    }
    return offset;
  }

  void deallocate(const void* pointer, std::size_t bytes) {
    const std::size_t length = wholePages(bytes);
    allocated_ -= length;
    const auto piece = free_.emplace(static_cast<const char*>(pointer) - start_, length).first;
    mergeWithNext(piece);
    if (piece != free_.begin()) {
      mergeWithNext(std::prev(piece));
    }
    used_ = free_.rbegin()->first + free_.rbegin()->second == arenaBytes ? free_.rbegin()->first : arenaBytes;
  }

  void protect(int rights) {
    if (rights != rights_) {
      rights_ = rights;
      apply();
    }
  }

  char* start() const { return start_; }
  std::size_t allocated() const { return allocated_; }

 private:
  using Free = std::map<std::size_t, std::size_t>;  // offset -> bytes

  /// \return a protection key that the arena has got, or -1
  static int keyFor(char* start) {
    const bool hasThreads = Kokkos::DefaultHostExecutionSpace().concurrency() > 1;
    if (hasThreads || std::getenv("TEST_DEVICE_WITHOUT_KEYS") != nullptr) {
      return -1;
    }
    const int key = pkey_alloc(0, 0);
    if (key >= 0 && pkey_mprotect(start, arenaBytes, PROT_READ | PROT_WRITE, key) != 0) {
      Kokkos::abort("the memory of the test device cannot be protected");
    }
    return key;
  }

  void apply() const {
    if (key_ >= 0) {
      pkey_set(key_, rights_ == PROT_NONE ? PKEY_DISABLE_ACCESS : 0);
    } else if (used_ > 0 && mprotect(start_, used_, rights_) != 0) {
      Kokkos::abort("the memory of the test device cannot be protected");
    }
  }

  void mergeWithNext(Free::iterator piece) {
    const auto next = std::next(piece);
    if (next != free_.end() && piece->first + piece->second == next->first) {
      piece->second += next->second;
      free_.erase(next);
    }
  }
  static std::size_t wholePages(std::size_t bytes) {
    static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
  }

  char* start_;
  int rights_;
  int key_;
  std::size_t used_ = 0;  // from the start; what follows was used, if at all, and has the rights of that time
  std::size_t allocated_ = 0;
  Free free_;
};

constexpr int noRights = PROT_NONE;
constexpr int allRights = PROT_READ | PROT_WRITE;

char* mapped(int rights, int flags, int file) {
  void* const where = mmap(nullptr, arenaBytes, rights, flags | MAP_NORESERVE, file, 0);
  if (where == MAP_FAILED) {
    Kokkos::abort("the memory of the test device cannot be mapped");
  }
  return static_cast<char*>(where);
}

int memoryFile() {
  static const int file = memfd_create("Komvos test device", 0);
  if (file < 0 || ftruncate(file, static_cast<off_t>(arenaBytes)) != 0) {
    Kokkos::abort("no memory file for the test device");
  }
  return file;
}

Pages& devicePages() {
  static Pages pages(mapped(noRights, MAP_SHARED, memoryFile()), noRights);
  return pages;
}
/// The same memory for MPI.
char* aliasStart() {
  static char* const start = mapped(allRights, MAP_SHARED, memoryFile());
  return start;
}
Pages& pinnedPages() {
  static Pages pages(mapped(allRights, MAP_PRIVATE | MAP_ANONYMOUS, -1), allRights);
  return pages;
}

int timesOpened = 0;

}  // namespace

struct TestDevice::Queue {
  std::uint32_t id;
  std::deque<std::pair<Work, std::function<void()>>> work;

  static std::vector<std::weak_ptr<Queue>>& all() {
    static std::vector<std::weak_ptr<Queue>> queues;
    return queues;
  }
  static std::shared_ptr<Queue> make() {
    static std::uint32_t made = 0;
    auto queue = std::make_shared<Queue>();
    queue->id = made++;
    const auto isGone = [](const std::weak_ptr<Queue>& one) { return one.expired(); };
    all().erase(std::remove_if(all().begin(), all().end(), isGone), all().end());
    all().push_back(queue);
    return queue;
  }
  ~Queue() { run(); }

  void run() {
    if (work.empty()) {
      return;
    }
    const OpenDeviceMemory open;
    while (!work.empty()) {
      const auto [kind, next] = std::move(work.front());
      work.pop_front();
      pinnedPages().protect(kind == Work::kernel ? noRights : allRights);
      next();
    }
    pinnedPages().protect(allRights);
  }
};

TestDevice::TestDevice() {
  static const std::shared_ptr<Queue> standard = Queue::make();
  queue_ = standard;
}

TestDevice TestDevice::makeInstance() { return TestDevice(Queue::make()); }
void TestDevice::fence(const std::string&) const { queue_->run(); }
void TestDevice::enqueue(Work kind, std::function<void()> work) const {
  if (isRunning()) {
    Kokkos::abort("a kernel starts a kernel");
  }
  queue_->work.emplace_back(kind, std::move(work));
}
std::size_t TestDevice::numQueued() const { return queue_->work.size(); }
std::uint32_t TestDevice::impl_instance_id() const noexcept { return queue_->id; }
bool TestDevice::isRunning() { return timesOpened > 0; }

void TestDevice::impl_static_fence() {
  for (const std::weak_ptr<Queue>& queue : Queue::all()) {
    if (const auto alive = queue.lock()) {
      alive->run();
    }
  }
}

void* TestDeviceSpace::allocate(std::size_t bytes) const {
  const std::size_t offset = devicePages().allocate(bytes);
  std::memset(aliasStart() + offset, 0xFF, bytes);
  return devicePages().start() + offset;
}
void TestDeviceSpace::deallocate(void* pointer, std::size_t bytes) const {
  TestDevice::impl_static_fence();
  devicePages().deallocate(pointer, bytes);
}
bool TestDeviceSpace::contains(const void* pointer) {
  const char* const p = static_cast<const char*>(pointer);
  return p >= devicePages().start() && p < devicePages().start() + arenaBytes;
}
void* TestDeviceSpace::alias(const void* pointer) {
  return aliasStart() + (static_cast<const char*>(pointer) - devicePages().start());
}
std::size_t TestDeviceSpace::allocatedBytes() { return devicePages().allocated(); }

void* TestPinnedSpace::allocate(std::size_t bytes) const {
  void* const memory = pinnedPages().start() + pinnedPages().allocate(bytes);
  std::memset(memory, 0xFF, bytes);
  return memory;
}
void TestPinnedSpace::deallocate(void* pointer, std::size_t bytes) const {
  TestDevice::impl_static_fence();
  pinnedPages().deallocate(pointer, bytes);
}

OpenDeviceMemory::OpenDeviceMemory() {
  if (timesOpened++ == 0) {
    devicePages().protect(allRights);
  }
}
OpenDeviceMemory::~OpenDeviceMemory() {
  if (--timesOpened == 0) {
    devicePages().protect(noRights);
  }
}

void copyNow(void* to, const void* from, std::size_t bytes) {
  TestDevice::impl_static_fence();
  const OpenDeviceMemory open;
  std::memcpy(to, from, bytes);
}

void copyQueued(const TestDevice& device, void* to, const void* from, std::size_t bytes) {
  device.enqueue(TestDevice::Work::copy, [to, from, bytes] { std::memcpy(to, from, bytes); });
}

namespace {

/// Kokkos::fence() waits for this device too.
class Initializer : public Kokkos::Impl::ExecSpaceInitializerBase {
 public:
  void initialize(const Kokkos::InitArguments&) override {}
  void finalize(bool) override { TestDevice::impl_static_fence(); }
  void fence() override { TestDevice::impl_static_fence(); }
  void print_configuration(std::ostream&, bool) override {}
};

const int registered = Kokkos::Impl::initialize_space_factory<Initializer>("900_KomvosTestDevice");

}  // namespace

}  // namespace KomvosTest
