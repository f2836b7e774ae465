# cuda_on_cpu_test: every CUDA kernel compiled as C++ and run on the CPU, each access checked (tests/cuda_on_cpu/README.md).
include_guard(GLOBAL)

if(DECODELAB_SANITIZE)
  message(STATUS "CUDA kernels on the CPU: off (their checks take the place of a sanitizer, and this build has '${DECODELAB_SANITIZE}')")
  return()
elseif(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  message(STATUS "CUDA kernels on the CPU: off (g++ on Linux was expected, and this is ${CMAKE_CXX_COMPILER_ID} on ${CMAKE_SYSTEM_NAME})")
  return()
endif()
find_program(DECODELAB_ADDR2LINE addr2line)
if(NOT DECODELAB_ADDR2LINE)
  message(STATUS "CUDA kernels on the CPU: faults name addresses instead of lines (no addr2line; binutils has it)")
endif()

# Nothing names single kernels: a new .cu file joins by its test, tests/cuda_on_cpu/<name>_test.cpp, which one of the tests asks for.
file(GLOB_RECURSE cuda_on_cpu_kernels RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS engine/*.cu variants/*.cu tests/cuda_on_cpu/*.cu)
file(GLOB cuda_on_cpu_sources CONFIGURE_DEPENDS tests/cuda_on_cpu/*.cpp)
# What launches are computed with, and the references that have a file of their own.
file(GLOB_RECURSE cuda_on_cpu_host CONFIGURE_DEPENDS engine/device_kernels.cpp variants/philox_race.cpp)
set(cuda_on_cpu_includes ${CMAKE_SOURCE_DIR}/tests/cuda_on_cpu/include)

# An object library of one .cu file, read through a .cpp file: where CUDA is on, CMake would give the .cu to nvcc. Headers and sources under
# OVERLAY come before those of the tree.
function(cuda_on_cpu_kernel target kernel)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "OVERLAY" "")
  set(KERNEL ${kernel})
  configure_file(${CMAKE_SOURCE_DIR}/tests/cuda_on_cpu/kernel.cpp.in ${CMAKE_BINARY_DIR}/cuda_on_cpu/${target}.cpp @ONLY)
  # The last one of such options counts, and those of a source stand last.
  set_source_files_properties(${CMAKE_BINARY_DIR}/cuda_on_cpu/${target}.cpp PROPERTIES
    COMPILE_OPTIONS -fdebug-prefix-map=${CMAKE_BINARY_DIR}=.)
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/cuda_on_cpu/${target}.cpp)
  target_link_libraries(${target} PRIVATE decodelab_flags)
  target_include_directories(${target} BEFORE PRIVATE ${arg_OVERLAY} ${cuda_on_cpu_includes})
  # -Og leaves an access of 16 bytes whole, which -O1 splits, and vectors of the compiler's own would widen others. The built-in memcpy
  # would hide accesses. Nothing links the sanitizers' libraries: tests/cuda_on_cpu/compiler_calls.cpp answers their calls. addr2line of
  # binutils 2.40 mixes up the files of DWARF 5, and would put the build folder before each.
  target_compile_options(${target} PRIVATE -Og -fno-tree-vectorize -fno-tree-slp-vectorize -ffp-contract=off
    -fsanitize=thread,bounds-strict,alignment -fno-builtin-memcpy -fno-builtin-memmove -fno-builtin-memset
    -g1 -gdwarf-4 -Wno-unknown-pragmas -Wno-tsan)
endfunction()

set(cuda_on_cpu_objects)
foreach(kernel ${cuda_on_cpu_kernels})
  get_filename_component(name ${kernel} NAME_WE)
  cuda_on_cpu_kernel(cuda_on_cpu_${name} ${kernel})
  list(APPEND cuda_on_cpu_objects $<TARGET_OBJECTS:cuda_on_cpu_${name}>)
endforeach()

# Kernels come first: of an inline function that tests share with them the linker keeps the first copy, which must be the checked one.
decodelab_test_program(cuda_on_cpu_test OPTIMIZED SOURCES ${cuda_on_cpu_objects} ${cuda_on_cpu_sources} ${cuda_on_cpu_host}
  LINK decodelab_flags decodelab_fmt)
target_include_directories(cuda_on_cpu_test BEFORE PRIVATE ${cuda_on_cpu_includes})
set_target_properties(cuda_on_cpu_test PROPERTIES UNITY_BUILD OFF)
list(JOIN cuda_on_cpu_kernels "," joined_kernels)
target_compile_definitions(cuda_on_cpu_test PRIVATE DECODELAB_KERNELS="${joined_kernels}"
  DECODELAB_SOURCE_DIR="${CMAKE_SOURCE_DIR}")

# The same program once more, with faults in copies of the kernels that a test switches on by name: each must be found.
include(${CMAKE_SOURCE_DIR}/tests/cuda_on_cpu/sabotages.cmake)
