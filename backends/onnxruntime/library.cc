// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace nereid::onnxruntime {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

constexpr const char* kLibrary = NEREID_ONNXRUNTIME_LIBRARY;  // from CMake
constexpr const char* kVariable = "NEREID_ONNXRUNTIME_LIBRARY";

// Either the entry to the library's functions or why there is none.
struct Opened {
  const OrtApiBase* base = nullptr;
  std::string error;
};

Opened Open() {
  const char* const named = std::getenv(kVariable);
  void* const handle =
      ::dlopen(named != nullptr && *named != '\0' ? named : kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return {nullptr,
            StrCat("ONNX Runtime's library cannot be opened: ", ::dlerror(), "; put ", kLibrary,
                   " beside the backend, or set ", kVariable, " to the path of the library")};
  }
  using Entry = const OrtApiBase* (*)();
  const auto entry = reinterpret_cast<Entry>(::dlsym(handle, "OrtGetApiBase"));
  if (entry == nullptr) {
    return {nullptr, StrCat("this is not ONNX Runtime's library: ", ::dlerror())};
  }
  return {entry(), {}};
}

const Opened& Library() {
  static const Opened opened = Open();
  return opened;
}

}  // namespace

Result<const OrtApiBase*> OpenLibrary() {
  if (Library().base == nullptr) {
    return Error::Unavailable(Library().error);
  }
  return Library().base;
}

const OrtApiBase& ApiBase() { return *Library().base; }

Result<backend::Framework> FindFramework() {
  NEREID_KIT_ASSIGN(const OrtApiBase* const base, OpenLibrary());
  return backend::Framework{
      base->GetVersionString(),
      backend::LibraryOf(reinterpret_cast<const void*>(base->GetVersionString))};
}

}  // namespace nereid::onnxruntime
