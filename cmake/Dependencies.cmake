# Third-party libraries, found on the machine; tools/setup installs every one of them.
find_package(Threads REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Protobuf REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(FastFloat REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(prometheus-cpp REQUIRED COMPONENTS core)
find_package(PkgConfig REQUIRED)
pkg_check_modules(NGHTTP2 REQUIRED IMPORTED_TARGET libnghttp2)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
# Its headers only: the library is opened at run time, by src/http_client.
pkg_check_modules(CURL REQUIRED libcurl)
pkg_check_modules(PUGIXML REQUIRED IMPORTED_TARGET pugixml)
find_path(RAPIDJSON_INCLUDE_DIR rapidjson/document.h REQUIRED)
if(NEREID_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()

# nereid_archive(<variable> <library> <target>): what a module names instead of <target> where the
# server's program shall take the library in (targets with NEREID_TAKES_IN_LIBRARIES; the archives of
# the distribution are made for programs, not for libraries).
function(nereid_archive variable library target)
  find_library(NEREID_ARCHIVE_${library} NAMES lib${library}.a REQUIRED)
  set(takes_in $<BOOL:$<TARGET_PROPERTY:NEREID_TAKES_IN_LIBRARIES>>)
  set(${variable} $<IF:${takes_in},${NEREID_ARCHIVE_${library}},${target}> PARENT_SCOPE)
endfunction()
nereid_archive(NEREID_PROTOBUF protobuf protobuf::libprotobuf)
nereid_archive(NEREID_RE2 re2 PkgConfig::RE2)
nereid_archive(NEREID_PUGIXML pugixml PkgConfig::PUGIXML)
