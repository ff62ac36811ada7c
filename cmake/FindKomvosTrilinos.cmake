# Finds an installed Trilinos and defines Komvos::trilinos (Tpetra and below), Komvos::muelu, Komvos::belos
# and Komvos::zoltan2, as far as they are there.
#
# Trilinos' own package files are not used for 13.2: Debian's list libraries and sub-packages that are not
# installed, so that find_package(Trilinos) fails. Headers and libraries are looked up one by one instead; Debian
# puts "trilinos_" before the name of a library, a plain installation does not. From 14 on, Trilinos exports
# targets that work, and these are taken, of the installation that has the headers. There Kokkos may be a package of
# its own.
include(FindPackageHandleStandardArgs)

find_path(KomvosTrilinos_INCLUDE_DIR Tpetra_Map.hpp PATH_SUFFIXES trilinos)
if(KomvosTrilinos_INCLUDE_DIR)
  file(STRINGS "${KomvosTrilinos_INCLUDE_DIR}/Trilinos_version.h" _line REGEX "define TRILINOS_VERSION_STRING")
  string(REGEX MATCH "[0-9]+\\.[0-9]+(\\.[0-9]+)?" KomvosTrilinos_VERSION "${_line}")
endif()

set(_komvos_libs_trilinos tpetraext tpetrainout tpetra kokkostsqr tpetraclassiclinalg tpetraclassicnodeapi tpetraclassic
    kokkoskernels teuchoskokkoscomm teuchoskokkoscompat teuchosremainder teuchosnumerics teuchoscomm
    teuchosparameterlist teuchosparser teuchoscore kokkosalgorithms kokkoscontainers kokkoscore)
set(_komvos_libs_muelu muelu-adapters muelu-interface muelu ifpack2 amesos2 xpetra-sup xpetra trilinosss)
set(_komvos_libs_belos belosxpetra belostpetra belos)
set(_komvos_libs_zoltan2 zoltan2)
set(_komvos_header_muelu MueLu_Hierarchy.hpp)
set(_komvos_header_belos BelosSolverFactory_Tpetra.hpp)
set(_komvos_header_zoltan2 Zoltan2_PartitioningProblem.hpp)
set(_komvos_package_trilinos Tpetra)
set(_komvos_package_muelu MueLu)
set(_komvos_package_belos Belos)
set(_komvos_package_zoltan2 Zoltan2)

# The libraries of one part, in link order; a static Trilinos needs the order, a shared one does not mind.
function(_komvos_find_libraries part result)
  set(found "")
  foreach(name IN LISTS _komvos_libs_${part})
    # Only beside the headers: libraries of another Trilinos must not be mixed in.
    find_library(KomvosTrilinos_${name}_LIBRARY NAMES trilinos_${name} ${name} NO_DEFAULT_PATH
                 PATHS "${KomvosTrilinos_INCLUDE_DIR}/.." "${KomvosTrilinos_INCLUDE_DIR}/../.."
                 PATH_SUFFIXES lib lib64 lib/${CMAKE_LIBRARY_ARCHITECTURE})
    mark_as_advanced(KomvosTrilinos_${name}_LIBRARY)
    if(KomvosTrilinos_${name}_LIBRARY)
      list(APPEND found "${KomvosTrilinos_${name}_LIBRARY}")
    endif()
  endforeach()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

function(_komvos_add_part part)
  if(TARGET Komvos::${part})
    return()
  endif()
  if(NOT KomvosTrilinos_VERSION VERSION_LESS 14)
    find_package(${_komvos_package_${part}} CONFIG QUIET NO_DEFAULT_PATH
                 PATHS "${KomvosTrilinos_INCLUDE_DIR}/.." "${KomvosTrilinos_INCLUDE_DIR}/../..")
    set(libraries ${_komvos_package_${part}}::all_libs)
    if(NOT TARGET ${libraries})
      return()
    endif()
  else()
    _komvos_find_libraries(${part} libraries)
    if(NOT libraries OR (DEFINED _komvos_header_${part}
                         AND NOT EXISTS "${KomvosTrilinos_INCLUDE_DIR}/${_komvos_header_${part}}"))
      return()
    endif()
  endif()
  add_library(Komvos::${part} INTERFACE IMPORTED GLOBAL)
  target_include_directories(Komvos::${part} SYSTEM INTERFACE "${KomvosTrilinos_INCLUDE_DIR}")
  target_link_libraries(Komvos::${part} INTERFACE ${libraries} ${ARGN})
endfunction()

