// MPI as the test device sees it: put before MPI's functions through the PMPI interface. Only calls that an exchange
// makes with buffers are here.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "test_device.hpp"

namespace KomvosTest {

namespace {

bool mpiMayUseDevice = false;
MpiAddresses seen;

struct Piece {
  void* data;
  std::size_t bytes;
};
std::map<MPI_Request, Piece>& deviceReceives() {  // persistent ones into device memory
  static std::map<MPI_Request, Piece> receives;
  return receives;
}

/// What MPI gets for a pointer of the caller.
void* forMpi(const void* buffer, const char* function) {
  if (!TestDeviceSpace::contains(buffer)) {
    return const_cast<void*>(buffer);
  }
  if (!mpiMayUseDevice) {
    std::fprintf(stderr, "%s is given device memory, and MPI is not GPU-aware\n", function);
    std::abort();
  }
  return TestDeviceSpace::alias(buffer);
}

void count(const void* buffer) { ++(TestDeviceSpace::contains(buffer) ? seen.onDevice : seen.onHost); }

void willBeOverwritten(MPI_Request request) {
  const auto found = deviceReceives().find(request);
  if (found != deviceReceives().end()) {
    std::memset(found->second.data, 0xFF, found->second.bytes);
  }
}

}  // namespace

void letMpiUseDeviceMemory(bool allowed) { mpiMayUseDevice = allowed; }
MpiAddresses takeMpiAddresses() { return std::exchange(seen, {}); }

}  // namespace KomvosTest

using KomvosTest::TestDeviceSpace;

extern "C" {

int MPI_Send_init(const void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                  MPI_Request* request) {
  KomvosTest::count(buffer);
  const int code = PMPI_Send_init(KomvosTest::forMpi(buffer, "MPI_Send_init"), count, type, peer, tag, comm, request);
  KomvosTest::deviceReceives().erase(*request);
  return code;
}

int MPI_Recv_init(void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
  KomvosTest::count(buffer);
  void* const data = KomvosTest::forMpi(buffer, "MPI_Recv_init");
  const int code = PMPI_Recv_init(data, count, type, peer, tag, comm, request);
  KomvosTest::deviceReceives().erase(*request);
  if (data != buffer) {
    int size = 0;
    PMPI_Type_size(type, &size);
    KomvosTest::deviceReceives()[*request] = {data, static_cast<std::size_t>(count) * size};
  }
  return code;
}

int MPI_Start(MPI_Request* request) {
  KomvosTest::willBeOverwritten(*request);
  return PMPI_Start(request);
}

int MPI_Startall(int count, MPI_Request requests[]) {
  for (int i = 0; i < count; ++i) {
    KomvosTest::willBeOverwritten(requests[i]);
  }
  return PMPI_Startall(count, requests);
}

int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request* request) {
  return PMPI_Isend(KomvosTest::forMpi(buffer, "MPI_Isend"), count, type, peer, tag, comm, request);
}

int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
  return PMPI_Irecv(KomvosTest::forMpi(buffer, "MPI_Irecv"), count, type, peer, tag, comm, request);
}

int MPI_Mrecv(void* buffer, int count, MPI_Datatype type, MPI_Message* message, MPI_Status* status) {
  return PMPI_Mrecv(KomvosTest::forMpi(buffer, "MPI_Mrecv"), count, type, message, status);
}

}  // extern "C"
