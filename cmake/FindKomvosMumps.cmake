# Finds MUMPS for double precision with MPI (CeCILL-C) and defines Komvos::mumps.
include(FindPackageHandleStandardArgs)
find_path(KomvosMumps_INCLUDE_DIR dmumps_c.h PATH_SUFFIXES mumps MUMPS)
find_library(KomvosMumps_LIBRARY dmumps)
find_library(KomvosMumps_common_LIBRARY mumps_common)
find_package_handle_standard_args(KomvosMumps
  REQUIRED_VARS KomvosMumps_LIBRARY KomvosMumps_common_LIBRARY KomvosMumps_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "on Debian: apt-get install libmumps-dev")
mark_as_advanced(KomvosMumps_INCLUDE_DIR KomvosMumps_LIBRARY KomvosMumps_common_LIBRARY)
if(KomvosMumps_FOUND AND NOT TARGET Komvos::mumps)
  add_library(Komvos::mumps INTERFACE IMPORTED GLOBAL)
  target_include_directories(Komvos::mumps SYSTEM INTERFACE "${KomvosMumps_INCLUDE_DIR}")
  target_link_libraries(Komvos::mumps INTERFACE "${KomvosMumps_LIBRARY}" "${KomvosMumps_common_LIBRARY}")
endif()
