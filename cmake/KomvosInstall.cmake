# Install and export, so that find_package(Komvos) works from the build's installed copy.
include(CMakePackageConfigHelpers)

set(Komvos_COMPONENTS core)
if(Komvos_ENABLE_TRILINOS)
  list(APPEND Komvos_COMPONENTS comm)
endif()
if(Komvos_ENABLE_KRYLOV)
  list(APPEND Komvos_COMPONENTS krylov)
endif()
if(Komvos_ENABLE_HMATRIX)
  list(APPEND Komvos_COMPONENTS hmatrix)
endif()
if(Komvos_ENABLE_MULTIGRID)
  list(APPEND Komvos_COMPONENTS multigrid)
endif()

set(Komvos_DIRECT_SOLVERS "")
foreach(pair mumps:Mumps superlu_dist:SuperluDist)
  string(REGEX MATCH "(.*):(.*)" _ "${pair}")
  if(TARGET Komvos::${CMAKE_MATCH_1})
    list(APPEND Komvos_DIRECT_SOLVERS ${CMAKE_MATCH_2})
  endif()
endforeach()

set(Komvos_WITH_ASSIMP OFF)
if(TARGET Komvos::assimp)
  set(Komvos_WITH_ASSIMP ON)
endif()

configure_package_config_file(cmake/KomvosConfig.cmake.in "${CMAKE_CURRENT_BINARY_DIR}/KomvosConfig.cmake"
  INSTALL_DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Komvos")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/KomvosConfigVersion.cmake" COMPATIBILITY SameMinorVersion)

# A file of targets each: who asks for core alone does not need what the others link.
foreach(component IN LISTS Komvos_COMPONENTS)
  install(EXPORT Komvos_${component} FILE Komvos_${component}.cmake NAMESPACE Komvos::
          DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Komvos")
endforeach()
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/KomvosConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/KomvosConfigVersion.cmake"
              cmake/FindKomvosTrilinos.cmake cmake/FindKomvosKLU.cmake
              cmake/FindKomvosMumps.cmake cmake/FindKomvosSuperluDist.cmake cmake/FindKomvosAssimp.cmake
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Komvos")
install(FILES LICENSE README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
