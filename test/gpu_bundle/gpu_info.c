/* Prints the NVIDIA driver and its GPUs as JSON. Where none can be used, prints the reason instead; exit status 3.
 * The driver is loaded when the program runs: it starts on any machine. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void give_up(const char *reason) {
  printf("%s\n", reason);
  exit(3);
}

static void *driver;

static void *function(const char *name) {
  void *found = dlsym(driver, name);
  char text[200];
  if (found == NULL) {
    snprintf(text, sizeof text, "the driver's libcuda.so.1 has no %s: it is too old", name);
    give_up(text);
  }
  return found;
}

static void check(int error, const char *call) {
  const char *name = "an error without a name";
  char text[300];
  if (error != 0) {
    ((int (*)(int, const char **))function("cuGetErrorName"))(error, &name);
    snprintf(text, sizeof text, "libcuda.so.1 is here, but %s says %s (%d)", call, name, error);
    give_up(text);
  }
}

int main(void) {
  enum { major_of_device = 75, minor_of_device = 76, processors_of_device = 16, managed_by_both = 89 };
  char text[300];
  int version = 0, count = 0, i;
  driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (driver == NULL) {
    snprintf(text, sizeof text, "no NVIDIA driver: %s", dlerror());
    give_up(text);
  }
  check(((int (*)(unsigned))function("cuInit"))(0), "cuInit");
  check(((int (*)(int *))function("cuDriverGetVersion"))(&version), "cuDriverGetVersion");
  check(((int (*)(int *))function("cuDeviceGetCount"))(&count), "cuDeviceGetCount");
  if (count == 0) {
    give_up("the driver is here, but it sees no GPU");
  }
  printf("{\"driver_supports_cuda\": \"%d.%d\", \"gpus\": [", version / 1000, version % 1000 / 10);
  for (i = 0; i < count; ++i) {
    int (*attribute)(int *, int, int) = function("cuDeviceGetAttribute");
    int device = 0, major = 0, minor = 0, processors = 0, managed = 0;
    size_t bytes = 0;
    check(((int (*)(int *, int))function("cuDeviceGet"))(&device, i), "cuDeviceGet");
    check(((int (*)(char *, int, int))function("cuDeviceGetName"))(text, sizeof text, device), "cuDeviceGetName");
    check(((int (*)(size_t *, int))function("cuDeviceTotalMem_v2"))(&bytes, device), "cuDeviceTotalMem");
    check(attribute(&major, major_of_device, device), "cuDeviceGetAttribute");
    check(attribute(&minor, minor_of_device, device), "cuDeviceGetAttribute");
    check(attribute(&processors, processors_of_device, device), "cuDeviceGetAttribute");
    check(attribute(&managed, managed_by_both, device), "cuDeviceGetAttribute");
    printf("%s{\"name\": \"%s\", \"compute_capability\": \"%d.%d\", \"multiprocessors\": %d, \"memory_bytes\": %zu, "
           "\"concurrent_managed_access\": %s}",
           i == 0 ? "" : ", ", text, major, minor, processors, bytes, managed ? "true" : "false");
  }
  printf("]}\n");
  return 0;
}
