// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/library_file.h"

#include <elf.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace nereid::pytorch {

using backend::Error;

namespace {

template <typename T>
bool ReadAt(std::ifstream& file, uint64_t offset, T* value) {
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(value), sizeof(T));
  return file.good();
}

// The processor that this program was compiled for; EM_NONE if that cannot be read.
Elf64_Half OwnMachine() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  Elf64_Ehdr header{};
  return ReadAt(file, 0, &header) ? header.e_machine : Elf64_Half{EM_NONE};
}

// Whether `size` bytes at `offset` are inside a file of `whole` bytes.
bool IsInside(uint64_t offset, uint64_t size, uint64_t whole) {
  return offset <= whole && size <= whole - offset;
}

}  // namespace

Error CheckLibraryFile(const std::string& path) {
  std::error_code error;
  const uint64_t whole = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header{};
  if (error || !ReadAt(file, 0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return Error::InvalidArgument("its library is no shared library");
  }
  if (header.e_machine != OwnMachine()) {
    return Error::InvalidArgument("its library was compiled for another processor");
  }
  for (uint64_t p = 0; p < header.e_phnum; ++p) {
    Elf64_Phdr part{};
    const uint64_t offset = header.e_phoff + p * sizeof(part);
    if (!IsInside(offset, sizeof(part), whole) || !ReadAt(file, offset, &part) ||
        !IsInside(part.p_offset, part.p_filesz, whole)) {
      return Error::InvalidArgument("its library is cut off");
    }
  }
  return {};
}

}  // namespace nereid::pytorch
