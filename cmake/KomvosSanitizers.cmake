# What tests need that are compiled with -fsanitize=... (presets debug and tsan). Two names are set:
#   KOMVOS_SANITIZERS             true if there is a sanitizer
#   KOMVOS_SANITIZER_ENVIRONMENT  for each test
# komvos_link_for_sanitizers(<executable>) is called for each test executable.
set(KOMVOS_SANITIZERS FALSE)
set(KOMVOS_SANITIZER_ENVIRONMENT "")
set(komvos_sanitizer_files "${PROJECT_SOURCE_DIR}/packages/comm/test/sanitizers")

if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=[a-z,]*(address|undefined)")
  set(KOMVOS_SANITIZERS TRUE)
  list(APPEND KOMVOS_SANITIZER_ENVIRONMENT
    "LSAN_OPTIONS=suppressions=${komvos_sanitizer_files}/leaks.txt:print_suppressions=0"
    "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1:suppressions=${komvos_sanitizer_files}/undefined.txt")
endif()

# The thread sanitizer does not know how GCC's libgomp lets threads wait for each other. LLVM's libomp has libgomp's
# functions too, and a tool (Archer) that tells the sanitizer. It comes before libgomp in the executable, so that calls
# from Kokkos, ours or in a library, get there. What libraries do that were compiled without the sanitizer is ignored.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=[a-z,]*thread")
  set(KOMVOS_SANITIZERS TRUE)
  file(GLOB folders /usr/lib/llvm-*/lib)
  find_library(KomvosSanitizers_OPENMP NAMES omp PATHS ${folders})
  find_file(KomvosSanitizers_ARCHER NAMES libarcher.so PATHS ${folders})
  mark_as_advanced(KomvosSanitizers_OPENMP KomvosSanitizers_ARCHER)
  if(NOT KomvosSanitizers_OPENMP OR NOT KomvosSanitizers_ARCHER)
    message(FATAL_ERROR "The thread sanitizer needs LLVM's OpenMP and its tool Archer; on Debian: apt-get install libomp-14-dev")
  endif()
  list(APPEND KOMVOS_SANITIZER_ENVIRONMENT
    "OMP_TOOL_LIBRARIES=${KomvosSanitizers_ARCHER}"
    "TSAN_OPTIONS=ignore_noninstrumented_modules=1:suppressions=${komvos_sanitizer_files}/threads.txt")
endif()

function(komvos_link_for_sanitizers executable)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=[a-z,]*address")
    target_sources(${executable} PRIVATE "${komvos_sanitizer_files}/keep_modules.cpp")
    target_link_options(${executable} PRIVATE -Wl,--export-dynamic-symbol=dlclose)
  endif()
  if(KomvosSanitizers_OPENMP)
    target_link_libraries(${executable} PRIVATE
      -Wl,--push-state,--no-as-needed ${KomvosSanitizers_OPENMP} -Wl,--pop-state)
  endif()
endfunction()
