# The headers of NVIDIA's profiling interfaces, where there are any: NVTX is header-only, CUPTI is loaded when a trace is taken.
include_guard(GLOBAL)

set(DECODELAB_PROFILERS "AUTO" CACHE STRING "AUTO (if the headers of CUPTI and NVTX are found) or OFF")
# Linked by `profiles` and its tests alone: nobody else sees a header of CUDA.
add_library(decodelab_profilers INTERFACE)
target_link_libraries(decodelab_profilers INTERFACE ${CMAKE_DL_LIBS})
if(DECODELAB_PROFILERS STREQUAL "OFF")
  return()
endif()
set(profiler_hints ${python_sites})
list(TRANSFORM profiler_hints APPEND /nvidia/cu13/include)
list(APPEND profiler_hints $ENV{CUDA_HOME}/include /usr/local/cuda/include /usr/local/cuda/extras/CUPTI/include)
find_path(DECODELAB_CUPTI_INCLUDE cupti_activity.h HINTS ${profiler_hints} NO_DEFAULT_PATH)
find_path(DECODELAB_NVTX_INCLUDE nvtx3/nvToolsExt.h HINTS ${profiler_hints} NO_DEFAULT_PATH)

if(DECODELAB_NVTX_INCLUDE)
  target_include_directories(decodelab_profilers SYSTEM INTERFACE ${DECODELAB_NVTX_INCLUDE})
  target_compile_definitions(decodelab_profilers INTERFACE DECODELAB_HAS_NVTX=1)
else()
  message(STATUS "NVTX: off (no nvtx3/nvToolsExt.h)")
endif()

set(cupti_version "")
if(DECODELAB_CUPTI_INCLUDE)
  # The layouts of records and the numbers of functions change between versions; the code is for those of CUDA 13.
  file(STRINGS ${DECODELAB_CUPTI_INCLUDE}/cupti_version.h cupti_version REGEX "#define CUPTI_API_VERSION +[0-9]+")
  string(REGEX MATCH "[0-9]+$" cupti_version "${cupti_version}")
endif()
if(cupti_version GREATER_EQUAL 130000)
  target_include_directories(decodelab_profilers SYSTEM INTERFACE ${DECODELAB_CUPTI_INCLUDE})
  target_compile_definitions(decodelab_profilers INTERFACE DECODELAB_HAS_CUPTI=1)
  # For tests: the program uses the library that libtorch has loaded.
  find_file(DECODELAB_CUPTI_LIBRARY libcupti.so.13
    HINTS ${DECODELAB_CUPTI_INCLUDE}/../lib ${DECODELAB_CUPTI_INCLUDE}/../lib64 NO_DEFAULT_PATH)
else()
  message(STATUS "CUPTI: off (version '${cupti_version}' in '${DECODELAB_CUPTI_INCLUDE}', 130000 is the first that is known)")
endif()
