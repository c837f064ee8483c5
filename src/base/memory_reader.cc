// SPDX-License-Identifier: Apache-2.0
#include "base/memory_reader.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace nereid::base {

MemoryReader::MemoryReader() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
  from_ = UniqueFd(ends[0]);
  to_ = UniqueFd(ends[1]);
}

bool MemoryReader::Read(void* to, const void* from, size_t size) const {
  if (!to_.valid() || size > kMaxSize) return false;
  if (size == 0) return true;
  // Not the library's functions, which sanitizers make look at the memory first.
  const long written = ::syscall(SYS_write, to_.get(), from, size);
  if (written <= 0) return false;
  const long read = ::syscall(SYS_read, from_.get(), to, written);
  return read == written && static_cast<size_t>(written) == size;
}

}  // namespace nereid::base
