# Install and export, so that find_package(Komvos) works from the build's installed copy.
include(CMakePackageConfigHelpers)

configure_package_config_file(cmake/KomvosConfig.cmake.in "${CMAKE_CURRENT_BINARY_DIR}/KomvosConfig.cmake"
  INSTALL_DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Komvos")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/KomvosConfigVersion.cmake" COMPATIBILITY SameMinorVersion)

install(EXPORT KomvosTargets NAMESPACE Komvos:: DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Komvos")
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/KomvosConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/KomvosConfigVersion.cmake"
              cmake/FindKomvosTrilinos.cmake cmake/FindKomvosHwloc.cmake cmake/FindKomvosKLU.cmake
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Komvos")
install(FILES LICENSE README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
