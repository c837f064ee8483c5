// SPDX-License-Identifier: Apache-2.0
// A backend that does when it is opened what Intel's TBB does: unless TBB_ENABLE_SANITIZERS is 1,
// it opens a library with RTLD_DEEPBIND. Opened in this way, a library binds to the C library's
// free even where another allocator replaces malloc and free. This one is given memory from that
// other allocator. Its source is this file, too, compiled without DEEPBIND_OPENED_LIBRARY, its
// path.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "triton/core/tritonbackend.h"

#ifndef DEEPBIND_OPENED_LIBRARY

extern "C" void DeepbindFree(void* memory) { std::free(memory); }

#else

namespace {

TRITONSERVER_Error* Internal(const std::string& text) {
  return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, text.c_str());
}

}  // namespace

extern "C" {

TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend*) {
  const char* const value = std::getenv("TBB_ENABLE_SANITIZERS");
  const bool is_careful = value != nullptr && std::strcmp(value, "1") == 0;
  const int flags = RTLD_NOW | RTLD_LOCAL | (is_careful ? 0 : RTLD_DEEPBIND);
  void* const library = dlopen(DEEPBIND_OPENED_LIBRARY, flags);
  if (library == nullptr) return Internal(dlerror());
  void* const symbol = dlsym(library, "DeepbindFree");
  if (symbol == nullptr) return Internal("the library has no DeepbindFree");
  reinterpret_cast<void (*)(void*)>(symbol)(std::malloc(100));
  return nullptr;
}

}  // extern "C"

#endif
