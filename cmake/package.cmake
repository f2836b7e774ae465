# What is installed: the program, the engine and its variants as a package of CMake (find_package(decodelab), then link
# decodelab::decodelab), and what a wheel holds.
include_guard(GLOBAL)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# An archive that users link whole, since variants do nothing but register themselves.
add_library(decodelab_variants STATIC $<TARGET_OBJECTS:variants>)
set_target_properties(decodelab_variants PROPERTIES LINKER_LANGUAGE CXX)

set(package_directory ${CMAKE_INSTALL_LIBDIR}/decodelab)
install(TARGETS decodelab RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
if(DECODELAB_HAS_CUDA)
  # Loaded where there is a GPU, from where the program lies.
  install(TARGETS decodelab_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
endif()
install(TARGETS decodelab_variants engine masks ranks plan_core checkpoint_formats base ARCHIVE DESTINATION ${package_directory} COMPONENT package)
install(DIRECTORY base engine variants DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/decodelab COMPONENT package FILES_MATCHING PATTERN "*.h")
install(FILES profiles/range.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/decodelab/profiles COMPONENT package)

get_target_property(package_torch_libraries decodelab_torch INTERFACE_LINK_LIBRARIES)
get_target_property(package_torch_options decodelab_torch INTERFACE_LINK_OPTIONS)
configure_package_config_file(cmake/decodelab-config.cmake.in ${CMAKE_BINARY_DIR}/package/decodelab-config.cmake
  INSTALL_DESTINATION ${package_directory} PATH_VARS package_directory CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/decodelab-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/package/decodelab-config.cmake ${CMAKE_BINARY_DIR}/package/decodelab-config-version.cmake
  DESTINATION ${package_directory} COMPONENT package)
if(DECODELAB_WHEEL)
  install_wheel()
endif()
