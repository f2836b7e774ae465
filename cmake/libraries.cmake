# Third-party libraries other than libtorch, all from the system's package manager (tools/bootstrap installs them).
include_guard(GLOBAL)

find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Boost REQUIRED CONFIG)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_path(FMT_INCLUDE_DIR fmt/format.h REQUIRED)
find_path(SQLITECPP_INCLUDE_DIR SQLiteCpp/SQLiteCpp.h REQUIRED)
find_library(SQLITECPP_LIBRARY SQLiteCpp REQUIRED)
find_library(SQLITE3_LIBRARY sqlite3 REQUIRED)
find_library(PCRE2_LIBRARY pcre2-8 REQUIRED)
# Normal forms and grapheme clusters of Unicode, for tokenizers.
find_library(UTF8PROC_LIBRARY utf8proc REQUIRED)
# Headers only: Perfetto's wire format, without a second libprotobuf beside libtorch's.
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_writer.hpp REQUIRED)

# The compiled library, not the headers alone: a third of the time that a file takes to compile is {fmt}'s otherwise. Targets on libtorch
# use the newer headers that its wheel brings, which shadow the system's and have no library (cmake/libtorch.cmake).
find_library(FMT_LIBRARY fmt REQUIRED)
add_library(decodelab_fmt INTERFACE)
target_include_directories(decodelab_fmt SYSTEM INTERFACE ${FMT_INCLUDE_DIR})
target_link_libraries(decodelab_fmt INTERFACE ${FMT_LIBRARY})

add_library(decodelab_sqlite INTERFACE)
target_include_directories(decodelab_sqlite SYSTEM INTERFACE ${SQLITECPP_INCLUDE_DIR})
target_link_libraries(decodelab_sqlite INTERFACE ${SQLITECPP_LIBRARY} ${SQLITE3_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS})

add_library(decodelab_protozero INTERFACE)
target_include_directories(decodelab_protozero SYSTEM INTERFACE ${PROTOZERO_INCLUDE_DIR})
