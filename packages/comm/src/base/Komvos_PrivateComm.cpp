#include "Komvos_PrivateComm.hpp"

#include <algorithm>

#include "Komvos_Error.hpp"

namespace Komvos::Impl {

namespace {

using Handle = std::shared_ptr<PrivateComm>;

int deleteAttribute(MPI_Comm, int, void* value, void*) {
  delete static_cast<Handle*>(value);
  return MPI_SUCCESS;
}

int keyval() {
  static const int key = [] {
    int created = MPI_KEYVAL_INVALID;
    mpiCheck(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deleteAttribute, &created, nullptr),
             "MPI_Comm_create_keyval");
    return created;
  }();
  return key;
}

constexpr int firstPoolTag = 3;  // after 0 (Backoff looks for a message that nobody sends) and the tags of set-up

int largestTag(MPI_Comm comm) {
  const int enough = 1 << 18;  // for tens of thousands of exchanges; bounds the pool's list
  void* bound = nullptr;
  int found = 0;
  mpiCheck(MPI_Comm_get_attr(comm, MPI_TAG_UB, &bound, &found), "MPI_Comm_get_attr");
  const int guaranteed = 32767;
  return std::min(found ? *static_cast<int*>(bound) : guaranteed, enough);
}

}  // namespace

std::shared_ptr<PrivateComm> PrivateComm::of(MPI_Comm parent) {
  void* value = nullptr;
  int found = 0;
  mpiCheck(MPI_Comm_get_attr(parent, keyval(), &value, &found), "MPI_Comm_get_attr");
  if (found) {
    return *static_cast<Handle*>(value);
  }
  auto* handle = new Handle(new PrivateComm(parent));
  mpiCheck(MPI_Comm_set_attr(parent, keyval(), handle), "MPI_Comm_set_attr");
  return *handle;
}

PrivateComm::PrivateComm(MPI_Comm parent) : tags_(firstPoolTag, largestTag(parent)) {
  mpiCheck(MPI_Comm_dup(parent, &comm_), "MPI_Comm_dup");
  mpiCheck(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  mpiCheck(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  mpiCheck(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
}

PrivateComm::~PrivateComm() {
  attached_.clear();
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized && comm_ != MPI_COMM_NULL) {
    MPI_Comm_free(&comm_);
  }
}

}  // namespace Komvos::Impl
