#include "Komvos_SocketBinding.hpp"

#include <hwloc.h>

#include <memory>

namespace Komvos::Impl {

namespace {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, DestroyTopology>;

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

}  // namespace

int socketOfThisThread() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) {
    return -1;
  }
  const Topology topology(raw);
  const Bitmap bound(hwloc_bitmap_alloc());
  // With what this process may not use, so that all processes of a node number sockets alike.
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (hwloc_topology_load(raw) != 0 || hwloc_get_cpubind(raw, bound.get(), HWLOC_CPUBIND_THREAD) != 0) {
    return -1;
  }
  const bool severalPackages = hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_PACKAGE) > 1;
  const hwloc_obj_type_t type = severalPackages ? HWLOC_OBJ_PACKAGE : HWLOC_OBJ_NUMANODE;
  for (hwloc_obj_t socket = nullptr; (socket = hwloc_get_next_obj_by_type(raw, type, socket)) != nullptr;) {
    if (hwloc_bitmap_isincluded(bound.get(), socket->cpuset)) {
      return static_cast<int>(socket->logical_index);
    }
  }
  return -1;
}

}  // namespace Komvos::Impl
