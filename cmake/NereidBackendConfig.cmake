# find_package(NereidBackend): everything to write backends with, from an installation or from the
# project's own tree. Gives nereid_backend(NAME <n> SOURCES <files> [LIBS <libraries>]), the plug-in
# libtriton_<n>.so in the build folder's backends/<n>, built against "triton/core/tritonbackend.h" and
# "backend_kit/x.h". The kit is C++20 and reads configurations with RapidJSON.
include(${CMAKE_CURRENT_LIST_DIR}/NereidPlugins.cmake)

find_path(RAPIDJSON_INCLUDE_DIR rapidjson/document.h)
if(NOT RAPIDJSON_INCLUDE_DIR)
  set(NereidBackend_FOUND FALSE)
  set(NereidBackend_NOT_FOUND_MESSAGE "RapidJSON's headers were not found (Debian, Ubuntu: rapidjson-dev)")
  return()
endif()

if(NOT TARGET Nereid::backend_kit)
  # <prefix>/lib/cmake/NereidBackend, or cmake/ of the project's tree.
  get_filename_component(nereid_abi ${CMAKE_CURRENT_LIST_DIR}/../../../include ABSOLUTE)
  set(nereid_kit ${nereid_abi})
  if(NOT EXISTS ${nereid_abi}/backend_kit)
    get_filename_component(nereid_abi ${CMAKE_CURRENT_LIST_DIR}/../src/abi ABSOLUTE)
    set(nereid_kit ${CMAKE_BINARY_DIR}/nereid_include)
    file(MAKE_DIRECTORY ${nereid_kit})
    file(CREATE_LINK ${CMAKE_CURRENT_LIST_DIR}/../backends/kit ${nereid_kit}/backend_kit SYMBOLIC)
  endif()
  add_library(Nereid::backend_kit INTERFACE IMPORTED)
  target_include_directories(Nereid::backend_kit INTERFACE ${nereid_kit} ${nereid_abi} ${RAPIDJSON_INCLUDE_DIR})
  target_compile_features(Nereid::backend_kit INTERFACE cxx_std_20)
  nereid_server_stub(${nereid_abi})
endif()

function(nereid_backend)
  cmake_parse_arguments(B "" "NAME" "SOURCES;LIBS" ${ARGN})
  nereid_plugin(KIND backend NAME ${B_NAME} SOURCES ${B_SOURCES} LIBS Nereid::backend_kit ${B_LIBS})
endfunction()
