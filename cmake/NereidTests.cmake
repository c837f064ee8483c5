# What all unit tests have in common.
#
# The headers that nearly every one of them reads are compiled once, which more than halves the time that a test takes
# to compile; and tests are in no hurry.
if(NEREID_BUILD_TESTS)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/test_headers.cc CONTENT "int main() { return 0; }\n")
  # A program, since headers for programs and for libraries are compiled differently; this one does nothing.
  add_executable(test_headers EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/test_headers.cc)
  target_link_libraries(test_headers PRIVATE nereid_flags GTest::gmock GTest::gtest)
  target_compile_options(test_headers PRIVATE $<$<CONFIG:Release>:-O1>)
  target_precompile_headers(test_headers PRIVATE
    <gmock/gmock.h> <gtest/gtest.h>
    <algorithm> <array> <atomic> <chrono> <cstdint> <functional> <map> <memory> <mutex> <optional> <span> <string>
    <string_view> <thread> <utility> <vector>)
endif()

# nereid_test_settings(<target>): for a program of unit tests.
function(nereid_test_settings target)
  target_link_libraries(${target} PRIVATE nereid_flags GTest::gmock GTest::gtest)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  # Tests of one module have fakes and helpers of the same names.
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  nereid_reuse_headers(${target} test_headers)
endfunction()
