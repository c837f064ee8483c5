# nereid_fuzz(<name> <libraries...>): the program <name>_fuzz from <dir>/<name>_fuzz.cc, which reads damaged
# inputs (tests/fuzz/fuzz.h). By itself it reads its seeds, what the corpus has collected (tests/fuzz/corpus/<name>,
# if that exists) and damaged copies of both, which is one of the tests. With clang and the preset `fuzz` it is a
# libFuzzer target; tools/run_fuzzers.py runs these.
option(NEREID_FUZZ "Link the fuzzers with libFuzzer (clang)" OFF)
add_custom_target(fuzzers)

function(nereid_fuzz name)
  if(NOT NEREID_BUILD_TESTS)
    return()
  endif()
  add_executable(${name}_fuzz ${name}_fuzz.cc)
  add_dependencies(fuzzers ${name}_fuzz)
  target_include_directories(${name}_fuzz PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${name}_fuzz PRIVATE ${ARGN} nereid_flags)
  if(NEREID_FUZZ)
    target_sources(${name}_fuzz PRIVATE ${CMAKE_SOURCE_DIR}/tests/fuzz/write_seeds.cc)
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
    set_target_properties(${name}_fuzz PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzzers)
    return()
  endif()
  target_sources(${name}_fuzz PRIVATE ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.cc)
  add_test(NAME fuzz.${name} COMMAND ${name}_fuzz --corpus=${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
endfunction()
