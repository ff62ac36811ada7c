#include "support/mpi_counter.hpp"

#include <cxxabi.h>
#include <execinfo.h>
#include <malloc.h>
#include <mpi.h>

#include <cerrno>
#include <cstdlib>
#include <unordered_map>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define KOMVOS_TEST_COUNTS_MALLOC 0
#else
#define KOMVOS_TEST_COUNTS_MALLOC 1
#endif

namespace KomvosTest {
namespace {

constexpr int maxStacks = 8;
constexpr int maxFrames = 32;

struct Stack {
  void* frames[maxFrames];
  int depth;
};

// Plain data of one thread, so that malloc can use it at any time.
thread_local bool counting = false;
thread_local bool withStacks = false;
thread_local int insideMpi = 0;
thread_local bool insideHook = false;
thread_local long allocations = 0;
thread_local long allocatedBytes = 0;
thread_local long allocationsInMpi = 0;
thread_local Stack stacks[maxStacks];
thread_local int numStacks = 0;

Counts counts;

struct PersistentSend {
  int peer;
  long bytes;
};
std::unordered_map<MPI_Request, PersistentSend>& persistentSends() {
  static std::unordered_map<MPI_Request, PersistentSend> map;
  return map;
}

/// Marks that MPI is at work: what it allocates is its own business.
struct Inside {
  Inside() { ++insideMpi; }
  ~Inside() { --insideMpi; }
  /// Whether the call comes from outside of MPI and counts.
  static bool counts() { return counting && insideMpi == 1; }
};

long bytesOf(int count, MPI_Datatype type) {
  int size = 0;
  PMPI_Type_size(type, &size);
  return static_cast<long>(count) * size;
}

void sent(int peer, long bytes, bool persistent) { counts.sent.push_back({peer, bytes, persistent}); }

void started(MPI_Request request) {
  const auto found = persistentSends().find(request);
  if (found == persistentSends().end()) {
    ++counts.receivesPosted;
  } else {
    sent(found->second.peer, found->second.bytes, true);
  }
}

[[maybe_unused]] void allocated(std::size_t bytes) {
  if (!counting || insideHook) {
    return;
  }
  if (insideMpi > 0) {
    ++allocationsInMpi;
    return;
  }
  ++allocations;
  allocatedBytes += static_cast<long>(bytes);
  if (withStacks && numStacks < maxStacks) {
    insideHook = true;
    Stack& stack = stacks[numStacks++];
    stack.depth = backtrace(stack.frames, maxFrames);
    insideHook = false;
  }
}

}  // namespace

namespace {

/// The function in a line of backtrace_symbols, "file(name+offset) [address]", without arguments.
std::string functionIn(const std::string& line) {
  const std::size_t first = line.find('(') + 1;
  const std::string mangled = line.substr(first, line.find_first_of("+)", first) - first);
  int status = 0;
  char* const name = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  const std::string full = name != nullptr ? name : mangled;
  std::free(name);
  return full.size() > 300 ? full.substr(0, 300) + "..." : full;
}

}  // namespace

void startCounting(bool stacksToo) {
  void* warmUp[2];
  backtrace(warmUp, 2);  // loads a library when called first
  counts = Counts();
  counts.sent.reserve(100000);
  allocations = allocatedBytes = allocationsInMpi = 0;
  numStacks = 0;
  withStacks = stacksToo;
  counting = true;
}

Counts stopCounting() {
  counting = false;
  counts.allocations = allocations;
  counts.allocatedBytes = allocatedBytes;
  counts.allocationsInMpi = allocationsInMpi;
  for (int i = 0; i < numStacks; ++i) {
    char** const names = backtrace_symbols(stacks[i].frames, stacks[i].depth);
    std::string text;
    for (int k = 0; names != nullptr && k < stacks[i].depth; ++k) {
      text += "  " + functionIn(names[k]) + "\n";
    }
    std::free(names);
    counts.allocatedBy.push_back(text);
  }
  return counts;
}

bool allocationsAreCounted() { return KOMVOS_TEST_COUNTS_MALLOC != 0; }

}  // namespace KomvosTest

// --- malloc ----------------------------------------------------------------------------------------------------------

#if KOMVOS_TEST_COUNTS_MALLOC
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  KomvosTest::allocated(size);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  KomvosTest::allocated(count * size);
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  KomvosTest::allocated(size);
  return __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) {
  KomvosTest::allocated(size);
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  KomvosTest::allocated(size);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** result, size_t alignment, size_t size) {
  KomvosTest::allocated(size);
  *result = __libc_memalign(alignment, size);
  return *result == nullptr ? ENOMEM : 0;
}
}
#endif

// --- MPI -------------------------------------------------------------------------------------------------------------

using KomvosTest::bytesOf;
using KomvosTest::counts;
using KomvosTest::Inside;
using KomvosTest::persistentSends;

