#include "Komvos_PrivateComm.hpp"

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

PrivateComm::PrivateComm(MPI_Comm parent) {
  mpiCheck(MPI_Comm_dup(parent, &comm_), "MPI_Comm_dup");
  mpiCheck(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  mpiCheck(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  mpiCheck(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  void* bound = nullptr;
  int found = 0;
  mpiCheck(MPI_Comm_get_attr(comm_, MPI_TAG_UB, &bound, &found), "MPI_Comm_get_attr");
  if (found) {
    maxTag_ = *static_cast<int*>(bound);
  }
}

PrivateComm::~PrivateComm() {
  attached_.clear();
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized && comm_ != MPI_COMM_NULL) {
    MPI_Comm_free(&comm_);
  }
}

int PrivateComm::takeTags(int count) {
  if (nextTag_ > maxTag_ - count) {
    nextTag_ = 1;
  }
  const int first = nextTag_;
  nextTag_ += count;
  return first;
}

}  // namespace Komvos::Impl
