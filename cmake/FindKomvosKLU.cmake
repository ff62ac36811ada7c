# Finds SuiteSparse's KLU and BTF (LGPL-2.1+, used as shared libraries) and defines Komvos::klu.
include(FindPackageHandleStandardArgs)
find_path(KomvosKLU_INCLUDE_DIR klu.h PATH_SUFFIXES suitesparse)
find_library(KomvosKLU_LIBRARY klu)
find_library(KomvosKLU_BTF_LIBRARY btf)
find_package_handle_standard_args(KomvosKLU REQUIRED_VARS KomvosKLU_LIBRARY KomvosKLU_BTF_LIBRARY KomvosKLU_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "on Debian: apt-get install libsuitesparse-dev")
mark_as_advanced(KomvosKLU_INCLUDE_DIR KomvosKLU_LIBRARY)
if(KomvosKLU_FOUND AND NOT TARGET Komvos::klu)
  add_library(Komvos::klu INTERFACE IMPORTED GLOBAL)
  target_include_directories(Komvos::klu SYSTEM INTERFACE "${KomvosKLU_INCLUDE_DIR}")
  target_link_libraries(Komvos::klu INTERFACE "${KomvosKLU_LIBRARY}" "${KomvosKLU_BTF_LIBRARY}")
endif()
