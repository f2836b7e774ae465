# Tests mirror the tree: tests/<folder>/<file>_test.cpp (GoogleTest), tests/program/*_test.py (the built program, from outside),
# tests/tools/*_test.py (the scripts in tools/) and tests/reports/*_test.py (the statistics against SciPy).
include_guard(GLOBAL)
include(GoogleTest)
find_package(GTest REQUIRED)

# Builds every test program that needs no libtorch (tools/test builds it with sanitizers).
add_custom_target(torch_free_tests)

# Where two tests share the cores, their threads must sleep while they wait: libgomp's would keep a core busy with waiting.
set(DECODELAB_SHARED_CORES OMP_WAIT_POLICY=passive)

# One program a group. Torch-free groups list every test in ctest. Groups on libtorch are a ctest entry for each of SHARDS parts, which
# run beside each other: each start costs 0.3 s. OPTIMIZED is for a program whose own code takes the time of its tests.
function(decodelab_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 test "TORCH;OPTIMIZED" "SHARDS" "SOURCES;LINK")
  if(NOT test_SOURCES)
    # Nothing to build yet: the name stays a target, so that scripts can ask for it.
    add_custom_target(${name})
    return()
  endif()
  add_executable(${name} ${test_SOURCES})
  decodelab_unity(${name})
  if(NOT test_OPTIMIZED)
    # Nothing measures the code of a test: half of its time to compile was spent on making it fast.
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
  endif()
  target_link_libraries(${name} PRIVATE ${test_LINK} GTest::gtest GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE DECODELAB_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data")
  if(test_TORCH)
    # The first of them makes the header that all share.
    if(name STREQUAL engine_test)
      target_precompile_headers(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:<tests/precompiled_torch.h$<ANGLE-R>>)
    else()
      target_precompile_headers(${name} REUSE_FROM engine_test)
    endif()
    if(NOT test_SHARDS)
      set(test_SHARDS 1)
    endif()
    math(EXPR last_shard "${test_SHARDS} - 1")
    foreach(shard RANGE ${last_shard})
      add_test(NAME ${name}.${shard} COMMAND ${name})
      set_tests_properties(${name}.${shard} PROPERTIES LABELS torch PROCESSORS 1 TIMEOUT 1800
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${test_SHARDS};GTEST_SHARD_INDEX=${shard};${DECODELAB_SHARED_CORES}")
    endforeach()
  else()
    # g++ 12 sees copies of short strings out of bounds where the standard library comes from a precompiled header; AddressSanitizer looks.
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds>)
    if(name STREQUAL base_test OR test_OPTIMIZED)
      target_precompile_headers(${name} PRIVATE <tests/precompiled.h>)
    else()
      target_precompile_headers(${name} REUSE_FROM base_test)
    endif()
    add_dependencies(torch_free_tests ${name})
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${name}." PROPERTIES TIMEOUT 300)
  endif()
endfunction()

file(GLOB base_tests CONFIGURE_DEPENDS tests/base/*_test.cpp)
file(GLOB_RECURSE reports_tests CONFIGURE_DEPENDS tests/reports/*_test.cpp)
file(GLOB_RECURSE profiles_tests CONFIGURE_DEPENDS tests/profiles/*_test.cpp)
file(GLOB_RECURSE checkpoint_tests CONFIGURE_DEPENDS tests/engine/checkpoint/*_test.cpp)
set(weights_tests ${checkpoint_tests})
list(FILTER checkpoint_tests EXCLUDE REGEX "/weights[^/]*_test\\.cpp$")
list(FILTER weights_tests INCLUDE REGEX "/weights[^/]*_test\\.cpp$")
file(GLOB masks_tests CONFIGURE_DEPENDS tests/engine/masks/*_test.cpp)
file(GLOB ranks_tests CONFIGURE_DEPENDS tests/engine/ranks/*_test.cpp)
file(GLOB_RECURSE bench_core_tests CONFIGURE_DEPENDS tests/bench/plan/*_test.cpp tests/bench/machine/*_test.cpp tests/bench/measure/*_test.cpp)
list(FILTER bench_core_tests EXCLUDE REGEX "/(torch|engine)_[^/]*_test\\.cpp$")

decodelab_test_program(base_test SOURCES ${base_tests} LINK base)
decodelab_test_program(reports_test
  SOURCES ${reports_tests} tests/reports/statistics/operating_characteristics.cpp LINK reports_page)
# Traces of decodes that never ran, for the tests of profiles/.
file(GLOB synthetic_trace_sources CONFIGURE_DEPENDS tests/profiles/synthetic/*.cpp)
list(FILTER synthetic_trace_sources EXCLUDE REGEX "_test\\.cpp$")
decodelab_library(synthetic_trace SOURCES ${synthetic_trace_sources} LINK profiles)
target_precompile_headers(synthetic_trace REUSE_FROM base)
decodelab_test_program(profiles_test SOURCES ${profiles_tests} LINK synthetic_trace profiles decodelab_profilers)
if(DECODELAB_CUPTI_LIBRARY)
  target_compile_definitions(profiles_test PRIVATE DECODELAB_CUPTI_LIBRARY="${DECODELAB_CUPTI_LIBRARY}")
endif()
decodelab_test_program(checkpoint_test SOURCES ${checkpoint_tests} LINK checkpoint_formats)
decodelab_test_program(masks_test SOURCES ${masks_tests} LINK masks)
decodelab_test_program(ranks_test SOURCES ${ranks_tests} LINK ranks)
decodelab_test_program(bench_core_test SOURCES ${bench_core_tests} LINK bench_core)
include(cuda_on_cpu)

# Answers tests/reports/statistics_scipy_test.py, which has SciPy's values, and simulates gates for tools/validate_measurement.
add_executable(statistics_values tests/reports/statistics/statistics_values.cpp
  tests/reports/statistics/operating_characteristics.cpp)
target_link_libraries(statistics_values PRIVATE reports_page)
target_precompile_headers(statistics_values REUSE_FROM base)
add_dependencies(torch_free_tests statistics_values)

# Writes what tests/profiles/*_test.py have other people's readers read.
add_executable(trace_samples tests/profiles/write/trace_samples.cpp)
target_link_libraries(trace_samples PRIVATE synthetic_trace)
target_precompile_headers(trace_samples REUSE_FROM base)
add_dependencies(torch_free_tests trace_samples)

# Writes the stores and pages that tests/reports/*_test.py open in a browser and read beside each other.
add_executable(sample_report tests/reports/sample_report.cpp)
target_link_libraries(sample_report PRIVATE reports_page)
target_precompile_headers(sample_report REUSE_FROM base)
add_dependencies(torch_free_tests sample_report)

if(DECODELAB_TORCH)
  file(GLOB engine_tests CONFIGURE_DEPENDS tests/engine/*_test.cpp tests/engine/layers/*_test.cpp
    tests/engine/sampling/*_test.cpp tests/engine/sequences/*_test.cpp tests/engine/generation/*_test.cpp tests/engine/kernels/*_test.cpp
    tests/engine/kernels/*/*_test.cpp)
  # device_*: what tests of a GPU share; the kernels among them where CUDA compiles.
  file(GLOB_RECURSE variants_tests CONFIGURE_DEPENDS tests/variants/*_test.cpp tests/variants/device_*.cpp)
  list(REMOVE_DUPLICATES variants_tests)
  file(GLOB variants_cuda_tests CONFIGURE_DEPENDS tests/variants/device_*.cu)
  if(NOT DECODELAB_HAS_CUDA)
    set(variants_cuda_tests)
  endif()
  file(GLOB_RECURSE bench_torch_tests CONFIGURE_DEPENDS tests/bench/measure/torch_*_test.cpp tests/bench/measure/engine_*_test.cpp)
  decodelab_test_program(engine_test TORCH SHARDS 2 SOURCES ${engine_tests} ${weights_tests} LINK engine)
  decodelab_test_program(variants_test TORCH SHARDS 2 SOURCES ${variants_tests} ${variants_cuda_tests}
    LINK variants bench_commands bench_torch decodelab_profilers)
  decodelab_test_program(bench_torch_test TORCH SOURCES ${bench_torch_tests} LINK variants bench_torch)

  # The program with mistakes built in, which a gate must name.
  add_executable(decodelab_faulty $<TARGET_OBJECTS:decodelab_main> tests/program/faults.cpp)
  target_link_libraries(decodelab_faulty PRIVATE variants bench_commands bench_torch)
  target_precompile_headers(decodelab_faulty REUSE_FROM engine)

  # The program with a family of its own, in the place of the list of families.
  add_executable(decodelab_new_family $<TARGET_OBJECTS:decodelab_main> tests/program/new_family.cpp)
  target_link_libraries(decodelab_new_family PRIVATE variants bench_commands bench_torch)
  target_precompile_headers(decodelab_new_family REUSE_FROM engine)

  # A tool that listens to NVTX in another program, for tests/program/trace_test.py.
  if(DECODELAB_NVTX_INCLUDE)
    add_library(nvtx_library MODULE tests/profiles/collect/nvtx_library.cpp)
    target_link_libraries(nvtx_library PRIVATE decodelab_flags decodelab_profilers)
    set(nvtx_library_file "$<TARGET_FILE:nvtx_library>")
  endif()

  # These look at times or at how much of a core they got, and have the machine to themselves; the others run in pairs, a core each.
  set(timing_tests adaptive_test trace_test)
  file(GLOB program_tests CONFIGURE_DEPENDS tests/program/*_test.py)
  find_program(DECODELAB_PYTHON python3 HINTS ${DECODELAB_VENV}/bin NO_DEFAULT_PATH)
  if(NOT DECODELAB_PYTHON)
    message(FATAL_ERROR "No python3 in ${DECODELAB_VENV}/bin: run tools/bootstrap, or pass -DDECODELAB_VENV=DIR.")
  endif()
  foreach(test ${program_tests})
    get_filename_component(name ${test} NAME_WE)
    add_test(NAME program.${name} COMMAND ${DECODELAB_PYTHON} -m unittest -v ${name}
      WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/tests/program)
    set_tests_properties(program.${name} PROPERTIES LABELS torch
      ENVIRONMENT
        "DECODELAB=$<TARGET_FILE:decodelab>;PYTHONDONTWRITEBYTECODE=1;NVTX_LIBRARY=${nvtx_library_file};${DECODELAB_SHARED_CORES}"
      PROCESSORS 1 TIMEOUT 1200)
    if(name MATCHES "^(smollm2|gguf)_test$")
      # Without the downloaded model it skips as a whole, and is reported as skipped.
      set_tests_properties(program.${name} PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED: ")
    endif()
    if(name IN_LIST timing_tests)
      set_tests_properties(program.${name} PROPERTIES RUN_SERIAL TRUE)
    else()
      set_property(TEST program.${name} APPEND PROPERTY ENVIRONMENT DECODELAB_TEST_KEEPS_TO_A_CORE=1)
    endif()
  endforeach()

  file(GLOB reports_python_tests CONFIGURE_DEPENDS tests/reports/*_test.py)
  foreach(test ${reports_python_tests})
    get_filename_component(name ${test} NAME_WE)
    add_test(NAME reports.${name} COMMAND ${DECODELAB_PYTHON} -m unittest -v ${name}
      WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/tests/reports)
    set_tests_properties(reports.${name} PROPERTIES
      ENVIRONMENT "STATISTICS_VALUES=$<TARGET_FILE:statistics_values>;SAMPLE_REPORT=$<TARGET_FILE:sample_report>;PYTHONDONTWRITEBYTECODE=1" TIMEOUT 300
      # A test that skipped as a whole is reported as skipped, with its reason in the log.
      SKIP_REGULAR_EXPRESSION "SKIPPED: ")
  endforeach()

  file(GLOB profiles_python_tests CONFIGURE_DEPENDS tests/profiles/*_test.py)
  foreach(test ${profiles_python_tests})
    get_filename_component(name ${test} NAME_WE)
    add_test(NAME profiles.${name} COMMAND ${DECODELAB_PYTHON} -m unittest -v ${name}
      WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/tests/profiles)
    set_tests_properties(profiles.${name} PROPERTIES TIMEOUT 300 SKIP_REGULAR_EXPRESSION "SKIPPED: "
      ENVIRONMENT "TRACE_SAMPLES=$<TARGET_FILE:trace_samples>;PYTHONDONTWRITEBYTECODE=1")
  endforeach()

  # Answers tests/engine/checkpoint/tokenizer_oracle_test.py, which has Hugging Face's tokenizers; no libtorch.
  add_executable(tokenizer_values tests/engine/checkpoint/tokenizer_values.cpp)
  target_link_libraries(tokenizer_values PRIVATE checkpoint_formats)
  target_precompile_headers(tokenizer_values REUSE_FROM base)
  add_test(NAME engine.tokenizer_oracle_test COMMAND ${DECODELAB_PYTHON} -m unittest -v tokenizer_oracle_test
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/tests/engine/checkpoint)
  set_tests_properties(engine.tokenizer_oracle_test PROPERTIES
    ENVIRONMENT "TOKENIZER_VALUES=$<TARGET_FILE:tokenizer_values>;PYTHONDONTWRITEBYTECODE=1" TIMEOUT 300)

  # Answers tests/variants/masks_oracle_test.py, which has the masks of llguidance and Outlines; no libtorch.
  file(GLOB token_mask_sources CONFIGURE_DEPENDS variants/token_mask/*.cpp)
  add_executable(mask_values tests/variants/mask_values.cpp ${token_mask_sources})
  target_link_libraries(mask_values PRIVATE masks plan_core)
  target_precompile_headers(mask_values REUSE_FROM base)
  add_test(NAME variants.masks_oracle_test COMMAND ${DECODELAB_PYTHON} -m unittest -v masks_oracle_test
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/tests/variants)
  set_tests_properties(variants.masks_oracle_test PROPERTIES
    ENVIRONMENT "MASK_VALUES=$<TARGET_FILE:mask_values>;PYTHONDONTWRITEBYTECODE=1" TIMEOUT 300)

  # Answers tests/variants/warpers_transformers_test.py, which has the values of Hugging Face Transformers.
  add_executable(warper_values tests/variants/warper_values.cpp)
  target_link_libraries(warper_values PRIVATE variants)
  target_precompile_headers(warper_values REUSE_FROM engine)
  add_test(NAME variants.warpers_transformers_test COMMAND ${DECODELAB_PYTHON} -m unittest -v warpers_transformers_test
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/tests/variants)
  set_tests_properties(variants.warpers_transformers_test PROPERTIES LABELS torch
    ENVIRONMENT "WARPER_VALUES=$<TARGET_FILE:warper_values>;PYTHONDONTWRITEBYTECODE=1" TIMEOUT 300)

  # Answers tests/variants/guesses_transformers_test.py, which has the guesses of Hugging Face Transformers.
  add_executable(guess_values tests/variants/guess_values.cpp)
  target_link_libraries(guess_values PRIVATE variants bench_torch)
  target_precompile_headers(guess_values REUSE_FROM engine)
  add_test(NAME variants.guesses_transformers_test COMMAND ${DECODELAB_PYTHON} -m unittest -v guesses_transformers_test
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/tests/variants)
  set_tests_properties(variants.guesses_transformers_test PROPERTIES LABELS torch
    ENVIRONMENT "GUESS_VALUES=$<TARGET_FILE:guess_values>;PYTHONDONTWRITEBYTECODE=1" TIMEOUT 300)

  if(DECODELAB_BENCHMARKS)
    foreach(source ${micro_sources})
      get_filename_component(name ${source} NAME_WE)
      # A crash lists nothing.
      add_test(NAME benchmarks.${name}_lists_what_it_has COMMAND ${name} --benchmark_list_tests=true)
      set_tests_properties(benchmarks.${name}_lists_what_it_has PROPERTIES PASS_REGULAR_EXPRESSION "/|empty step" TIMEOUT 60)
    endforeach()
  endif()

  file(GLOB tools_tests CONFIGURE_DEPENDS tests/tools/*_test.py)
  foreach(test ${tools_tests})
    get_filename_component(name ${test} NAME_WE)
    add_test(NAME tools.${name} COMMAND ${DECODELAB_PYTHON} -m unittest -v ${name}
      WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/tests/tools)
    # A test that skipped as a whole is reported as skipped, with its reason in the log.
    set_tests_properties(tools.${name} PROPERTIES LABELS tools TIMEOUT 600 SKIP_REGULAR_EXPRESSION "SKIPPED: "
      ENVIRONMENT "DECODELAB=$<TARGET_FILE:decodelab>;PYTHONDONTWRITEBYTECODE=1;DECODELAB_TEST_KEEPS_TO_A_CORE=1")
  endforeach()
  # They run the built program, and measure, on all cores.
  set_tests_properties(tools.slurm_test tools.ci_example_test PROPERTIES LABELS "tools;torch" RUN_SERIAL TRUE)
endif()
