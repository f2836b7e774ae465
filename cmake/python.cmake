# The Python of the build and the folders of its packages: that of .venv, or the one that makes a wheel.
include_guard(GLOBAL)

set(DECODELAB_VENV ${CMAKE_SOURCE_DIR}/.venv CACHE PATH "The virtual environment that tools/bootstrap makes")
if(DECODELAB_WHEEL AND Python_EXECUTABLE)
  # Not .venv, where pip builds in an environment of its own; packages may lie in several folders.
  set(build_python ${Python_EXECUTABLE})
  execute_process(COMMAND ${build_python} -c "import sys; print(';'.join(filter(None, sys.path)))"
    OUTPUT_VARIABLE python_sites OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
else()
  set(build_python ${DECODELAB_VENV}/bin/python)
  file(GLOB python_sites ${DECODELAB_VENV}/lib/python3*/site-packages)
endif()

# The first folder of packages that has `file`; empty without.
function(find_python_site variable file)
  set(${variable} "" PARENT_SCOPE)
  foreach(site IN LISTS python_sites)
    if(EXISTS ${site}/${file})
      set(${variable} ${site} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# For `decodelab report` and `decodelab fetch`; a wheel has its scripts itself, and a Python that runs it.
if(NOT DECODELAB_WHEEL)
  set_property(SOURCE ${CMAKE_SOURCE_DIR}/base/python_script.cpp APPEND PROPERTY COMPILE_DEFINITIONS
    DECODELAB_CHECKOUT_PYTHON="${build_python}" DECODELAB_CHECKOUT_TOOLS="${CMAKE_SOURCE_DIR}/tools")
endif()
