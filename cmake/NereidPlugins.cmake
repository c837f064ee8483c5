# Plug-ins: libraries that the server loads. Used by this project and, through
# NereidBackendConfig.cmake, by whoever writes plug-ins elsewhere.

# nereid_server_stub(<folder of the headers>): the library target server_stub.
#
# Plug-ins name libtritonserver.so as a library they need, so that they also load into a process
# that opened the server privately. They link against this stand-in, which has the server's soname
# and its functions' names but none of its code: building a plug-in does not need the server.
function(nereid_server_stub folder)
  set(names)
  foreach(header tritonserver.h tritonbackend.h tritoncache.h tritonrepoagent.h)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/triton/core/${header})
    file(READ ${folder}/triton/core/${header} text)
    string(REGEX MATCHALL "TRITON(SERVER|BACKEND|CACHE|REPOAGENT)_[A-Za-z0-9]+\\(" found "${text}")
    list(APPEND names ${found})
  endforeach()
  list(REMOVE_DUPLICATES names)
  set(stub "")
  foreach(name ${names})
    string(APPEND stub "void ${name}void);\n__attribute__((visibility(\"default\"))) void ${name}void) {}\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/server_stub.c CONTENT "${stub}")
  add_library(server_stub SHARED ${CMAKE_CURRENT_BINARY_DIR}/server_stub.c)
  set_target_properties(server_stub PROPERTIES
    OUTPUT_NAME tritonserver
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/stub)
endfunction()

# nereid_plugin(KIND backend|cache|repoagent NAME <n> SOURCES <files> LIBS <libraries>): the library
# libtriton[cache|repoagent]_<n>.so (target: without "lib"), in the build folder's and in an
# installation's <kind>s/<n>, where the server looks for it. The part of an installation
# (cmake --install --component) is <kind>-<n>; libraries that it brings along are <kind>-<n>-libraries.
function(nereid_plugin)
  cmake_parse_arguments(P "" "KIND;NAME" "SOURCES;LIBS" ${ARGN})
  string(REGEX REPLACE "^backend$" "" prefix "${P_KIND}")
  set(target triton${prefix}_${P_NAME})
  add_library(${target} SHARED ${P_SOURCES})
  # The stand-in goes in as a plain flag: as a target, CMake would have it searched for at run time.
  add_dependencies(${target} server_stub)
  target_link_libraries(${target} PRIVATE ${P_LIBS} -L$<TARGET_FILE_DIR:server_stub> -ltritonserver)
  if(TARGET plugins)
    add_dependencies(plugins ${target})
  endif()
  # Symbols of static libraries inside stay inside.
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
  set_target_properties(${target} PROPERTIES
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    INSTALL_RPATH "$ORIGIN:$ORIGIN/../../lib"
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${P_KIND}s/${P_NAME})
  # Plug-ins of other projects have CMake's usual search path in their build folders.
  if(COMMAND nereid_search_path)
    nereid_search_path(${target} INSTALLED "$ORIGIN" "$ORIGIN/../../lib")
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION ${P_KIND}s/${P_NAME} COMPONENT ${P_KIND}-${P_NAME})
endfunction()
