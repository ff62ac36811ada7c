/// \file mpi_counter.hpp
/// Counts what a test program asks of MPI and of the heap. The library puts itself before MPI's functions (through the
/// PMPI interface) and before malloc, so that calls from any library are seen.
#pragma once

#include <string>
#include <vector>

namespace KomvosTest {

/// One message that a send call started.
struct SentMessage {
  int peer;
  long bytes;
  bool persistent;  ///< by MPI_Start or MPI_Startall

  friend bool operator==(const SentMessage& a, const SentMessage& b) {
    return a.peer == b.peer && a.bytes == b.bytes && a.persistent == b.persistent;
  }
  friend bool operator<(const SentMessage& a, const SentMessage& b) {
    return a.peer != b.peer ? a.peer < b.peer : a.bytes != b.bytes ? a.bytes < b.bytes : a.persistent < b.persistent;
  }
};

/// What happened on this rank, in this thread, between startCounting() and stopCounting().
struct Counts {
  std::vector<SentMessage> sent;  ///< in order
  long receivesPosted = 0;        ///< persistent ones that were started, and others
  long requestsCreated = 0;       ///< non-blocking calls and *_init calls
  long requestsFreed = 0;
  long communicators = 0;      ///< calls that make or free one
  long datatypes = 0;          ///< calls that make or free one
  long collectives = 0;        ///< whose data do not grow with the number of ranks
  long reductionsStarted = 0;  ///< without waiting: MPI_Iallreduce
  long gathers = 0;            ///< collectives with data of or for each rank
  long probes = 0;
  long allocations = 0;  ///< malloc and its relatives, outside of MPI calls
  long allocatedBytes = 0;
  long allocationsInMpi = 0;
  std::vector<std::string> allocatedBy;  ///< call stacks of the first few, outside of MPI calls
};

/// \param withStacks fills Counts::allocatedBy
void startCounting(bool withStacks = false);
Counts stopCounting();

/// False where malloc cannot be counted: with a sanitizer, or another C library than glibc.
bool allocationsAreCounted();

}  // namespace KomvosTest