extern "C" {

// Blocking sends.
#define KOMVOS_SEND(name)                                                                            \
  int MPI_##name(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) { \
    const Inside inside;                                                                             \
    if (Inside::counts()) {                                                                          \
      KomvosTest::sent(peer, bytesOf(count, type), false);                                           \
    }                                                                                                \
    return PMPI_##name(data, count, type, peer, tag, comm);                                          \
  }
KOMVOS_SEND(Send)
KOMVOS_SEND(Ssend)
KOMVOS_SEND(Rsend)
KOMVOS_SEND(Bsend)

// Non-blocking sends.
#define KOMVOS_ISEND(name)                                                                         \
  int MPI_##name(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, \
                 MPI_Request* request) {                                                           \
    const Inside inside;                                                                           \
    if (Inside::counts()) {                                                                        \
      KomvosTest::sent(peer, bytesOf(count, type), false);                                         \
      ++counts.requestsCreated;                                                                    \
    }                                                                                              \
    return PMPI_##name(data, count, type, peer, tag, comm, request);                               \
  }
KOMVOS_ISEND(Isend)
KOMVOS_ISEND(Issend)
KOMVOS_ISEND(Irsend)
KOMVOS_ISEND(Ibsend)

// Persistent sends: what they send is known when they are made, and counts when they are started.
#define KOMVOS_SEND_INIT(name)                                                                     \
  int MPI_##name(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, \
                 MPI_Request* request) {                                                           \
    const Inside inside;                                                                           \
    counts.requestsCreated += Inside::counts() ? 1 : 0;                                            \
    const int code = PMPI_##name(data, count, type, peer, tag, comm, request);                     \
    persistentSends()[*request] = {peer, bytesOf(count, type)};                                    \
    return code;                                                                                   \
  }
KOMVOS_SEND_INIT(Send_init)
KOMVOS_SEND_INIT(Ssend_init)
KOMVOS_SEND_INIT(Rsend_init)
KOMVOS_SEND_INIT(Bsend_init)

int MPI_Start(MPI_Request* request) {
  const Inside inside;
  if (Inside::counts()) {
    KomvosTest::started(*request);
  }
  return PMPI_Start(request);
}

int MPI_Startall(int count, MPI_Request* requests) {
  const Inside inside;
  for (int i = 0; i < count && Inside::counts(); ++i) {
    KomvosTest::started(requests[i]);
  }
  return PMPI_Startall(count, requests);
}

int MPI_Request_free(MPI_Request* request) {
  const Inside inside;
  counts.requestsFreed += Inside::counts() ? 1 : 0;
  persistentSends().erase(*request);
  return PMPI_Request_free(request);
}

// All others: counted in one field, if any, and marked as MPI's.
#define KOMVOS_CALL(name, field, arguments, names) \
  int MPI_##name arguments {                       \
    const Inside inside;                           \
    counts.field += Inside::counts() ? 1 : 0;      \
    return PMPI_##name names;                      \
  }
#define KOMVOS_PASS(name, arguments, names) \
  int MPI_##name arguments {                \
    const Inside inside;                    \
    return PMPI_##name names;               \
  }

KOMVOS_CALL(Recv_init, requestsCreated, (void* d, int n, MPI_Datatype t, int p, int g, MPI_Comm c, MPI_Request* r),
            (d, n, t, p, g, c, r))
int MPI_Irecv(void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
  const Inside inside;
  counts.receivesPosted += Inside::counts() ? 1 : 0;
  counts.requestsCreated += Inside::counts() ? 1 : 0;
  return PMPI_Irecv(data, count, type, peer, tag, comm, request);
}
KOMVOS_CALL(Recv, receivesPosted, (void* d, int n, MPI_Datatype t, int p, int g, MPI_Comm c, MPI_Status* s),
            (d, n, t, p, g, c, s))
int MPI_Sendrecv(const void* out, int outCount, MPI_Datatype outType, int to, int outTag, void* in, int inCount,
                 MPI_Datatype inType, int from, int inTag, MPI_Comm comm, MPI_Status* status) {
  const Inside inside;
  if (Inside::counts()) {
    KomvosTest::sent(to, bytesOf(outCount, outType), false);
    ++counts.receivesPosted;
  }
  return PMPI_Sendrecv(out, outCount, outType, to, outTag, in, inCount, inType, from, inTag, comm, status);
}

