# The Python package (pyproject.toml): where its program looks for libraries, and which files it has beside python/decodelab.
include_guard(GLOBAL)

# Folders as the wheel has them, and as the program in its folder bin sees those of torch's packages. DT_RPATH, which comes before
# LD_LIBRARY_PATH: another libtorch of the user's is none for this program. The launcher adds LD_LIBRARY_PATH where torch lies elsewhere.
set(wheel_folder decodelab)
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH $ORIGIN/../lib $ORIGIN/../../torch/lib)
foreach(directory IN LISTS torch_nvidia_libraries)
  if(directory MATCHES "/nvidia/[^/]+/lib$")
    list(APPEND CMAKE_INSTALL_RPATH $ORIGIN/../..${CMAKE_MATCH_0})
  endif()
endforeach()
list(REMOVE_DUPLICATES CMAKE_INSTALL_RPATH)
add_link_options(-Wl,--disable-new-dtags)

# pip starts a job a core, and a file with the torch headers takes up to 2 GB to compile.
set(wheel_job_mb 2000)
cmake_host_system_information(RESULT memory_mb QUERY AVAILABLE_PHYSICAL_MEMORY)
math(EXPR wheel_jobs "${memory_mb} / ${wheel_job_mb}")
if(wheel_jobs LESS 1)
  set(wheel_jobs 1)
endif()
set_property(GLOBAL APPEND PROPERTY JOB_POOLS compile=${wheel_jobs})
set(CMAKE_JOB_POOL_COMPILE compile)

# What the launcher compares the user's torch with.
function(write_built_with file)
  set(torch_version "")
  set(cuda_version "")
  if(EXISTS ${torch_dir}/version.py)
    file(READ ${torch_dir}/version.py text)
    if(text MATCHES "__version__ = '([^']+)'")
      set(torch_version ${CMAKE_MATCH_1})
    endif()
    if(DECODELAB_HAS_CUDA AND text MATCHES "\ncuda[^=\n]*= '([^']+)'")
      set(cuda_version ${CMAKE_MATCH_1})
    endif()
  endif()
  if(NOT torch_version)
    message(FATAL_ERROR "A wheel is built with the torch of a Python package: ${torch_dir}/version.py was expected to say its version.")
  endif()
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [[
"""The torch that the program was built with, and the CUDA that it is linked with, which is empty without."""

TORCH = "@torch_version@"
CUDA = "@cuda_version@"
]])
endfunction()

# What a wheel carries of others, as code that is linked into the program, by the Debian packages that it is built with. Each comes with
# its copyright and licence, as Debian states them.
set(carried_packages libboost-dev libcli11-dev libfmt-dev libpcre2-dev libprotozero-dev libsqlite3-dev libsqlitecpp-dev libutf8proc-dev nlohmann-json3-dev zlib1g-dev)

function(install_licences)
  foreach(package IN LISTS carried_packages)
    set(text /usr/share/doc/${package}/copyright)
    if(EXISTS ${text})
      install(FILES ${text} DESTINATION ${wheel_folder}/licences RENAME ${package}.txt COMPONENT wheel)
    else()
      message(WARNING "The wheel has no licence of ${package}, since there is no ${text}: build what you hand on where the Debian packages are installed.")
    endif()
  endforeach()
endfunction()

function(install_wheel)
  install_licences()
  install(TARGETS decodelab RUNTIME DESTINATION ${wheel_folder}/bin COMPONENT wheel)
  if(DECODELAB_HAS_CUDA)
    install(TARGETS decodelab_cuda LIBRARY DESTINATION ${wheel_folder}/bin COMPONENT wheel)
  endif()
  install(FILES tools/render_figures.py tools/fetch_model.py tools/requirements.txt DESTINATION ${wheel_folder}/tools COMPONENT wheel)
  write_built_with(${CMAKE_BINARY_DIR}/generated/built_with.py)
  install(FILES ${CMAKE_BINARY_DIR}/generated/built_with.py DESTINATION ${wheel_folder} COMPONENT wheel)
  foreach(library IN LISTS carried_libraries)
    # Under the name by which the program asks for it.
    execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${library} OUTPUT_VARIABLE headers COMMAND_ERROR_IS_FATAL ANY)
    if(NOT headers MATCHES "SONAME +([^ \n]+)")
      message(FATAL_ERROR "${library} was expected to have a SONAME: link its archive, or install the library of a distribution.")
    endif()
    set(name ${CMAKE_MATCH_1})
    file(REAL_PATH ${library} file)
    install(FILES ${file} DESTINATION ${wheel_folder}/lib RENAME ${name} COMPONENT wheel)
  endforeach()
endfunction()
