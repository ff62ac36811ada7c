# komvos_add_mpi_tests(<executable> RANKS 1 2 3 ... [NAME name] [STAGED] [THREADS number] [ARGS ...] [LABELS ...]
#                      [TIMEOUT seconds])
# Runs one test binary once per number of ranks. A rank that hangs is ended by the time limit. STAGED: as on a GPU
# without GPU-aware MPI, with messages through host memory of their own; the test is called <name>.staged.np<ranks>.
find_package(GTest REQUIRED)
include(KomvosSanitizers)

# MPICH needs a hand on few cores, see packages/comm/test/support/yield_when_idle.cpp.
include(CheckCXXSymbolExists)
set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_CXX)
check_cxx_symbol_exists(MPICH_NUMVERSION mpi.h Komvos_MPI_IS_MPICH)
unset(CMAKE_REQUIRED_LIBRARIES)

# As many ranks as a test asks for on as few cores as there are: oversubscription is the normal case here. OpenMP
# threads that spin while they wait then stand in the way of those that work, by a factor of 100. Looking for networks
# that are not used takes Open MPI 0.3 s a start, half of a short test: its own transport is named. Kokkos need not warn
# of more threads than cores, and would where a test looks at standard error.
set(_environment OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
    OMPI_MCA_btl_base_warn_component_unused=0 OMPI_MCA_pml=ob1 OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=0
    KOKKOS_DISABLE_WARNINGS=1)
# Names that change between versions of Open MPI, as in test/support/open_mpi.py.
execute_process(COMMAND "${MPIEXEC_EXECUTABLE}" --version OUTPUT_VARIABLE _version ERROR_QUIET)
if(NOT _version MATCHES "\\((Open MPI|OpenRTE)\\) ([0-9]+)\\." OR CMAKE_MATCH_2 LESS 5)
  list(APPEND _environment OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none)
else()
  # 5 complains on standard error where ranks of one machine could not reach each other by the network either.
  list(APPEND _environment OMPI_MCA_btl=self,sm)
  if(CMAKE_MATCH_2 EQUAL 5)
    list(APPEND _environment PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
         PRTE_MCA_hwloc_default_binding_policy=none)
  else()
    list(APPEND _environment PRTE_MCA_mapby=:oversubscribe PRTE_MCA_bindto=none)
  endif()
endif()
set(KOMVOS_TEST_ENVIRONMENT "${_environment}" CACHE INTERNAL "")

# The environment of a test. Each has a folder of its own for temporary files: that of mpirun is otherwise shared by all
# of a user, and one mpirun may remove it while another makes it.
function(komvos_test_environment result name)
  set(folder "${PROJECT_BINARY_DIR}/Testing/Temporary/${name}")
  file(MAKE_DIRECTORY "${folder}")
  set(${result} "${KOMVOS_TEST_ENVIRONMENT};TMPDIR=${folder};${KOMVOS_SANITIZER_ENVIRONMENT}" PARENT_SCOPE)
endfunction()

function(komvos_mpi_command result ranks)
  set(${result} ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${MPIEXEC_PREFLAGS} ${ARGN} PARENT_SCOPE)
endfunction()

function(komvos_add_mpi_tests executable)
  cmake_parse_arguments(test "STAGED" "TIMEOUT;NAME;THREADS" "RANKS;ARGS;LABELS" ${ARGN})
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 300)
  endif()
  if(KOMVOS_SANITIZERS)  # these take several times as long
    math(EXPR test_TIMEOUT "4 * ${test_TIMEOUT}")
  endif()
  if(NOT test_NAME)
    set(test_NAME ${executable})
  endif()
  if(test_STAGED)
    string(APPEND test_NAME ".staged")
    list(APPEND test_LABELS staged)
  endif()
  foreach(ranks IN LISTS test_RANKS)
    komvos_mpi_command(command ${ranks} $<TARGET_FILE:${executable}> ${test_ARGS})
    add_test(NAME ${test_NAME}.np${ranks} COMMAND ${command})
    komvos_test_environment(environment ${test_NAME}.np${ranks})
    list(APPEND environment MPI_TEST_RANKS=${ranks})
    if(test_STAGED)
      list(APPEND environment KOMVOS_STAGED=1)
    endif()
    if(test_THREADS)
      list(APPEND environment OMP_NUM_THREADS=${test_THREADS})
    endif()
    set_tests_properties(${test_NAME}.np${ranks} PROPERTIES
      PROCESSORS ${ranks} TIMEOUT ${test_TIMEOUT} LABELS "${test_LABELS}"
      ENVIRONMENT "${environment}")
  endforeach()
endfunction()
