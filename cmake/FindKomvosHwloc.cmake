# Finds hwloc (BSD licence) through pkg-config and defines Komvos::hwloc.
include(FindPackageHandleStandardArgs)
find_package(PkgConfig)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(KomvosHwloc_pc QUIET IMPORTED_TARGET GLOBAL hwloc)
endif()
find_package_handle_standard_args(KomvosHwloc REQUIRED_VARS KomvosHwloc_pc_LINK_LIBRARIES
  VERSION_VAR KomvosHwloc_pc_VERSION REASON_FAILURE_MESSAGE "on Debian: apt-get install libhwloc-dev pkg-config")
if(KomvosHwloc_FOUND AND NOT TARGET Komvos::hwloc)
  add_library(Komvos::hwloc INTERFACE IMPORTED GLOBAL)
  target_link_libraries(Komvos::hwloc INTERFACE PkgConfig::KomvosHwloc_pc)
endif()
