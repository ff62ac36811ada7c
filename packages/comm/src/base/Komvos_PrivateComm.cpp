#include "Komvos_PrivateComm.hpp"

#include <algorithm>
#include <vector>

#include "Komvos_Error.hpp"

// How this works. A communicator, and the shared memory that is kept with it, can only be freed by all ranks together.
// So no destructor of an exchange does it, for one rank may destroy its exchanges long before the others. The registry
// owns every PrivateComm, and lets go of it at two points only that all ranks reach:
//   MPI_Comm_free of the user's communicator, where MPI calls onParentFreed();
//   MPI_Finalize, which calls onFinalize().
// There the ranks agree on whether one of them still has an exchange. If so, all keep the PrivateComm: after
// MPI_Comm_free until MPI_Finalize, after that for good.

namespace Komvos::Impl {

namespace {

/// All there are, in the order in which they were made, which is the same on all ranks that share them. The vector is
/// never destroyed: what cannot be freed by all ranks together is not freed.
std::vector<std::shared_ptr<PrivateComm>>& registry() {
  static auto& all = *new std::vector<std::shared_ptr<PrivateComm>>;
  return all;
}

/// Frees it on all ranks, or on none if it is in use on one. \note Collective.
void freeIfUnused(std::shared_ptr<PrivateComm>& one) {
  int inUse = one.use_count() > 1 ? 1 : 0;
  const int code = MPI_Allreduce(MPI_IN_PLACE, &inUse, 1, MPI_INT, MPI_MAX, one->get());
  if (code == MPI_SUCCESS && inUse == 0) {
    one.reset();
  }
}

/// \param which null: all of them, one after the other
void freeUnused(const PrivateComm* which) {
  auto& all = registry();
  for (std::shared_ptr<PrivateComm>& one : all) {
    if (which == nullptr || which == one.get()) {
      freeIfUnused(one);
    }
  }
  all.erase(std::remove(all.begin(), all.end(), nullptr), all.end());
}

/// The user's communicator is being freed. MPI_Finalize calls this too, for MPI_COMM_WORLD; that is too late.
int onParentFreed(MPI_Comm, int, void* value, void*) {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) {
    freeUnused(static_cast<PrivateComm*>(value));
  }
  return MPI_SUCCESS;
}

/// MPI_Finalize begins with the attributes of MPI_COMM_SELF, when all of MPI still works.
int onFinalize(MPI_Comm, int, void*, void*) {
  freeUnused(nullptr);
  return MPI_SUCCESS;
}

int createKeyval(MPI_Comm_delete_attr_function* onDelete) {
  int key = MPI_KEYVAL_INVALID;
  mpiCheck(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, onDelete, &key, nullptr), "MPI_Comm_create_keyval");
  return key;
}

int parentKeyval() {
  static const int key = createKeyval(onParentFreed);
  return key;
}

void callOnFinalize() {
  static const int key = [] {
    const int created = createKeyval(onFinalize);
    mpiCheck(MPI_Comm_set_attr(MPI_COMM_SELF, created, nullptr), "MPI_Comm_set_attr");
    return created;
  }();
  static_cast<void>(key);
}

constexpr int firstPoolTag = PrivateComm::knownSetupTag + 1;  // 0: Backoff looks for a message that nobody sends

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
  mpiCheck(MPI_Comm_get_attr(parent, parentKeyval(), &value, &found), "MPI_Comm_get_attr");
  if (found) {
    return static_cast<PrivateComm*>(value)->shared_from_this();
  }
  callOnFinalize();
  registry().push_back(std::shared_ptr<PrivateComm>(new PrivateComm(parent)));
  mpiCheck(MPI_Comm_set_attr(parent, parentKeyval(), registry().back().get()), "MPI_Comm_set_attr");
  return registry().back();
}

PrivateComm::PrivateComm(MPI_Comm parent) : tags_(firstPoolTag, largestTag(parent)) {
  mpiCheck(MPI_Comm_dup(parent, &comm_), "MPI_Comm_dup");
  mpiCheck(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  mpiCheck(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  mpiCheck(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
}

PrivateComm::~PrivateComm() {
  attached_.clear();
  MPI_Comm_free(&comm_);
}

}  // namespace Komvos::Impl
