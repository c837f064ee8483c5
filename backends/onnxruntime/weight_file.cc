// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/weight_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

namespace nereid::onnxruntime {

using backend::Error;
using backend::StrCat;

namespace {

// Reads [offset, offset + size) of a file; returns false if the file is shorter.
bool ReadWhole(int fd, char* to, uint64_t size, uint64_t offset) {
  while (size > 0) {
    const ssize_t got = ::pread(fd, to, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return false;
    }
    to += got;
    size -= static_cast<uint64_t>(got);
    offset += static_cast<uint64_t>(got);
  }
  return true;
}

// One mapping of a file in this process.
struct Mapping {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  uint64_t offset = 0;
  int protection = 0;
};

std::vector<Mapping> MappingsOf(const struct stat& file) {
  std::vector<Mapping> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Mapping mapping;
    char mode[5] = {};
    unsigned major_number = 0;
    unsigned minor_number = 0;
    unsigned long long inode = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s %" SCNx64 " %x:%x %llu",
                    &mapping.begin, &mapping.end, mode, &mapping.offset, &major_number,
                    &minor_number, &inode) == 7 &&
        inode == file.st_ino && major_number == major(file.st_dev) &&
        minor_number == minor(file.st_dev)) {
      mapping.protection = (mode[0] == 'r' ? PROT_READ : 0) | (mode[1] == 'w' ? PROT_WRITE : 0);
      found.push_back(mapping);
    }
  }
  return found;
}

// Atomically replaces a mapping by our own memory with the same content.
Error TakeOver(const Mapping& mapping, int fd, uint64_t file_size) {
  const size_t size = mapping.end - mapping.begin;
  void* const copy =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) {
    return Error::Unavailable("no memory for the weights of the model");
  }
  // The last page extends beyond the end of the file.
  const uint64_t there = mapping.offset < file_size ? file_size - mapping.offset : 0;
  const bool is_whole =
      ReadWhole(fd, static_cast<char*>(copy), std::min<uint64_t>(size, there), mapping.offset);
  if (!is_whole || ::mprotect(copy, size, mapping.protection) != 0 ||
      ::mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
               reinterpret_cast<void*>(mapping.begin)) == MAP_FAILED) {
    ::munmap(copy, size);
    return Error::Unavailable("the weights of the model could not be read into memory");
  }
  return {};
}

}  // namespace

bool IsSameContent(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec &&
         a.st_ctim.tv_sec == b.st_ctim.tv_sec && a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

WeightFile::~WeightFile() {
  if (guard_ != nullptr) {
    Error(NEREIDBACKEND_MemoryGuardDelete(guard_)).Ignore();
  }
  if (data_ != nullptr) {
    ::munmap(data_, size());
  }
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

Error WeightFile::Map() {
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0 || ::fstat(fd_, &facts_) != 0) {
    return Error::Unavailable(StrCat("unable to read '", path_, "': ", std::strerror(errno)));
  }
  if (!S_ISREG(facts_.st_mode)) {
    return Error::InvalidArgument(StrCat("'", path_, "' is not a regular file"));
  }
  if (size() == 0) {
    return {};
  }
  const bool can_guard = NEREIDBACKEND_MemoryGuardNew != nullptr;
  void* const data = ::mmap(nullptr, size(), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | (can_guard ? 0 : MAP_ANONYMOUS), can_guard ? fd_ : -1, 0);
  if (data == MAP_FAILED) {
    return Error::Unavailable(StrCat("unable to map '", path_, "': ", std::strerror(errno)));
  }
  data_ = static_cast<char*>(data);
  if (can_guard) {
    return Error(NEREIDBACKEND_MemoryGuardNew(&guard_, data, size()));
  }
  return ReadWhole(fd_, data_, size(), 0) ? Error() : Changed();
}

Error WeightFile::Check(const ExternalTensor& tensor) const {
  const bool fits = tensor.offset <= size() && tensor.length <= size() - tensor.offset;
  return fits ? Error()
              : Error::InvalidArgument(StrCat("tensor '", tensor.name, "' is said to be ",
                                              tensor.length, " bytes at offset ", tensor.offset,
                                              " of '", path_, "', which has ", size()));
}

Error WeightFile::Finish() const {
  for (const Mapping& mapping : MappingsOf(facts_)) {
    if (mapping.begin != reinterpret_cast<uintptr_t>(data_)) {
      NEREID_KIT_TRY(TakeOver(mapping, fd_, size()));
    }
  }
  bool is_broken = false;
  if (guard_ != nullptr) {
    NEREID_KIT_TRY(NEREIDBACKEND_MemoryGuardIsBroken(guard_, &is_broken));
  }
  struct stat now{};
  return is_broken || ::fstat(fd_, &now) != 0 || !IsSameContent(now, facts_) ? Changed() : Error();
}

Error WeightFile::Changed() const {
  return Error::Unavailable(StrCat("'", path_, "' was changed while it was read"));
}

}  // namespace nereid::onnxruntime
