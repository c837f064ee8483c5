// SPDX-License-Identifier: Apache-2.0
// Takes rights away from this process before it opens a model: files (Landlock), the network and
// dangerous system calls (seccomp), memory (resource limits). What is taken away stays so for all
// that the process starts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace nereid::isolation {

// What a process may do.
struct Confinement {
  std::vector<std::string> models;  // folders that may be read, and what links in them lead to
  std::vector<std::string> readable;
  std::vector<std::string> writable;
  // Opened first: what it needs is not confined, and the folders where it looks for more libraries
  // may be read.
  std::vector<std::string> libraries;
  bool may_use_network = false;
  bool may_use_all_files = false;
  uint64_t data_bytes = 0;  // 0: no limit
  bool is_strict = false;   // what the kernel cannot do is an error, and not only said

  // Reads the text of the server (backends/isolation/profile/confinement_text.h).
  static Confinement Read(std::string_view text);
};

// Confines this process. REQUIRES: it has no other threads that run code of the model. Returns what
// the kernel cannot do, as sentences for the log.
base::Result<std::vector<std::string>> Confine(const Confinement& confinement);

}  // namespace nereid::isolation
