# Faults in copies of the real kernels, each of which the tests must find. A fault is a row at the end of this file.
include_guard(GLOBAL)

set(sabotage_folder ${CMAKE_BINARY_DIR}/cuda_on_cpu/sabotaged)
file(REMOVE_RECURSE ${sabotage_folder}/edited)

# Puts an edit into the copy of a file: the first FROM after the first AFTER becomes TO.
function(cuda_on_cpu_edit name file after from to)
  file(GLOB_RECURSE original RELATIVE ${CMAKE_SOURCE_DIR} engine/${file} variants/${file})
  set(copy ${sabotage_folder}/edited/${original})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${original})
  if(NOT EXISTS ${copy})
    configure_file(${original} ${copy} COPYONLY)
  endif()
  file(READ ${copy} text)
  string(FIND "${text}" "${after}" at)
  if(at GREATER_EQUAL 0)
    string(LENGTH "${after}" length)
    math(EXPR at "${at} + ${length}")
    string(SUBSTRING "${text}" 0 ${at} head)
    string(SUBSTRING "${text}" ${at} -1 tail)
    string(FIND "${tail}" "${from}" at)
  endif()
  if(at LESS 0)
    message(WARNING "Sabotage '${name}' was not put in, and its test will fail: '${from}' after '${after}' was expected in "
                    "${original}. Change its row in tests/cuda_on_cpu/sabotages.cmake.")
    return()
  endif()
  string(SUBSTRING "${tail}" 0 ${at} between)
  string(LENGTH "${from}" length)
  math(EXPR at "${at} + ${length}")
  string(SUBSTRING "${tail}" ${at} -1 rest)
  file(WRITE ${copy} "${head}${between}${to}${rest}")
endfunction()

# cuda_on_cpu_sabotage(NAME FILE AFTER text (REMOVE statement | REPLACE expression BY expression | INSERT statement)
#                      FILTER tests FINDS regex)
# The copy does as the original until DECODELAB_SABOTAGE is NAME; then the tests of FILTER must print what FINDS says.
function(cuda_on_cpu_sabotage name file)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "AFTER;REMOVE;REPLACE;BY;INSERT;FILTER;FINDS" "")
  set(chosen "::decodelab::cuda_on_cpu::sabotaged(\"${name}\")")
  if(DEFINED arg_REMOVE)
    cuda_on_cpu_edit(${name} ${file} "${arg_AFTER}" "${arg_REMOVE}" "if (!${chosen}) { ${arg_REMOVE} }")
  elseif(DEFINED arg_REPLACE)
    cuda_on_cpu_edit(${name} ${file} "${arg_AFTER}" "${arg_REPLACE}" "(${chosen} ? (${arg_BY}) : (${arg_REPLACE}))")
  else()
    cuda_on_cpu_edit(${name} ${file} "${arg_AFTER}" "" "if (${chosen}) { ${arg_INSERT} }")
  endif()
  add_test(NAME cuda_on_cpu_test.sabotage.${name}
    COMMAND cuda_on_cpu_sabotaged --gtest_brief=1 --gtest_filter=${arg_FILTER})
  set_tests_properties(cuda_on_cpu_test.sabotage.${name} PROPERTIES TIMEOUT 300
    ENVIRONMENT "DECODELAB_SABOTAGE=${name}" PASS_REGULAR_EXPRESSION "${arg_FINDS}")
endfunction()

# --- the rows ------------------------------------------------------------------------------------------------------------
set(attention "DecodeAttention.EqualsTheReferenceForAnyHeadsAndLengths")
set(line "[^ ]*decode_attention\\.cu:[0-9]+ by thread")
set(unwritten "byte [0-9]+, which nobody has written yet, at")
set(outside "outside of [^ ]+ \\(at byte [0-9]+ of [0-9]+\\) at")

cuda_on_cpu_sabotage(no-barrier-before-keys decode_attention.cu AFTER "static_cast<std::int64_t>(kTile), end - begin));"
  REMOVE "__syncthreads();" FILTER ${attention} FINDS "race on tile, byte [0-9]+: write at ${line} .* and read at ${line}")
cuda_on_cpu_sabotage(no-barrier-after-keys decode_attention.cu AFTER ": load_tile(keys + begin"
  REMOVE "__syncthreads();" FILTER ${attention} FINDS "read of tile, ${unwritten} ${line}")
cuda_on_cpu_sabotage(no-warp-barrier decode_attention.cu AFTER "const float added = warp_sum(weight);"
  REMOVE "__syncwarp();" FILTER ${attention} FINDS "race on most, byte [0-9]+: write at ${line} .* and read at ${line}")
cuda_on_cpu_sabotage(no-barrier-before-values decode_attention.cu AFTER "most[head] = largest;"
  REMOVE "__syncthreads();" FILTER ${attention} FINDS "race on tile, byte [0-9]+: write at ${line} .* and read at ${line}")
