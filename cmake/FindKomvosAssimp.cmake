# Finds Assimp (BSD licence), which reads meshes, and defines Komvos::assimp.
include(FindPackageHandleStandardArgs)
find_path(KomvosAssimp_INCLUDE_DIR assimp/Importer.hpp)
find_library(KomvosAssimp_LIBRARY assimp)
find_package_handle_standard_args(KomvosAssimp REQUIRED_VARS KomvosAssimp_LIBRARY KomvosAssimp_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "on Debian: apt-get install libassimp-dev")
mark_as_advanced(KomvosAssimp_INCLUDE_DIR KomvosAssimp_LIBRARY)
if(KomvosAssimp_FOUND AND NOT TARGET Komvos::assimp)
  add_library(Komvos::assimp INTERFACE IMPORTED GLOBAL)
  target_include_directories(Komvos::assimp SYSTEM INTERFACE "${KomvosAssimp_INCLUDE_DIR}")
  target_link_libraries(Komvos::assimp INTERFACE "${KomvosAssimp_LIBRARY}")
endif()
