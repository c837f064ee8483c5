// SPDX-License-Identifier: Apache-2.0
// Reads memory that may be gone. The kernel copies it, and says so if it cannot; an access by the
// process itself would be a crash.
#pragma once

#include <cstddef>

#include "base/unique_fd.h"

namespace nereid::base {

// Read is safe in a signal handler; one thread at a time may call it.
class MemoryReader {
 public:
  // Opens a pipe. If that is not possible, nothing can be read.
  MemoryReader();

  // Copies `size` bytes, at most kMaxSize. Returns false, having copied nothing of use, if not all
  // of them are there.
  bool Read(void* to, const void* from, size_t size) const;
  static constexpr size_t kMaxSize = 4096;  // what a pipe takes at once

 private:
  UniqueFd from_;
  UniqueFd to_;
};

}  // namespace nereid::base
