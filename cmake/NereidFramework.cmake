# nereid_framework(<name>): whether the backend of a framework is built, in NEREID_BUILDS_<NAME>, and where
# its library and headers are, in NEREID_<NAME>_ROOT.
#
# NEREID_WITH_<NAME>=AUTO builds it where the folder is there, as `tools/setup --with <name>` leaves it; ON
# requires the folder, unless the library is OPENED_AT_RUN_TIME and the build does not need it. Under
# sanitizers AUTO builds none: the libraries are not instrumented, and what the sanitizers say of them is
# wrong.
function(nereid_framework name)
  cmake_parse_arguments(F "OPENED_AT_RUN_TIME" "" "" ${ARGN})
  string(TOUPPER ${name} upper)
  set(NEREID_WITH_${upper} AUTO CACHE STRING "Build the ${name} backend: AUTO, ON or OFF")
  set_property(CACHE NEREID_WITH_${upper} PROPERTY STRINGS AUTO ON OFF)
  set(NEREID_${upper}_ROOT "${PROJECT_SOURCE_DIR}/.deps/${name}" CACHE PATH
    "Folder with include/ and lib/ of ${name}; tools/setup --with ${name} makes the default")
  set(builds OFF)
  if(NEREID_WITH_${upper} STREQUAL "AUTO")
    if(IS_DIRECTORY ${NEREID_${upper}_ROOT} AND NOT NEREID_SANITIZE)
      set(builds ON)
    endif()
  elseif(NEREID_WITH_${upper})
    if(NOT F_OPENED_AT_RUN_TIME AND NOT IS_DIRECTORY ${NEREID_${upper}_ROOT})
      message(FATAL_ERROR "There is no ${NEREID_${upper}_ROOT}: run tools/setup --with ${name}, or set NEREID_${upper}_ROOT")
    endif()
    set(builds ON)
  endif()
  set(NEREID_BUILDS_${upper} ${builds} PARENT_SCOPE)
endfunction()
