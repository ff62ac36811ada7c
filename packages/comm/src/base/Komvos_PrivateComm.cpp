#include "Komvos_PrivateComm.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_Reduction.hpp"

// How this works. A duplicate, and the shared memory that is kept with it, can only be freed by all its ranks together.
// But each rank destroys its exchanges, and frees the user's communicator, when it likes: a level of a hierarchy goes
// with the last Teuchos::RCP on this rank. So neither frees the duplicate. The registry owns them all;
// MPI_Comm_free, which calls onParentFreed(), only marks the one that belongs to it. They are freed at points that
// ranks reach together anyway:
//   where a duplicate is made, or options are agreed on: ranks learn in a reduction that is needed there whether one of
//     them has marked a duplicate. If so, freeAbandoned() gathers the names of those that each rank has marked and does
//     not use. A name that is heard as often as the duplicate has ranks is that of one which nobody needs.
//   MPI_Finalize, which calls onFinalize(): all are freed, but for those that still have an exchange on some rank.

namespace Komvos::Impl {

namespace {

/// All there are, in the order in which they were made, which is the same on all ranks that share them. The vector is
/// never destroyed: what cannot be freed by all ranks together is not freed.
std::vector<std::shared_ptr<PrivateComm>>& registry() {
  static auto& all = *new std::vector<std::shared_ptr<PrivateComm>>;
  return all;
}

void dropFreed() {
  auto& all = registry();
  all.erase(std::remove(all.begin(), all.end(), nullptr), all.end());
}

bool inUse(const std::shared_ptr<PrivateComm>& one) { return one.use_count() > 1; }

/// Frees it on all ranks, or on none if it is in use on one. \note Collective.
void freeIfUnused(std::shared_ptr<PrivateComm>& one) {
  int used = inUse(one) ? 1 : 0;
  const int code = MPI_Allreduce(MPI_IN_PLACE, &used, 1, MPI_INT, MPI_MAX, one->get());
  if (code == MPI_SUCCESS && used == 0) {
    one.reset();
  }
}

/// MPI_Finalize begins with the attributes of MPI_COMM_SELF, when all of MPI still works.
int onFinalize(MPI_Comm, int, void*, void*) {
  for (std::shared_ptr<PrivateComm>& one : registry()) {
    freeIfUnused(one);
  }
  dropFreed();
  return MPI_SUCCESS;
}

int createKeyval(MPI_Comm_delete_attr_function* onDelete) {
  int key = MPI_KEYVAL_INVALID;
  mpiCheck(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, onDelete, &key, nullptr), "MPI_Comm_create_keyval");
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

/// For a new duplicate. Random: if each rank counted those that it makes, two could have the same number.
std::uint64_t newName() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

/// The numbers of all ranks. \note Collective.
std::vector<std::uint64_t> gathered(const std::vector<std::uint64_t>& mine, MPI_Comm comm, int size) {
  const int count = static_cast<int>(mine.size());
  std::vector<int> counts(size);
  mpiCheck(MPI_Allgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, comm), "MPI_Allgather");
  std::vector<int> offsets(size);
  std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), 0);
  std::vector<std::uint64_t> all(offsets.back() + counts.back());
  mpiCheck(
      MPI_Allgatherv(mine.data(), count, MPI_UINT64_T, all.data(), counts.data(), offsets.data(), MPI_UINT64_T, comm),
      "MPI_Allgatherv");
  return all;
}

}  // namespace

/// The user's communicator is being freed, or the duplicate itself, which then is in the registry no more. MPI_Finalize
/// calls this too, for MPI_COMM_WORLD, when `value` is gone: so it is looked for, and not dereferenced.
int PrivateComm::onParentFreed(MPI_Comm, int, void* value, void*) {
  for (const std::shared_ptr<PrivateComm>& one : registry()) {
    if (one.get() == value) {
      one->abandoned_ = true;
    }
  }
  return MPI_SUCCESS;
}

std::shared_ptr<PrivateComm> PrivateComm::of(MPI_Comm parent) {
  static const int key = createKeyval(onParentFreed);
  void* value = nullptr;
  int found = 0;
  mpiCheck(MPI_Comm_get_attr(parent, key, &value, &found), "MPI_Comm_get_attr");
  if (found) {
    return static_cast<PrivateComm*>(value)->shared_from_this();
  }
  callOnFinalize();
  std::shared_ptr<PrivateComm> made(new PrivateComm(parent));
  registry().push_back(made);
  mpiCheck(MPI_Comm_set_attr(made->comm_, key, made.get()), "MPI_Comm_set_attr");
  mpiCheck(MPI_Comm_set_attr(parent, key, made.get()), "MPI_Comm_set_attr");
  return made;
}

PrivateComm::PrivateComm(MPI_Comm parent) : tags_(firstPoolTag, largestTag(parent)) {
  mpiCheck(MPI_Comm_dup(parent, &comm_), "MPI_Comm_dup");
  mpiCheck(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  mpiCheck(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  mpiCheck(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  name_ = rank_ == 0 ? newName() : 0;
  std::uint64_t anyAbandoned = someAreAbandoned() ? 1 : 0;
  Reduction round;
  round.maximum(name_);
  round.maximum(anyAbandoned);
  round.run(*this);
  if (anyAbandoned != 0) {
    freeAbandoned();
  }
}

PrivateComm::~PrivateComm() {
  attached_.clear();
  MPI_Comm_free(&comm_);
}

bool PrivateComm::someAreAbandoned() {
  const auto& all = registry();
  return std::any_of(all.begin(), all.end(), [](const auto& one) { return one->abandoned_; });
}

void PrivateComm::freeAbandoned() {
  auto& all = registry();
  std::vector<std::uint64_t> unused;
  for (const std::shared_ptr<PrivateComm>& one : all) {
    if (one->abandoned_ && !inUse(one)) {
      unused.push_back(one->name_);
    }
  }
  std::map<std::uint64_t, int> ranksThatNeedItNoMore;  // by name
  for (const std::uint64_t name : gathered(unused, comm_, size_)) {
    ++ranksThatNeedItNoMore[name];
  }
  // In the order of the registry: where two have ranks in common, all free the same one first.
  for (std::shared_ptr<PrivateComm>& one : all) {
    const auto found = ranksThatNeedItNoMore.find(one->name_);
    if (found != ranksThatNeedItNoMore.end() && found->second == one->size_) {
      one.reset();
    }
  }
  dropFreed();
}

}  // namespace Komvos::Impl
