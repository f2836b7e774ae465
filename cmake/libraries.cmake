# Third-party libraries other than libtorch, all from the system's package manager (tools/bootstrap installs them).
include_guard(GLOBAL)

# Finds a library into the variable. A wheel links the archive where there is one, and carries the shared library where there is none.
set(carried_libraries)
function(find_system_library variable name)
  if(DECODELAB_WHEEL)
    find_library(${variable} NAMES lib${name}.a ${name} REQUIRED)
    if(${variable} MATCHES "\\.so$")
      set(carried_libraries ${carried_libraries} ${${variable}} PARENT_SCOPE)
    endif()
  else()
    find_library(${variable} ${name} REQUIRED)
  endif()
endfunction()

find_package(Threads REQUIRED)
find_system_library(ZLIB_LIBRARY z)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Boost REQUIRED CONFIG)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_path(FMT_INCLUDE_DIR fmt/format.h REQUIRED)
find_path(SQLITECPP_INCLUDE_DIR SQLiteCpp/SQLiteCpp.h REQUIRED)
find_system_library(SQLITECPP_LIBRARY SQLiteCpp)
find_system_library(SQLITE3_LIBRARY sqlite3)
find_system_library(PCRE2_LIBRARY pcre2-8)
# Normal forms and grapheme clusters of Unicode, for tokenizers.
find_system_library(UTF8PROC_LIBRARY utf8proc)
# Headers only: Perfetto's wire format, without a second libprotobuf beside libtorch's.
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_writer.hpp REQUIRED)

# The compiled library, not the headers alone: a third of the time that a file takes to compile is {fmt}'s otherwise. Targets on libtorch
# use the newer headers that its wheel brings, which shadow the system's and have no library (cmake/libtorch.cmake).
find_system_library(FMT_LIBRARY fmt)
add_library(decodelab_fmt INTERFACE)
target_include_directories(decodelab_fmt SYSTEM INTERFACE ${FMT_INCLUDE_DIR})
target_link_libraries(decodelab_fmt INTERFACE ${FMT_LIBRARY})

add_library(decodelab_sqlite INTERFACE)
target_include_directories(decodelab_sqlite SYSTEM INTERFACE ${SQLITECPP_INCLUDE_DIR})
target_link_libraries(decodelab_sqlite INTERFACE ${SQLITECPP_LIBRARY} ${SQLITE3_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS})

add_library(decodelab_protozero INTERFACE)
target_include_directories(decodelab_protozero SYSTEM INTERFACE ${PROTOZERO_INCLUDE_DIR})
