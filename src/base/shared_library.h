// SPDX-License-Identifier: Apache-2.0
// A library opened at run time. The destructor closes it, but its code stays mapped.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"

namespace nereid::base {

// An open library. Its destructor closes it.
class SharedLibrary {
 public:
  // Opens `path` with its symbols kept local. The error text is the loader's.
  static Result<std::unique_ptr<SharedLibrary>> Open(const std::string& path);
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  // Returns null if the library has no such symbol.
  void* FindSymbol(const char* name) const;
  template <typename Function>
  Function* Find(const char* name) const {
    return reinterpret_cast<Function*>(FindSymbol(name));
  }
  const std::string& path() const { return path_; }

 private:
  SharedLibrary(std::string path, void* handle) : path_(std::move(path)), handle_(handle) {}

  const std::string path_;
  void* const handle_;
};

}  // namespace nereid::base
