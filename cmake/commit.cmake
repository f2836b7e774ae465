# Writes the commit of the checkout into a header, and touches it only when it changed.
cmake_minimum_required(VERSION 3.22)
execute_process(COMMAND git describe --always --dirty --abbrev=12 --exclude=*
  WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT commit)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "// The commit that this build was made from.\n#pragma once\n#define DECODELAB_COMMIT \"${commit}\"\n" @ONLY)
