// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/plan_header.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

namespace nereid::tensorrt {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

constexpr size_t kHeaderBytes = 64;
constexpr size_t kSizeAt = 16;
constexpr size_t kVersionAt = 24;
constexpr size_t kVersionBytes = 4;

// Other files that users give the name of a plan, by their first bytes.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOthers = {{
    {"ptrt", "a plan of TensorRT 7 or older, which cannot be used any more"},
    {"PK\x03\x04", "a zip archive (PyTorch saves models so)"},
    {"<?xml", "an XML file (OpenVINO saves models so)"},
    {"\x7f"
     "ELF",
     "a program or library"},
    {"\x89HDF", "an HDF5 file (Keras saves models so)"},
    {"version https://git-lfs", "a pointer of Git LFS: fetch the file itself with 'git lfs pull'"},
}};

bool StartsLikeOnnx(std::string_view start) {
  // ir_version, a small number, is the first field of nearly every ONNX file.
  return start.size() > 2 && start[0] == 8 && start[1] > 0 && start[1] < 32;
}

Error NotAPlan(std::string_view start) {
  if (std::all_of(start.begin(), start.end(), [](char c) { return c == 0; })) {
    return Error::InvalidArgument("the file begins with nothing but zeros");
  }
  for (const auto& [prefix, meaning] : kOthers) {
    if (start.starts_with(prefix)) {
      return Error::InvalidArgument(
          StrCat("the file is not a plan of TensorRT, but ", std::string(meaning)));
    }
  }
  if (StartsLikeOnnx(start)) {
    return Error::InvalidArgument(
        "the file is not a plan of TensorRT; if it is an ONNX model, make a plan of it with "
        "trtexec, or serve it with platform \"onnxruntime_onnx\"");
  }
  return Error::InvalidArgument("the file is not a plan of TensorRT");
}

}  // namespace

std::string PlanHeader::version() const {
  return StrCat(major, ".", minor, ".", patch, ".", build);
}

Result<PlanHeader> ParsePlanHeader(std::span<const char> start, uint64_t file_size) {
  const std::string_view text(start.data(), start.size());
  const bool is_plan = text.starts_with("ftrt");
  const bool is_rtx = text.starts_with("vtrt");
  if (!is_plan && !is_rtx) {
    return NotAPlan(text);
  }
  if (start.size() < kVersionAt + kVersionBytes) {
    return Error::InvalidArgument(
        StrCat("the plan ends after ", start.size(), " bytes, in the middle of its header"));
  }
  const auto byte = [&](size_t at) { return static_cast<int>(static_cast<uint8_t>(start[at])); };
  PlanHeader header{.major = byte(kVersionAt),
                    .minor = byte(kVersionAt + 1),
                    .patch = byte(kVersionAt + 2),
                    .build = byte(kVersionAt + 3),
                    .file_size = file_size};
  if (is_rtx) {
    return Error::Unsupported(StrCat("the engine was made by TensorRT for RTX ", header.version(),
                                     ", whose engines TensorRT cannot run: make a plan of the "
                                     "model with TensorRT itself (trtexec)"));
  }
  std::memcpy(&header.declared_size, start.data() + kSizeAt, sizeof(header.declared_size));
  return header;
}

Result<PlanHeader> ReadPlanHeader(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) {
    return Error::Unavailable(StrCat("cannot read '", path, "': ", std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    return Error::InvalidArgument(StrCat(
        "'", path, "' is ", S_ISDIR(status.st_mode) ? "a folder" : "not a file", ", not a plan"));
  }
  if (status.st_size == 0) {
    return Error::InvalidArgument(StrCat("'", path, "' is empty"));
  }
  std::array<char, kHeaderBytes> start = {};
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), start.size());
  const auto count = static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0));
  if (count == 0) {
    return Error::Unavailable(StrCat("cannot read '", path, "'"));
  }
  return ParsePlanHeader({start.data(), count}, static_cast<uint64_t>(status.st_size));
}

}  // namespace nereid::tensorrt
