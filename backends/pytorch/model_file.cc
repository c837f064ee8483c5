// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/model_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "pytorch_backend/zip_directory.h"

namespace nereid::pytorch {

using backend::Error;
using backend::Result;
using backend::StrCat;
using namespace std::string_view_literals;

namespace {

// The kinds of archives that PyTorch writes.
enum class Archive { kTorchScript, kPickle, kExported, kCompiled, kOther };

constexpr std::string_view kSaveAsScript =
    "save a TorchScript model: torch.jit.script(model).save('model.pt')";
constexpr std::string_view kCompile =
    "compile the model: torch._inductor.aoti_compile_and_package(torch.export.export(model, "
    "examples), package_path='model.pt2')";

Error Refuse(const std::string& path, std::string_view what, std::string_view advice) {
  return Error::InvalidArgument(StrCat("'", path, "' is ", what, ": ", advice));
}

// What the first bytes of a file that is not an archive say.
std::string_view DescribeStart(std::string_view start) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kStarts = {{
      {"\x80\x02"sv, "an object saved by torch.save before PyTorch 1.6"sv},
      {"\x89HDF"sv, "an HDF5 file, as Keras writes them"sv},
      {"\x08"sv, "an ONNX model or another protobuf message, not a file of PyTorch"sv},
      {"version https://git-lfs"sv,
       "a pointer of Git LFS (fetch the file itself with git lfs pull)"sv},
      {"<"sv, "a web page or XML, not a file of PyTorch"sv},
      {"\x1f\x8b"sv, "compressed with gzip (unpack it)"sv},
      {"\x7f\x45LF"sv, "a program or library, not a file of PyTorch"sv},
  }};
  for (const auto& [bytes, what] : kStarts) {
    if (start.starts_with(bytes)) {
      return what;
    }
  }
  return "not a file of PyTorch";
}

Archive KindOf(const std::vector<ZipEntry>& entries) {
  Archive kind = Archive::kOther;
  bool has_code = false;
  for (const ZipEntry& entry : entries) {
    const std::string_view name = entry.name;
    if (name.find("data/aotinductor/") != name.npos) {
      return Archive::kCompiled;
    }
    if (name.ends_with("models/model.json") || name.ends_with("serialized_exported_program.json")) {
      kind = Archive::kExported;
    } else if (kind == Archive::kOther && name.ends_with("/data.pkl")) {
      kind = Archive::kPickle;
    }
    has_code = has_code || name.find("/code/") != name.npos;
  }
  return kind == Archive::kPickle && has_code ? Archive::kTorchScript : kind;
}

// Weights are stored as they are, and only code and debug information is compressed. An archive
// that becomes far larger is made to fill the memory.
Error CheckExpansion(const std::string& path, const std::vector<ZipEntry>& entries) {
  constexpr uint64_t kFree = 512 << 20;
  constexpr uint64_t kFactor = 20;
  uint64_t size = 0;
  uint64_t compressed = 0;
  for (const ZipEntry& entry : entries) {
    if (__builtin_add_overflow(size, entry.size, &size) ||
        __builtin_add_overflow(compressed, entry.compressed_size, &compressed)) {
      size = UINT64_MAX;
      break;
    }
  }
  if (size > kFree && size / kFactor > compressed) {
    return Refuse(path, "an archive that would become far larger when unpacked",
                  "files of PyTorch do not; it is damaged or hostile");
  }
  return {};
}

Result<std::vector<ZipEntry>> ReadEntries(const std::string& path, std::string_view advice) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Refuse(path, "a folder", advice);
  }
  std::array<char, 64> start{};
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), start.size());
  const std::string_view bytes(start.data(),
                               static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  if (bytes.empty()) {
    return Refuse(path, "empty or cannot be read", advice);
  }
  if (!bytes.starts_with("PK\x03\x04"sv)) {
    return Refuse(path, DescribeStart(bytes), advice);
  }
  auto entries = ReadZipDirectory(path);
  if (!entries.ok()) {
    const Error error = entries.TakeError();
    return Error(error.code(), StrCat("'", path, "' cannot be read: ", error.message()));
  }
  NEREID_KIT_TRY(CheckExpansion(path, entries.value()));
  return std::move(entries).value();
}

}  // namespace

Error CheckTorchScriptFile(const std::string& path) {
  NEREID_KIT_ASSIGN(const std::vector<ZipEntry> entries, ReadEntries(path, kSaveAsScript));
  switch (KindOf(entries)) {
    case Archive::kTorchScript:
      return {};
    case Archive::kPickle:
      return Refuse(path, "an object saved by torch.save, whose code is not in the file",
                    kSaveAsScript);
    case Archive::kExported:
      return Refuse(path, "an exported program that is not compiled", kCompile);
    case Archive::kCompiled:
      return Refuse(path, "a package compiled by AOTInductor",
                    "set platform: \"torch_aoti\" in config.pbtxt and call the file model.pt2");
    case Archive::kOther:
      break;
  }
  return Refuse(path, "a ZIP archive without a TorchScript model", kSaveAsScript);
}

Result<std::vector<ZipEntry>> ReadCompiledEntries(const std::string& path) {
  NEREID_KIT_ASSIGN(std::vector<ZipEntry> entries, ReadEntries(path, kCompile));
  switch (KindOf(entries)) {
    case Archive::kCompiled:
      return entries;
    case Archive::kExported:
      return Refuse(path, "an exported program that is not compiled", kCompile);
    case Archive::kTorchScript:
      return Refuse(
          path, "a TorchScript model",
          "set platform: \"pytorch_libtorch\" in config.pbtxt and call the file model.pt");
    case Archive::kPickle:
      return Refuse(path, "an object saved by torch.save, whose code is not in the file", kCompile);
    case Archive::kOther:
      break;
  }
  return Refuse(path, "a ZIP archive without a compiled model", kCompile);
}

}  // namespace nereid::pytorch
