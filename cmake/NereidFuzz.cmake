# nereid_fuzz(<name> <libraries...>): the program <name>_fuzz from <dir>/<name>_fuzz.cc, which reads damaged
# inputs (tests/fuzz/fuzz.h). By itself it damages its seeds, which is one of the tests; with clang and
# -DNEREID_SANITIZE=address,undefined,fuzzer-no-link -DNEREID_FUZZ=ON it is a libFuzzer target.
option(NEREID_FUZZ "Link the fuzzers with libFuzzer (clang)" OFF)

function(nereid_fuzz name)
  if(NOT NEREID_BUILD_TESTS)
    return()
  endif()
  add_executable(${name}_fuzz ${name}_fuzz.cc)
  target_include_directories(${name}_fuzz PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${name}_fuzz PRIVATE ${ARGN} nereid_flags)
  if(NEREID_FUZZ)
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
    return()
  endif()
  target_sources(${name}_fuzz PRIVATE ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.cc)
  add_test(NAME fuzz.${name} COMMAND ${name}_fuzz)
endfunction()