cuda_on_cpu_sabotage(barrier-in-a-branch decode_attention.cu AFTER "const int group = threadIdx.x / columns;"
  INSERT "if (column < k) { __syncthreads(); }" FILTER ${attention}
  FINDS "not all threads reach a barrier; .* wait in __syncthreads at [^ ]*decode_attention\\.cu:[0-9]+")
cuda_on_cpu_sabotage(index-into-the-next-range decode_attention.cu AFTER "const float weight = seen"
  REPLACE "head * kTile + lane" BY "(head + 1) * kTile + lane" FILTER ${attention}
  FINDS "write of 4 bytes outside of weights \\(at byte [0-9]+ of [0-9]+\\) at ${line}")
cuda_on_cpu_sabotage(too-little-shared-memory decode_attention.cu AFTER "dim3 grid("
  REPLACE "static_cast<std::size_t>(a.launch.shared_bytes)" BY "static_cast<std::size_t>(a.launch.shared_bytes) - 4"
  FILTER ${attention} FINDS "range 'rescale' ends at byte [0-9]+ .* asked for [0-9]+, at [^ ]*decode_attention\\.cu:[0-9]+")
cuda_on_cpu_sabotage(one-key-too-many decode_attention.cu AFTER "std::int64_t visible_to("
  REPLACE "a.held[query * a.held_stride] + 1" BY "a.held[query * a.held_stride] + 2" FILTER ${attention}
  FINDS "read of cache, ${unwritten} [^ ]*device_float\\.cuh:[0-9]+")
cuda_on_cpu_sabotage(all-splits-merged decode_attention.cu AFTER "std::int64_t splits ="
  REPLACE "splits < a.launch.splits ? splits : a.launch.splits" BY "a.launch.splits" FILTER ${attention}
  FINDS "read of partials, ${unwritten} ${line}")
cuda_on_cpu_sabotage(vectors-of-any-address decode_attention.cu AFTER "const bool in_vectors ="
  REPLACE "addresses % kVectorBytes == 0" BY "true" FILTER DecodeAttention.ReadsACache*
  FINDS "misaligned access: .* lies at multiples of 16 bytes.* at [^ ]*device_float\\.cuh:[0-9]+ by thread")

set(line "[^ ]*device_float\\.cuh:[0-9]+ ")
cuda_on_cpu_sabotage(no-barrier-before-a-sum device_float.cuh AFTER "float block_sum("
  REMOVE "__syncthreads();" FILTER FusedNorm.EqualsTheReference*
  FINDS "race on static norm_of_block<[^>]*>::scratch, byte [0-9]+: write at ${line}.* and read at ${line}")
cuda_on_cpu_sabotage(no-barrier-inside-a-sum device_float.cuh AFTER "scratch[threadIdx.x / kWarpThreads] = value;"
  REMOVE "__syncthreads();" FILTER FusedNorm.EqualsTheReference*
  FINDS "static norm_of_block<[^>]*>::scratch, ${unwritten} ${line}")
cuda_on_cpu_sabotage(no-barrier-inside-a-maximum device_float.cuh AFTER "value = warp_max(value);\n  __syncthreads();"
  REMOVE "__syncthreads();" FILTER MaskedSoftmax.OfABlock*
  FINDS "static softmax_of_block<[^>]*>::scratch, ${unwritten} ${line}")
cuda_on_cpu_sabotage(norm-behind-its-row fused_norm.cu AFTER "Element* normed ="
  REPLACE "at < n.width" BY "at < n.width + 1" FILTER FusedNorm.EqualsTheReference*
  FINDS "read of [0-9]+ bytes ${outside} ${line}")
cuda_on_cpu_sabotage(no-warp-barrier-before-a-turn rotary_rows.cu AFTER "scale = 1.0f / sqrtf"
  REMOVE "__syncwarp();" FILTER RotaryRows.EqualTheReference*
  FINDS "race on rows, byte [0-9]+: .*rotary_rows\\.cu:[0-9]+")
cuda_on_cpu_sabotage(turn-behind-the-last-token rotary_rows.cu AFTER "threadIdx.x / warp;"
  REPLACE "item >= r.tokens * heads" BY "false" FILTER RotaryRows.EqualTheReference*
  FINDS "of [0-9]+ bytes ${outside} [^ ]*rotary_rows\\.cu:[0-9]+")
cuda_on_cpu_sabotage(gate-behind-its-row gate_rows.cu AFTER "Elements<Element, N> gate = load<N>(from);"
  REPLACE "from + g.width" BY "from + 2 * g.width" FILTER GateRows.EqualTheReference*
  FINDS "read of [0-9]+ bytes ${outside} ${line}")
cuda_on_cpu_sabotage(weight-behind-its-row masked_softmax.cu AFTER "const float scale = 1.0f / warp_sum(total);"
  REPLACE "at < s.keys" BY "at <= s.keys" FILTER MaskedSoftmax.OfAWarpEqualsTheReference
  FINDS "(race on scores, byte [0-9]+: |write of [0-9]+ bytes ${outside} ).*masked_softmax\\.cu:[0-9]+")
