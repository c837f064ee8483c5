# nereid_search_path(<target> DESTINATION <folder> COMPONENT <c> INSTALLED <folders> [BUILT <folders>])
#
# Where a program or library that is installed in DESTINATION finds its libraries. In the build folder it
# searches BUILT first. CMake's BUILD_RPATH is not used: CMake ends what it writes for that with an empty
# entry, which means the current folder of whoever starts the program, where anybody may have put a library.
function(nereid_search_path target)
  cmake_parse_arguments(S "" "DESTINATION;COMPONENT" "INSTALLED;BUILT" ${ARGN})
  set_target_properties(${target} PROPERTIES
    BUILD_WITH_INSTALL_RPATH ON
    INSTALL_RPATH "${S_BUILT};${S_INSTALLED}")
  if(S_BUILT)
    list(JOIN S_INSTALLED ":" installed)
    string(REPLACE "$" "\\$" installed "${installed}")
    install(CODE "file(RPATH_SET
      FILE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${S_DESTINATION}/$<TARGET_FILE_NAME:${target}>\"
      NEW_RPATH \"${installed}\")" COMPONENT ${S_COMPONENT})
  endif()
endfunction()
