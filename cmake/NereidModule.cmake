# The headers that nearly all sources read are compiled once, which takes a third off the time that a source needs, and a
# seventh where several are compiled together. tools/check_clang.py reads the sources without this, so each names what it
# needs. Not in the presets `asan` and `tsan`, where sources keep all warnings (see nereid_reuse_headers).
if(NOT (CMAKE_UNITY_BUILD AND NEREID_SANITIZE))
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/module_headers.cc CONTENT "")
  add_library(module_headers STATIC EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/module_headers.cc)
  target_link_libraries(module_headers PRIVATE nereid_flags)
  target_precompile_headers(module_headers PRIVATE
    <algorithm> <array> <atomic> <charconv> <chrono> <cstdint> <cstring> <filesystem> <functional> <map> <memory> <mutex>
    <optional> <set> <span> <string> <string_view> <thread> <utility> <vector>)
endif()

# nereid_module(NAME <m> [DEPS <modules>] [PRIVATE_DEPS <modules>] [LIBS <libraries>] [TEST_LIBS <libraries>]
#               [UNITY])
#
#   <dir>/*.cc          static library <m>
#   <dir>/*_test.cc     executable <m>_test, linked with <m>, its declared dependencies and GoogleTest
#   <dir>/testing/*.cc  static library <m>_testing: fakes for the tests of other modules
#   <dir>/*.h           included as "<m>/x.h"
#
# UNITY compiles the sources together, which takes less than half the time, and for size (except in the preset `serve`). It
# is for modules that serve no request.
#
# A module's headers are reached through build/include_roots/<m>/<m> -> its source folder. A target
# sees its own root and, through PUBLIC links, the roots of DEPS; PRIVATE_DEPS and what they bring
# are linked but not passed on. An include that the module graph forbids is therefore "No such file
# or directory", from the compiler, on every build.
function(nereid_module)
  cmake_parse_arguments(M "UNITY" "NAME" "DEPS;PRIVATE_DEPS;LIBS;PRIVATE_LIBS;TEST_LIBS" ${ARGN})
  set(root ${CMAKE_BINARY_DIR}/include_roots/${M_NAME})
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${root}/${M_NAME} SYMBOLIC)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|bench|fuzz)\\.cc$")
  if(sources)
    add_library(${M_NAME} STATIC ${sources})
    target_include_directories(${M_NAME} PUBLIC ${root})
    target_link_libraries(${M_NAME} PUBLIC ${M_DEPS} ${M_LIBS} PRIVATE ${M_PRIVATE_DEPS} ${M_PRIVATE_LIBS} nereid_flags)
    target_compile_options(${M_NAME} PRIVATE -ffile-prefix-map=${root}/=src/)
    if(TARGET module_headers AND (CMAKE_UNITY_BUILD OR NOT M_UNITY))
      nereid_reuse_headers(${M_NAME} module_headers)
    endif()
    if(M_UNITY)
      set_target_properties(${M_NAME} PROPERTIES UNITY_BUILD ON)
      target_link_libraries(${M_NAME} PRIVATE nereid_small_flags nereid_unity_flags)
    endif()
  else()
    add_library(${M_NAME} INTERFACE)
    target_include_directories(${M_NAME} INTERFACE ${root})
    target_link_libraries(${M_NAME} INTERFACE ${M_DEPS} ${M_LIBS})
  endif()
  file(GLOB fakes CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/testing/*.cc)
  if(fakes)
    add_library(${M_NAME}_testing STATIC ${fakes})
    target_link_libraries(${M_NAME}_testing PUBLIC ${M_NAME} PRIVATE nereid_flags)
  endif()
  if(tests AND NEREID_BUILD_TESTS)
    add_executable(${M_NAME}_test ${tests})
    target_link_libraries(${M_NAME}_test PRIVATE ${M_NAME} ${M_TEST_LIBS} GTest::gtest_main)
    nereid_test_settings(${M_NAME}_test)
    if(fakes)
      target_link_libraries(${M_NAME}_test PRIVATE ${M_NAME}_testing)
    endif()
    add_test(NAME unit.${M_NAME} COMMAND ${M_NAME}_test)
  endif()
endfunction()
