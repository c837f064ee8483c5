// SPDX-License-Identifier: Apache-2.0
// How a backend tells which framework it has found (nereid/backend_framework.h). Use in one source
// file of the plug-in, outside any namespace:
//
//   NEREID_KIT_FRAMEWORK("ONNX Runtime", nereid::onnxruntime::FindFramework)
//
// where the function is a Result<backend::Framework>().
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "backend_kit/error.h"
#include "nereid/backend_framework.h"

namespace nereid::backend {

// A framework that could be opened.
struct Framework {
  std::string version;
  std::string path;  // of its library or program
};

// Returns the path of the library that a function or an object lies in.
inline std::string LibraryOf(const void* address) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {};
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(info.dli_fname, nullptr),
                                                         &std::free);
  return real != nullptr ? real.get() : info.dli_fname;
}

// The body of the function that NEREID_KIT_FRAMEWORK exports.
template <typename Find>
TRITONSERVER_Error* TellFramework(const char* title, Find&& find, const char** name,
                                  const char** version, const char** path) {
  return EntryPoint([&]() -> Error {
    *name = title;
    static Framework found;
    NEREID_KIT_ASSIGN(found, find());
    *version = found.version.c_str();
    *path = found.path.c_str();
    return {};
  });
}

}  // namespace nereid::backend

#define NEREID_KIT_FRAMEWORK(title, find)                                    \
  NEREID_KIT_EXPORT TRITONSERVER_Error* NEREIDBACKEND_Framework(             \
      const char** name, const char** version, const char** path) {          \
    return nereid::backend::TellFramework(title, find, name, version, path); \
  }
