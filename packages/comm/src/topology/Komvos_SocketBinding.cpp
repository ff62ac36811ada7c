#include "Komvos_SocketBinding.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <memory>
#include <sstream>

// How this works. Linux lists the processors of each package and of each NUMA node in small files. A thread is bound to
// the one whose list has all processors that the thread may use. hwloc would say the same, but it reads hundreds of
// files for each processor: that takes seconds where many ranks of a large node do so at once.
namespace Komvos::Impl {

namespace {

/// Numbers in ascending order from a list such as "0-3,8,10-11"; none if there is no such file.
std::vector<int> numbersIn(const std::string& path) {
  std::vector<int> numbers;
  std::ifstream file(path);
  for (std::string range; std::getline(file, range, ',');) {
    std::istringstream text(range);
    int first = 0, last = 0;
    char dash = 0;
    if (!(text >> first)) {
      break;
    }
    last = text >> dash >> last ? last : first;
    for (int number = first; number <= last; ++number) {
      numbers.push_back(number);
    }
  }
  return numbers;
}

bool hasAll(const std::vector<int>& list, const std::vector<int>& processors) {
  return std::all_of(processors.begin(), processors.end(),
                     [&](int one) { return std::binary_search(list.begin(), list.end(), one); });
}

struct FreeCpuSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};

std::vector<int> processorsOfThisThread() {
  std::vector<int> processors;
  const int most = 1 << 20;
  for (int size = CPU_SETSIZE; size <= most; size *= 2) {
    const std::unique_ptr<cpu_set_t, FreeCpuSet> set(CPU_ALLOC(size));
    const std::size_t bytes = CPU_ALLOC_SIZE(size);
    if (set != nullptr && sched_getaffinity(0, bytes, set.get()) == 0) {
      for (int one = 0; one < size; ++one) {
        if (CPU_ISSET_S(one, bytes, set.get())) {
          processors.push_back(one);
        }
      }
      return processors;
    }
    if (errno != EINVAL) {  // else the system has more processors
      break;
    }
  }
  return processors;
}

}  // namespace

SocketBinding bindingOf(const std::vector<int>& processors, const std::string& system) {
  SocketBinding binding;
  if (processors.empty()) {
    return binding;
  }
  const std::string topology = system + "/cpu/cpu" + std::to_string(processors.front()) + "/topology/";
  for (const char* list : {"package_cpus_list", "core_siblings_list"}) {  // the second before Linux 5.3
    if (hasAll(numbersIn(topology + list), processors)) {
      const std::vector<int> package = numbersIn(topology + "physical_package_id");
      binding.package = package.empty() ? -1 : package.front();
      break;
    }
  }
  for (const int node : numbersIn(system + "/node/online")) {
    if (hasAll(numbersIn(system + "/node/node" + std::to_string(node) + "/cpulist"), processors)) {
      binding.numaNode = node;
      break;
    }
  }
  return binding;
}

SocketBinding bindingOfThisThread() { return bindingOf(processorsOfThisThread()); }

}  // namespace Komvos::Impl
