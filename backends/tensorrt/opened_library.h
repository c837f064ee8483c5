// SPDX-License-Identifier: Apache-2.0
// A library that is opened when it is needed, and stays.
#pragma once

#include <dlfcn.h>

#include <string>

#include "backend_kit/error.h"

namespace nereid::tensorrt {

// Immutable. The library is never closed: NVIDIA's keep threads and device state.
class OpenedLibrary {
 public:
  // Opens `name` with its symbols kept local. The error text is the loader's.
  static backend::Result<OpenedLibrary> Open(const std::string& name) {
    void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* const reason = dlerror();
      return backend::Error::Unavailable(reason != nullptr ? reason : name + " cannot be opened");
    }
    return OpenedLibrary(name, handle);
  }

  // Sets `function` to the symbol. Fails if the library has no such symbol.
  template <typename Function>
  backend::Error Find(const char* symbol, Function** function) const {
    *function = reinterpret_cast<Function*>(dlsym(handle_, symbol));
    if (*function == nullptr) {
      return backend::Error::Unavailable(backend::StrCat(name_, " has no function ", symbol));
    }
    return {};
  }
  const std::string& name() const { return name_; }

 private:
  OpenedLibrary(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}

  std::string name_;
  void* handle_;
};

}  // namespace nereid::tensorrt
