// SPDX-License-Identifier: Apache-2.0
#include "isolation_profile/program.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "triton/core/tritonbackend.h"

namespace nereid::isolation {

namespace fs = std::filesystem;
using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

constexpr const char* kProgramVariable = "NEREID_PROGRAM";

}  // namespace

Result<std::string> FindProgram() {
  if (const char* const given = std::getenv(kProgramVariable); given != nullptr) {
    return std::string(given);
  }
  Dl_info info{};
  link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<void*>(&TRITONBACKEND_ApiVersion), &info,
              reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 ||
      map == nullptr) {
    return Error::Internal("failed to find the server's program");
  }
  std::error_code error;
  // The program itself has an empty name here.
  if (map->l_name == nullptr || *map->l_name == '\0') {
    return fs::read_symlink("/proc/self/exe", error).string();
  }
  const fs::path folder = fs::canonical(map->l_name, error).parent_path();
  for (const fs::path& program : {folder / "nereid", folder.parent_path() / "bin" / "nereid"}) {
    if (fs::exists(program, error)) return program.string();
  }
  return Error::Unavailable(
      StrCat("an isolated model runs in the program nereid, which is not beside '", folder.string(),
             "'; name its path in the environment variable ", kProgramVariable));
}

}  // namespace nereid::isolation
