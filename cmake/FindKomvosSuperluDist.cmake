# Finds SuperLU_DIST (BSD) and defines Komvos::superlu_dist.
include(FindPackageHandleStandardArgs)
find_path(KomvosSuperluDist_INCLUDE_DIR superlu_ddefs.h PATH_SUFFIXES superlu-dist superlu_dist)
find_library(KomvosSuperluDist_LIBRARY superlu_dist)
find_package_handle_standard_args(KomvosSuperluDist
  REQUIRED_VARS KomvosSuperluDist_LIBRARY KomvosSuperluDist_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "on Debian: apt-get install libsuperlu-dist-dev")
mark_as_advanced(KomvosSuperluDist_INCLUDE_DIR KomvosSuperluDist_LIBRARY)
if(KomvosSuperluDist_FOUND AND NOT TARGET Komvos::superlu_dist)
  add_library(Komvos::superlu_dist INTERFACE IMPORTED GLOBAL)
  target_include_directories(Komvos::superlu_dist SYSTEM INTERFACE "${KomvosSuperluDist_INCLUDE_DIR}")
  target_link_libraries(Komvos::superlu_dist INTERFACE "${KomvosSuperluDist_LIBRARY}")
endif()