KOMVOS_PASS(Wait, (MPI_Request * r, MPI_Status* s), (r, s))
KOMVOS_PASS(Waitall, (int n, MPI_Request* r, MPI_Status* s), (n, r, s))
KOMVOS_PASS(Waitany, (int n, MPI_Request* r, int* i, MPI_Status* s), (n, r, i, s))
KOMVOS_PASS(Waitsome, (int n, MPI_Request* r, int* o, int* i, MPI_Status* s), (n, r, o, i, s))
KOMVOS_PASS(Test, (MPI_Request * r, int* f, MPI_Status* s), (r, f, s))
KOMVOS_PASS(Testall, (int n, MPI_Request* r, int* f, MPI_Status* s), (n, r, f, s))
KOMVOS_PASS(Testany, (int n, MPI_Request* r, int* i, int* f, MPI_Status* s), (n, r, i, f, s))
KOMVOS_PASS(Testsome, (int n, MPI_Request* r, int* o, int* i, MPI_Status* s), (n, r, o, i, s))
KOMVOS_PASS(Get_count, (const MPI_Status* s, MPI_Datatype t, int* n), (s, t, n))
KOMVOS_CALL(Probe, probes, (int p, int g, MPI_Comm c, MPI_Status* s), (p, g, c, s))
KOMVOS_CALL(Iprobe, probes, (int p, int g, MPI_Comm c, int* f, MPI_Status* s), (p, g, c, f, s))
KOMVOS_CALL(Mprobe, probes, (int p, int g, MPI_Comm c, MPI_Message* m, MPI_Status* s), (p, g, c, m, s))
KOMVOS_CALL(Improbe, probes, (int p, int g, MPI_Comm c, int* f, MPI_Message* m, MPI_Status* s), (p, g, c, f, m, s))

KOMVOS_CALL(Comm_dup, communicators, (MPI_Comm c, MPI_Comm* n), (c, n))
KOMVOS_CALL(Comm_split, communicators, (MPI_Comm c, int k, int o, MPI_Comm* n), (c, k, o, n))
KOMVOS_CALL(Comm_split_type, communicators, (MPI_Comm c, int t, int k, MPI_Info i, MPI_Comm* n), (c, t, k, i, n))
KOMVOS_CALL(Comm_create, communicators, (MPI_Comm c, MPI_Group g, MPI_Comm* n), (c, g, n))
KOMVOS_CALL(Comm_create_group, communicators, (MPI_Comm c, MPI_Group g, int t, MPI_Comm* n), (c, g, t, n))
KOMVOS_CALL(Comm_free, communicators, (MPI_Comm * c), (c))
KOMVOS_CALL(Type_contiguous, datatypes, (int n, MPI_Datatype t, MPI_Datatype* m), (n, t, m))
KOMVOS_CALL(Type_vector, datatypes, (int n, int b, int s, MPI_Datatype t, MPI_Datatype* m), (n, b, s, t, m))
KOMVOS_CALL(Type_commit, datatypes, (MPI_Datatype * t), (t))
KOMVOS_CALL(Type_free, datatypes, (MPI_Datatype * t), (t))

KOMVOS_CALL(Barrier, collectives, (MPI_Comm c), (c))
KOMVOS_CALL(Ibarrier, collectives, (MPI_Comm c, MPI_Request* r), (c, r))
KOMVOS_CALL(Bcast, collectives, (void* d, int n, MPI_Datatype t, int o, MPI_Comm c), (d, n, t, o, c))
KOMVOS_CALL(Allreduce, collectives, (const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
            (a, b, n, t, o, c))
KOMVOS_CALL(Iallreduce, reductionsStarted,
            (const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c, MPI_Request* r),
            (a, b, n, t, o, c, r))
KOMVOS_CALL(Reduce, collectives, (const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, int p, MPI_Comm c),
            (a, b, n, t, o, p, c))
KOMVOS_CALL(Scan, collectives, (const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
            (a, b, n, t, o, c))
KOMVOS_CALL(Gather, gathers, (const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u, int p, MPI_Comm c),
            (a, n, t, b, m, u, p, c))
KOMVOS_CALL(Gatherv, gathers,
            (const void* a, int n, MPI_Datatype t, void* b, const int* m, const int* o, MPI_Datatype u, int p,
             MPI_Comm c),
            (a, n, t, b, m, o, u, p, c))
KOMVOS_CALL(Scatter, gathers, (const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u, int p, MPI_Comm c),
            (a, n, t, b, m, u, p, c))
KOMVOS_CALL(Allgather, gathers, (const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u, MPI_Comm c),
            (a, n, t, b, m, u, c))
KOMVOS_CALL(Allgatherv, gathers,
            (const void* a, int n, MPI_Datatype t, void* b, const int* m, const int* o, MPI_Datatype u, MPI_Comm c),
            (a, n, t, b, m, o, u, c))
KOMVOS_CALL(Alltoall, gathers, (const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u, MPI_Comm c),
            (a, n, t, b, m, u, c))
KOMVOS_CALL(Alltoallv, gathers,
            (const void* a, const int* n, const int* s, MPI_Datatype t, void* b, const int* m, const int* o,
             MPI_Datatype u, MPI_Comm c),
            (a, n, s, t, b, m, o, u, c))
KOMVOS_CALL(Reduce_scatter, gathers, (const void* a, void* b, const int* n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
            (a, b, n, t, o, c))

}  // extern "C"
