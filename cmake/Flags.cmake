# Compiler and linker settings shared by every target of ours, carried by the interface target
# `nereid_flags`. Third-party headers come in as SYSTEM and are not held to our warnings.
set(NEREID_SANITIZE "" CACHE STRING "Sanitizers to build with, as for -fsanitize= (address,undefined or thread)")

# `cmake --compile-no-warning-as-error` builds with compilers that we have not tried.
if(NOT DEFINED CMAKE_COMPILE_WARNING_AS_ERROR)
  set(CMAKE_COMPILE_WARNING_AS_ERROR ON)
endif()
add_library(nereid_flags INTERFACE)
target_compile_options(nereid_flags INTERFACE
  -Wall -Wextra -Wnon-virtual-dtor -Woverloaded-virtual -Wno-missing-field-initializers)
# GCC 12 sees overlapping copies in string concatenation that are not there (its bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(nereid_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  # GCC looks for what it no longer needs only when it holds this many KiB, which saves a tenth of its time.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=400000>)
endif()
# In a unity build, GCC takes the sources for headers.
add_library(nereid_unity_flags INTERFACE)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(nereid_unity_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
if(CMAKE_UNITY_BUILD)
  target_link_libraries(nereid_flags INTERFACE nereid_unity_flags)
endif()
# For what serves no request: for size, but in the preset `serve`, where the time to compile counts.
add_library(nereid_small_flags INTERFACE)
if(NOT CMAKE_UNITY_BUILD)
  target_compile_options(nereid_small_flags INTERFACE $<$<CONFIG:Release>:-Os>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # RapidJSON 1.1 has a member function template that clang 19 refuses unless its body is only looked at where it
  # is used.
  target_compile_options(nereid_flags INTERFACE -Wthread-safety
    $<$<COMPILE_LANGUAGE:CXX>:-fdelayed-template-parsing> $<$<COMPILE_LANGUAGE:CXX>:-Wno-delayed-template-parsing-in-cxx20>)
  # Some libraries ask for it, and clang refuses headers that were precompiled without it.
  add_compile_options(-pthread)
endif()

# What every x86 server since 2010 has.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options(-march=x86-64-v2)
endif()

# What users get says nothing of the folder it was built in. The later of two maps that fit wins.
foreach(map "${CMAKE_SOURCE_DIR}/=" "${CMAKE_BINARY_DIR}/=build/")
  add_compile_options("$<$<CONFIG:Release>:-ffile-prefix-map=${map}>")
endforeach()

if(NEREID_SANITIZE)
  add_compile_options(-fsanitize=${NEREID_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${NEREID_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_compile_options(-fsanitize-ignorelist=${CMAKE_SOURCE_DIR}/cmake/sanitizer_ignore.txt)
  endif()
endif()

find_program(NEREID_LLD ld.lld)
if(NEREID_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# nereid_reuse_headers(<target> <other>): the target's sources are compiled with the precompiled headers of the other.
function(nereid_reuse_headers target other)
  target_precompile_headers(${target} REUSE_FROM ${other})
  # Some libraries define macros that change what the headers mean; then these are read anew.
  set_target_properties(${target} PROPERTIES PCH_WARN_INVALID OFF)
  # GCC 12 sees copies beyond the end of strings that are not there: where it optimises little, and in precompiled headers,
  # which it does not know for the system's. The sources of modules keep these warnings in the sanitizers' presets.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endfunction()