# The execution spaces that Kokkos was built with: SERIAL, OPENMP, CUDA, HIP ...
function(_komvos_find_kokkos_spaces result)
  set(folders "${KomvosTrilinos_INCLUDE_DIR}")
  if(TARGET Kokkos::kokkoscore)
    get_target_property(folders Kokkos::kokkoscore INTERFACE_INCLUDE_DIRECTORIES)
  endif()
  find_file(header KokkosCore_config.h PATHS ${folders} NO_DEFAULT_PATH NO_CACHE REQUIRED)
  file(STRINGS "${header}" lines
       REGEX "^#define KOKKOS_ENABLE_(SERIAL|OPENMP|THREADS|HPX|CUDA|HIP|SYCL|OPENMPTARGET|OPENACC)$")
  string(REGEX REPLACE "#define KOKKOS_ENABLE_" "" spaces "${lines}")
  set(${result} "${spaces}" PARENT_SCOPE)
endfunction()

if(KomvosTrilinos_INCLUDE_DIR)
  _komvos_add_part(trilinos)
  if(TARGET Komvos::trilinos)
    get_target_property(KomvosTrilinos_LIBRARIES Komvos::trilinos INTERFACE_LINK_LIBRARIES)
    _komvos_find_kokkos_spaces(KomvosTrilinos_KOKKOS)
    find_package(MPI REQUIRED COMPONENTS CXX)
    target_link_libraries(Komvos::trilinos INTERFACE MPI::MPI_CXX)
    # The C++ bindings of old MPI libraries are not used, and warn.
    target_compile_definitions(Komvos::trilinos INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
    if(KomvosTrilinos_VERSION VERSION_LESS 14)
      target_compile_features(Komvos::trilinos INTERFACE cxx_std_17)
      # Trilinos' shared libraries may not say, or say wrongly, where their own dependencies are: programs name all of
      # them, and libraries inherit the program's run path.
      if(NOT KomvosTrilinos_tpetra_LIBRARY MATCHES "\\.a$")
        target_link_options(Komvos::trilinos INTERFACE LINKER:--disable-new-dtags LINKER:--no-as-needed)
      endif()
      find_package(LAPACK QUIET)
      target_link_libraries(Komvos::trilinos INTERFACE $<TARGET_NAME_IF_EXISTS:LAPACK::LAPACK> ${CMAKE_DL_LIBS})
      if("OPENMP" IN_LIST KomvosTrilinos_KOKKOS)
        find_package(OpenMP REQUIRED COMPONENTS CXX)
        target_link_libraries(Komvos::trilinos INTERFACE OpenMP::OpenMP_CXX)
      endif()
      if("CUDA" IN_LIST KomvosTrilinos_KOKKOS)
        find_library(KomvosTrilinos_CUDART_LIBRARY NAMES cudart REQUIRED)
        find_library(KomvosTrilinos_CUDA_LIBRARY NAMES cuda PATH_SUFFIXES stubs)
        target_link_libraries(Komvos::trilinos INTERFACE ${KomvosTrilinos_CUDART_LIBRARY} ${KomvosTrilinos_CUDA_LIBRARY})
      endif()
    endif()
  endif()
  foreach(part belos zoltan2)
    _komvos_add_part(${part} Komvos::trilinos)
  endforeach()
  find_path(KomvosTrilinos_SCOTCH_INCLUDE_DIR ptscotch.h PATH_SUFFIXES scotch)
  mark_as_advanced(KomvosTrilinos_SCOTCH_INCLUDE_DIR)
  if(TARGET Komvos::zoltan2 AND KomvosTrilinos_SCOTCH_INCLUDE_DIR)
    target_include_directories(Komvos::zoltan2 SYSTEM INTERFACE "${KomvosTrilinos_SCOTCH_INCLUDE_DIR}")
  endif()
  _komvos_add_part(muelu Komvos::trilinos)
endif()

find_package_handle_standard_args(KomvosTrilinos
  REQUIRED_VARS KomvosTrilinos_INCLUDE_DIR KomvosTrilinos_LIBRARIES
  VERSION_VAR KomvosTrilinos_VERSION
  REASON_FAILURE_MESSAGE "no Trilinos with Tpetra here: on Debian install libtrilinos-tpetra-dev, or set CMAKE_PREFIX_PATH")
mark_as_advanced(KomvosTrilinos_INCLUDE_DIR)
if(KomvosTrilinos_FOUND AND NOT KomvosTrilinos_REPORTED)
  message(STATUS "Trilinos ${KomvosTrilinos_VERSION}, Kokkos spaces: ${KomvosTrilinos_KOKKOS}")
  set(KomvosTrilinos_REPORTED TRUE CACHE INTERNAL "")
endif()
