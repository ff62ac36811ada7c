// fault_on_purpose overrun|leak|overflow|race: does what a sanitizer must report, with Kokkos as our kernels use it.
#include <Kokkos_Core.hpp>
#include <cstdio>
#include <cstring>
#include <limits>

namespace {

using Space = Kokkos::DefaultHostExecutionSpace;
using List = Kokkos::View<int*, Kokkos::HostSpace>;

struct Count {
  List sum;
  void operator()(int i) const { sum(0) += i; }
};

/// All threads add to one number.
void race() {
  const List sum("sum", 1);
  Kokkos::parallel_for(Kokkos::RangePolicy<Space>(0, 100000), Count{sum});
  Space().fence();
  std::printf("%d\n", sum(0));
}

/// Past what Kokkos allocates: up to 64 bytes more than a list needs, for its alignment.
void overrun(int length) {
  const List list("list", length);
  std::printf("%d\n", list.data()[length + 24]);
}

void overflow(int number) { std::printf("%d\n", std::numeric_limits<int>::max() + number); }

void leak(int length) {
  int* volatile lost = new int[length];
  std::printf("%p\n", static_cast<void*>(lost));
  lost = nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard guard(argc, argv);
  const char* const fault = argc > 1 ? argv[1] : "";
  if (std::strcmp(fault, "race") == 0) {
    race();
  } else if (std::strcmp(fault, "overrun") == 0) {
    overrun(argc);
  } else if (std::strcmp(fault, "overflow") == 0) {
    overflow(argc);
  } else if (std::strcmp(fault, "leak") == 0) {
    leak(argc);
  }
}
