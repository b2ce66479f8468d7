# What `cmake --install` lays down: the library, its public headers, the program, and the files by
# which find_package(rapt) finds them.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(rapt_package ${CMAKE_INSTALL_LIBDIR}/cmake/rapt)

install(TARGETS rapt EXPORT rapt-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT rapt-targets NAMESPACE rapt:: DESTINATION ${rapt_package})
install(TARGETS rapt_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/rapt-config.cmake.in
  ${PROJECT_BINARY_DIR}/rapt-config.cmake INSTALL_DESTINATION ${rapt_package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rapt-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rapt-config.cmake
  ${PROJECT_BINARY_DIR}/rapt-config-version.cmake DESTINATION ${rapt_package})
