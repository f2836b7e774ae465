# The one flags target: every library and program of ours links `decodelab_flags`, and no flag is set anywhere else.
include_guard(GLOBAL)

add_library(decodelab_flags INTERFACE)
target_include_directories(decodelab_flags INTERFACE ${CMAKE_SOURCE_DIR})
# g++ 12 at -O3 has false -Wrestrict, -Wmaybe-uninitialized and -Wstringop-overflow warnings inside std::string and {fmt}. Designated initializers name the
# members that matter; the others are zero, and that is no mistake.
target_compile_options(decodelab_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow
    -Wno-missing-field-initializers>
  # Where files are compiled together, a local variable may have the name of a function in a neighbour.
  $<$<COMPILE_LANGUAGE:CXX>:-Wshadow=$<IF:$<BOOL:${DECODELAB_UNITY}>,local,global>>
  $<$<AND:$<BOOL:${DECODELAB_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>)
# Sources that differ only in folders above the checkout build the same program.
target_compile_options(decodelab_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=>)
if(DECODELAB_SANITIZE)
  target_compile_options(decodelab_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${DECODELAB_SANITIZE} -fno-omit-frame-pointer>)
  if(DECODELAB_SANITIZE MATCHES undefined)
    # Going on after a report, and these two checks, would take a good part of the build's time; AddressSanitizer stops at a null pointer
    # and beyond an object too.
    target_compile_options(decodelab_flags INTERFACE
      $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all -fno-sanitize=null,object-size>)
  endif()
  target_link_options(decodelab_flags INTERFACE -fsanitize=${DECODELAB_SANITIZE})
endif()

# -O3 spends a tenth more time on every file for loops that libtorch runs, not ours; vectorization is the part of it that ours need.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -ftree-vectorize -fvect-cost-model=dynamic -DNDEBUG")

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # A precompiled header changes its time stamp in every build folder; its content is what counts. ccache reads this when it runs,
  # not when CMake does. -fpch-preprocess lets ccache see through a precompiled header. Two checkouts of one commit share what was
  # compiled: paths below the checkout are hashed from the build folder on, and the precompiled headers name no folder.
  set(ccache_launcher ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ccache_launcher})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${ccache_launcher})
  target_compile_options(decodelab_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
endif()
