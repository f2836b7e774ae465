# Makes Vega's JavaScript at build time and embeds it in the reports library.
include_guard(GLOBAL)

get_filename_component(vega_root ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(vega_bundle ${CMAKE_BINARY_DIR}/generated/vega_bundle.base64)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/generated)

execute_process(COMMAND ${build_python} -c "import vl_convert" RESULT_VARIABLE vega_missing OUTPUT_QUIET ERROR_QUIET)
if(vega_missing AND DECODELAB_WHEEL)
  message(FATAL_ERROR "vl-convert-python was not found by '${build_python}', and the pages of a wheel need it: install it there.")
elseif(vega_missing)
  message(WARNING "vl-convert-python was not found in '${DECODELAB_VENV}': pages of this build have still figures only. "
                  "Run tools/bootstrap, or pass -DDECODELAB_VENV=DIR.")
else()
  add_custom_command(OUTPUT ${vega_bundle}
    COMMAND ${build_python} ${vega_root}/tools/embed_vega.py ${vega_bundle}
    DEPENDS ${vega_root}/tools/embed_vega.py COMMENT "Bundling Vega for offline pages" VERBATIM)
  add_custom_target(vega_bundle DEPENDS ${vega_bundle})
  add_dependencies(reports_page vega_bundle)
  set_property(SOURCE ${vega_root}/reports/figures/vega_bundle.cpp APPEND PROPERTY COMPILE_DEFINITIONS DECODELAB_VEGA_BUNDLE="${vega_bundle}")
  set_property(SOURCE ${vega_root}/reports/figures/vega_bundle.cpp APPEND PROPERTY OBJECT_DEPENDS ${vega_bundle})
endif()
