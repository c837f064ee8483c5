// SPDX-License-Identifier: Apache-2.0
#include "base/shared_library.h"

#include <dlfcn.h>

namespace nereid::base {

Result<std::unique_ptr<SharedLibrary>> SharedLibrary::Open(const std::string& path) {
  // Libraries are never unmapped: they leave thread-local destructors and exit handlers behind.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* reason = dlerror();
    return NotFoundError("unable to load shared library: " +
                         std::string(reason != nullptr ? reason : path.c_str()));
  }
  return std::unique_ptr<SharedLibrary>(new SharedLibrary(path, handle));
}

SharedLibrary::~SharedLibrary() { dlclose(handle_); }

void* SharedLibrary::FindSymbol(const char* name) const { return dlsym(handle_, name); }

}  // namespace nereid::base
