# Our libraries and programs. A new file in a folder below is picked up by its glob; no list here names single variants or tests.
include_guard(GLOBAL)

# Compiles files of the target several at a time (DECODELAB_UNITY): most of a file's time goes to templates that its neighbours use too.
# Anonymous namespaces of one target then share their names.
function(decodelab_unity name)
  if(DECODELAB_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
    get_target_property(cuda_sources ${name} SOURCES)
    list(FILTER cuda_sources INCLUDE REGEX "\\.cu$")
    set_source_files_properties(${cuda_sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    # g++ takes the sources in a unit for headers, whose types must not have members of types without linkage.
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
endfunction()

function(decodelab_library name)
  cmake_parse_arguments(PARSE_ARGV 1 lib "" "" "SOURCES;LINK")
  if(lib_SOURCES)
    add_library(${name} STATIC ${lib_SOURCES})
    target_link_libraries(${name} PUBLIC decodelab_flags ${lib_LINK})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE decodelab_flags ${lib_LINK})
  endif()
endfunction()

# --- torch-free: builds and tests in seconds ---------------------------------------------------------------------------
file(GLOB base_sources CONFIGURE_DEPENDS base/*.cpp)
file(GLOB_RECURSE reports_store_sources CONFIGURE_DEPENDS reports/store/*.cpp)
file(GLOB_RECURSE reports_statistics_sources CONFIGURE_DEPENDS reports/statistics/*.cpp)
file(GLOB_RECURSE reports_page_sources CONFIGURE_DEPENDS reports/figures/*.cpp reports/page/*.cpp)
file(GLOB_RECURSE profiles_sources CONFIGURE_DEPENDS profiles/*.cpp)
file(GLOB family_sources CONFIGURE_DEPENDS engine/families/*.cpp)
file(GLOB checkpoint_sources CONFIGURE_DEPENDS engine/checkpoint/*.cpp engine/kernels/elementwise/uniform_fill.cpp)
list(FILTER checkpoint_sources EXCLUDE REGEX "/weights[^/]*\\.cpp$")
# The list of families: what the functions of the files in engine/families return, one each.
set(family_externs)
set(family_pointers)
foreach(source ${family_sources})
  get_filename_component(family ${source} NAME_WE)
  string(APPEND family_externs "const Family& ${family}();\n")
  string(APPEND family_pointers "&model_families::${family}(), ")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/families.cpp @ONLY CONTENT [[
// Made by the build: the model families, one for each file of engine/families.
#include "engine/checkpoint/family.h"

namespace decodelab {
namespace model_families {
@family_externs@}  // namespace model_families

std::span<const Family* const> families() {
  static const Family* const kFamilies[] = {@family_pointers@};
  return kFamilies;
}

}  // namespace decodelab
]])
# Apart, so that a test program can have another list.
set_source_files_properties(${CMAKE_BINARY_DIR}/families.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
list(APPEND checkpoint_sources ${family_sources} ${CMAKE_BINARY_DIR}/families.cpp)
file(GLOB mask_sources CONFIGURE_DEPENDS engine/masks/*.cpp)
file(GLOB_RECURSE bench_core_sources CONFIGURE_DEPENDS bench/plan/*.cpp bench/machine/*.cpp bench/measure/*.cpp)
list(FILTER bench_core_sources EXCLUDE REGEX "/(torch|engine)_[^/]*\\.cpp$")
file(GLOB bench_commands_sources CONFIGURE_DEPENDS bench/commands/*.cpp)

# nlohmann's JSON, instantiated once: its undefined behaviour is not ours to look for, and it took a minute.
set_source_files_properties(base/json_instances.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
if(DECODELAB_SANITIZE MATCHES undefined)
  set_source_files_properties(base/json_instances.cpp PROPERTIES COMPILE_OPTIONS -fno-sanitize=undefined)
endif()

# All of them share one precompiled header; it sees the include folders of third parties, and no define.
decodelab_library(base SOURCES ${base_sources} LINK decodelab_fmt nlohmann_json::nlohmann_json)
target_precompile_headers(base PRIVATE <base/precompiled.h>)
decodelab_library(reports_store SOURCES ${reports_store_sources} LINK base decodelab_sqlite Threads::Threads ZLIB::ZLIB)
decodelab_library(reports_statistics SOURCES ${reports_statistics_sources} LINK reports_store Boost::headers)
if(DECODELAB_SANITIZE MATCHES address)
  # Little else is made fast in that build: it took longer than its tests do. A precompiled header serves one choice of speed.
  target_compile_options(reports_statistics PRIVATE -O1)
  target_precompile_headers(reports_statistics PRIVATE <base/precompiled.h>)
else()
  target_precompile_headers(reports_statistics REUSE_FROM base)
endif()
decodelab_library(reports_page SOURCES ${reports_page_sources} LINK reports_statistics)
decodelab_library(profiles SOURCES ${profiles_sources} LINK base ZLIB::ZLIB decodelab_sqlite decodelab_protozero)
target_link_libraries(profiles PRIVATE decodelab_profilers)
decodelab_library(checkpoint_formats SOURCES ${checkpoint_sources} LINK base ${PCRE2_LIBRARY} ${UTF8PROC_LIBRARY} Threads::Threads)
# Which tokens a pattern or other rules allow next.
decodelab_library(masks SOURCES ${mask_sources} LINK base ${PCRE2_LIBRARY})
# What ranks of a model exchange, without touching a tensor.
file(GLOB ranks_sources CONFIGURE_DEPENDS engine/ranks/*.cpp)
list(FILTER ranks_sources EXCLUDE REGEX "/(rank_leader|exchange|nccl_collectives?)\\.cpp$")
list(APPEND ranks_sources ${CMAKE_SOURCE_DIR}/engine/kernels/cpu_isa.cpp ${CMAKE_SOURCE_DIR}/engine/kernels/elementwise/add_parts.cpp)
decodelab_library(ranks SOURCES ${ranks_sources} LINK base Threads::Threads)
# What names slots and variants without touching a tensor: the grammar of arms is tested without torch.
decodelab_library(plan_core SOURCES engine/drafts.cpp engine/plan.cpp variants/registry.cpp variants/presets.cpp LINK base)
decodelab_library(bench_core SOURCES ${bench_core_sources}
  LINK plan_core masks checkpoint_formats reports_statistics profiles)
# The commands include no header of libtorch; the program links the engine that they call.
decodelab_library(bench_commands SOURCES ${bench_commands_sources} LINK bench_core masks reports_page CLI11::CLI11)
foreach(library reports_store reports_page profiles checkpoint_formats masks ranks plan_core bench_core bench_commands)
  target_precompile_headers(${library} REUSE_FROM base)
endforeach()
foreach(library base reports_store reports_statistics reports_page profiles checkpoint_formats masks bench_core bench_commands)
  decodelab_unity(${library})
endforeach()

find_package(Git QUIET)
add_custom_target(decodelab_version
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUTPUT=${CMAKE_BINARY_DIR}/generated/decodelab_commit.h
          -P ${CMAKE_SOURCE_DIR}/cmake/commit.cmake
  BYPRODUCTS ${CMAKE_BINARY_DIR}/generated/decodelab_commit.h COMMENT "Recording the commit")
add_dependencies(bench_commands decodelab_version)
target_include_directories(bench_commands PRIVATE ${CMAKE_BINARY_DIR}/generated)

if(NOT DECODELAB_TORCH)
  return()
endif()

# --- on libtorch -------------------------------------------------------------------------------------------------------
file(GLOB_RECURSE engine_sources CONFIGURE_DEPENDS engine/*.cpp)
list(REMOVE_ITEM engine_sources ${checkpoint_sources} ${mask_sources} ${ranks_sources} ${CMAKE_SOURCE_DIR}/engine/drafts.cpp ${CMAKE_SOURCE_DIR}/engine/plan.cpp)
# What names symbols of libtorch's CUDA part is a module, which is loaded where there is a GPU.
set(cuda_module_sources ${CMAKE_SOURCE_DIR}/engine/generation/cuda_graph.cpp ${CMAKE_SOURCE_DIR}/engine/ranks/nccl_collective.cpp)
list(REMOVE_ITEM engine_sources ${cuda_module_sources})
if(NOT DECODELAB_HAS_NCCL)
  list(REMOVE_ITEM cuda_module_sources ${CMAKE_SOURCE_DIR}/engine/ranks/nccl_collective.cpp)
endif()
file(GLOB_RECURSE engine_cuda_sources CONFIGURE_DEPENDS engine/*.cu)
file(GLOB_RECURSE variants_sources CONFIGURE_DEPENDS variants/*/*.cpp)
file(GLOB_RECURSE variants_cuda_sources CONFIGURE_DEPENDS variants/*/*.cu)
if(NOT DECODELAB_HAS_CUDA)
  set(engine_cuda_sources)
  set(variants_cuda_sources)
endif()

decodelab_library(engine SOURCES ${engine_sources} ${engine_cuda_sources}
  LINK decodelab_torch checkpoint_formats masks ranks plan_core profiles)
target_precompile_headers(engine PRIVATE $<$<COMPILE_LANGUAGE:CXX>:<engine/tensor.h$<ANGLE-R>>)
decodelab_unity(engine)
# Kernels for one instruction set have the names of those for another.
file(GLOB_RECURSE engine_kernels CONFIGURE_DEPENDS engine/kernels/*.cpp)
# Their headers are few, so that the precompiled one is in the way: where it was made without -O1, g++ reads all of it as text.
set_source_files_properties(${engine_kernels} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
if(DECODELAB_SANITIZE)
  set_source_files_properties(${engine_kernels} PROPERTIES COMPILE_OPTIONS -O1)
endif()

if(DECODELAB_HAS_CUDA)
  add_library(decodelab_cuda MODULE ${cuda_module_sources})
  target_link_libraries(decodelab_cuda PRIVATE decodelab_flags decodelab_torch decodelab_torch_cuda decodelab_nccl)
  add_dependencies(engine decodelab_cuda)
  target_link_libraries(engine PUBLIC ${CMAKE_DL_LIBS})
endif()

# An OBJECT library: a static archive silently drops files that do nothing but register themselves.
add_library(variants OBJECT ${variants_sources} ${variants_cuda_sources})
target_link_libraries(variants PUBLIC engine)
target_precompile_headers(variants REUSE_FROM engine)

file(GLOB_RECURSE bench_torch_sources CONFIGURE_DEPENDS bench/measure/torch_*.cpp bench/measure/engine_*.cpp)
decodelab_library(bench_torch SOURCES ${bench_torch_sources} LINK bench_core engine)
target_precompile_headers(bench_torch REUSE_FROM engine)
decodelab_unity(bench_torch)
add_dependencies(bench_torch decodelab_version)
target_include_directories(bench_torch PRIVATE ${CMAKE_BINARY_DIR}/generated)

# Compiled once for the program and for those of the tests, which link other lists of variants or families.
add_library(decodelab_main OBJECT bench/main.cpp)
target_link_libraries(decodelab_main PUBLIC bench_commands)
target_precompile_headers(decodelab_main REUSE_FROM base)
add_executable(decodelab $<TARGET_OBJECTS:decodelab_main>)
set_target_properties(decodelab PROPERTIES LINKER_LANGUAGE CXX)
target_link_libraries(decodelab PRIVATE variants bench_commands bench_torch)

if(DECODELAB_BENCHMARKS)
  find_package(benchmark REQUIRED)
  file(GLOB micro_sources CONFIGURE_DEPENDS bench/micro/*_benchmark.cpp)
  foreach(source ${micro_sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE variants engine benchmark::benchmark)
    target_precompile_headers(${name} REUSE_FROM engine)
  endforeach()
endif()