cuda_on_cpu_sabotage(warp-behind-the-last-row masked_softmax.cu AFTER "threadIdx.x / kWarpThreads;"
  REPLACE "row >= s.rows" BY "false" FILTER MaskedSoftmax.OfAWarpEqualsTheReference
  FINDS "read of 8 bytes ${outside} [^ ]*masked_softmax\\.cu:[0-9]+")
cuda_on_cpu_sabotage(no-barrier-in-the-race philox_race.cu AFTER "of_warp[threadIdx.x / kWarp] = best;"
  REMOVE "__syncthreads();" FILTER PhiloxRaceOnCpu.*
  FINDS "static race::of_warp, ${unwritten} [^ ]*philox_race\\.cu:[0-9]+")
cuda_on_cpu_sabotage(half-a-warp-in-a-shuffle philox_race.cu AFTER "__syncthreads();"
  REPLACE "threadIdx.x < kWarp" BY "threadIdx.x < kWarp / 2" FILTER PhiloxRaceOnCpu.*
  FINDS "has a value from lane [0-9]+, which takes no part, at [^ ]*philox_race\\.cu:[0-9]+")
set(scan "ScanLogits.EqualTheReference*")
set(count "race on static find_largest<[^>]*>::written, byte [0-9]+: .*scan_logits\\.cu:[0-9]+")
cuda_on_cpu_sabotage(no-barrier-before-a-search scan_logits.cu AFTER "const Found found{"
  REMOVE "__syncthreads();" FILTER ${scan} FINDS "${count}")
cuda_on_cpu_sabotage(no-barrier-behind-a-search scan_logits.cu AFTER "add_from_groups(s, logits, maxima, bound, found);"
  REMOVE "__syncthreads();" FILTER ${scan} FINDS "${count}")
cuda_on_cpu_sabotage(no-barrier-before-a-second-search scan_logits.cu AFTER "if (written > s.capacity) {"
  REMOVE "__syncthreads();" FILTER ${scan} FINDS "${count}")
cuda_on_cpu_sabotage(no-barrier-before-ties scan_logits.cu AFTER "if (ordered(value) > last) {"
  REMOVE "__syncthreads();" FILTER ${scan} FINDS "${count}")
cuda_on_cpu_sabotage(logits-behind-their-row scan_logits.cu AFTER "const std::int64_t group = blockIdx.x"
  REPLACE "at < s.width" BY "at < s.width + 1" FILTER ${scan} FINDS "read of [0-9]+ bytes ${outside} [^ ]*scan_logits\\.cu:[0-9]+")
cuda_on_cpu_sabotage(numbers-behind-the-last random_fill.cu AFTER "word < 4 && "
  REPLACE "block * 4 + word < count" BY "true" FILTER RandomFill.*
  FINDS "write of 4 bytes ${outside} [^ ]*random_fill\\.cu:[0-9]+")

# --- the program ---------------------------------------------------------------------------------------------------------
# Copies that are the same as before are left alone, so that only those that changed are compiled again.
file(GLOB_RECURSE edited_files RELATIVE ${sabotage_folder}/edited ${sabotage_folder}/edited/*)
foreach(file ${edited_files})
  configure_file(${sabotage_folder}/edited/${file} ${sabotage_folder}/${file} COPYONLY)
endforeach()

set(sabotaged_objects)
foreach(kernel ${cuda_on_cpu_kernels})
  get_filename_component(name ${kernel} NAME_WE)
  if(kernel MATCHES "^tests/")
    list(APPEND sabotaged_objects $<TARGET_OBJECTS:cuda_on_cpu_${name}>)
  else()
    cuda_on_cpu_kernel(cuda_on_cpu_sabotaged_${name} ${kernel} OVERLAY ${sabotage_folder})
    list(APPEND sabotaged_objects $<TARGET_OBJECTS:cuda_on_cpu_sabotaged_${name}>)
  endif()
endforeach()
add_executable(cuda_on_cpu_sabotaged ${sabotaged_objects} $<TARGET_OBJECTS:cuda_on_cpu_test>)
target_link_libraries(cuda_on_cpu_sabotaged PRIVATE decodelab_flags decodelab_fmt GTest::gtest GTest::gtest_main)
set_target_properties(cuda_on_cpu_sabotaged PROPERTIES LINKER_LANGUAGE CXX)
add_dependencies(torch_free_tests cuda_on_cpu_sabotaged)

# What the rows find is the fault and not the copy: with none switched on all tests pass.
add_test(NAME cuda_on_cpu_test.sabotage.none
  COMMAND cuda_on_cpu_sabotaged --gtest_brief=1 --gtest_filter=-*Faults*:EveryKernel*)
set_tests_properties(cuda_on_cpu_test.sabotage.none PROPERTIES TIMEOUT 300)
