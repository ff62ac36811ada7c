# Build options; all have a default that works.
include(CMakeDependentOption)
option(Komvos_ENABLE_COMM "Build packages/comm, and with it whatever else is enabled" ON)
option(Komvos_ENABLE_TRILINOS "Build what needs Trilinos; OFF leaves Komvos::core, which needs MPI" ON)
cmake_dependent_option(Komvos_ENABLE_KRYLOV "Build packages/krylov (needs Belos)" ON Komvos_ENABLE_TRILINOS OFF)
cmake_dependent_option(Komvos_ENABLE_HMATRIX "Build packages/hmatrix" ON Komvos_ENABLE_TRILINOS OFF)
cmake_dependent_option(Komvos_ENABLE_MULTIGRID "Build packages/multigrid (needs MueLu and SuiteSparse's KLU)" ON
  Komvos_ENABLE_TRILINOS OFF)
cmake_dependent_option(Komvos_ENABLE_DIRECT_SOLVERS "Use MUMPS and SuperLU_DIST where they are installed" ON
  Komvos_ENABLE_MULTIGRID OFF)
cmake_dependent_option(Komvos_ENABLE_PROGRAM
  "Build the program komvos (needs MueLu, Belos, CLI11, nlohmann-json; Zoltan2 if there)" ON Komvos_ENABLE_TRILINOS OFF)
option(Komvos_ENABLE_TESTS "Build the tests (needs GoogleTest)" ${PROJECT_IS_TOP_LEVEL})
cmake_dependent_option(Komvos_ENABLE_BENCHMARKS "Build the benchmarks under perf/" ${PROJECT_IS_TOP_LEVEL}
  Komvos_ENABLE_TRILINOS OFF)
option(Komvos_ENABLE_DOCS "Add the target doc (needs Doxygen)" OFF)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

# Paths below the checkout count as relative ones, so that another clone finds what was compiled in this one.
find_program(Komvos_CCACHE ccache)
if(Komvos_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${Komvos_CCACHE}")
endif()

# Our own targets are compiled with warnings; Trilinos' headers are system headers and stay silent.
function(komvos_set_warnings target)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU,Clang>:-Wall -Wextra>)
endfunction()
