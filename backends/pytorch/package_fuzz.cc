// SPDX-License-Identifier: Apache-2.0
// Fuzzes PyTorch's files: the directory of the archive, the files in it, and the call specification
// of a compiled model. What is accepted names no place outside of the folder that it is unpacked
// to.
#include "pytorch_backend/package.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "fuzz/fuzz.h"
#include "pytorch_backend/call_spec.h"
#include "pytorch_backend/zip_file.h"

namespace {

using nereid::pytorch::Package;

std::string Number(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += i < 8 ? static_cast<char>(value >> 8 * i) : '\0';
  return text;
}

// An archive of files that are not compressed.
std::string Archive(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string archive;
  std::string directory;
  for (const auto& [name, content] : files) {
    const std::string sizes = Number(0, 4) + Number(content.size(), 4) + Number(content.size(), 4) +
                              Number(name.size(), 2);
    directory += "PK\1\2" + Number(20, 2) + Number(20, 2) + Number(0, 8) + sizes + Number(0, 12) +
                 Number(archive.size(), 4) + name;
    archive += "PK\3\4" + Number(20, 2) + Number(0, 8) + sizes + Number(0, 2) + name + content;
  }
  return archive + directory + "PK\5\6" + Number(0, 4) + Number(files.size(), 2) +
         Number(files.size(), 2) + Number(directory.size(), 4) + Number(archive.size(), 4) +
         Number(0, 2);
}

void UseArchive(const std::string& path) {
  auto entries = nereid::pytorch::ReadZipDirectory(path);
  if (!entries.ok()) {
    entries.TakeError().Ignore();
    return;
  }
  for (const auto& entry : entries.value()) {
    auto content = nereid::pytorch::ReadZipFile(path, entry, 1 << 16);
    if (!content.ok()) {
      content.TakeError().Ignore();
    } else if (content.value().size() > 1 << 16) {
      std::abort();
    }
  }
  auto package = Package::Read(path);
  if (!package.ok()) {
    package.TakeError().Ignore();
    return;
  }
  for (const std::string& place : package.value().places) {
    const auto normal = std::filesystem::path(place).lexically_normal();
    if (normal.is_absolute() || normal.string().starts_with("..")) std::abort();
  }
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const std::string spec =
      R"([1,{"type":"builtins.tuple","context":"null","children_spec":[)"
      R"({"type":"builtins.dict","context":"[\"a\"]","children_spec":[{"type":null,"context":null,)"
      R"("children_spec":[]}]},{"type":null,"context":null,"children_spec":[]}]}])";
  return {
      Archive({{"data/aotinductor/model/a.wrapper.so", "ELF"},
               {"data/aotinductor/model/a.wrapper_metadata.json", R"({"AOTI_DEVICE_KEY":"cpu"})"},
               {"archive_format", "pt2"},
               {"version", "0"}}),
      Archive({{"model/data.pkl", "x"}, {"../../outside", "y"}, {"/absolute", "z"}}), spec};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = memfd_create("package", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) {
    std::abort();
  }
  UseArchive(path);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto signature = nereid::pytorch::ReadCallSpec(text, text);
  if (signature.ok()) {
    static_cast<void>(nereid::pytorch::CountValues(signature.value()));
  } else {
    signature.TakeError().Ignore();
  }
  return 0;
}
