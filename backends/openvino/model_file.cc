// SPDX-License-Identifier: Apache-2.0
#include "openvino_backend/model_file.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <span>

#include "backend_kit/open_file.h"
#include "backend_kit/wire_reader.h"

namespace nereid::openvino {

using backend::Error;
using backend::Result;
using backend::StrCat;
using backend::WireRange;
using backend::WireReader;

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxGraphBytes = uint64_t{2} << 30;  // what a protobuf message can be

// Whether this part of the file is a protobuf message. `path` are numbers of fields: all fields of
// the first number are messages that have the rest of the path, and there is at least one.
bool IsMessage(WireReader& reader, WireRange message, std::span<const uint64_t> path) {
  bool has_wanted = path.empty();
  while (const auto field = reader.Next(message)) {
    if (path.empty() || field->number != path[0] || !field->is_bytes) {
      continue;
    }
    has_wanted = true;
    if (path.size() > 1 && !IsMessage(reader, field->range, path.subspan(1))) {
      return false;
    }
  }
  return has_wanted && reader.ok();
}

std::string Beginning(const fs::path& path) {
  std::array<char, 512> bytes{};
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), bytes.size());
  return {bytes.data(), static_cast<size_t>(file.gcount())};
}

// What a file is that begins like this and that is no model for this backend; empty if unknown.
std::string_view Mistaken(const std::string& beginning) {
  const auto begins = [&](std::string_view text) { return beginning.starts_with(text); };
  if (begins("version https://git-lfs")) {
    return "it is a pointer of Git LFS: fetch the file itself with 'git lfs pull'";
  }
  if (begins("<!DOCTYPE") || begins("<!doctype") || begins("<html") || begins("<HTML")) {
    return "it is a web page: the download went wrong";
  }
  if (begins("PK\x03\x04")) {
    return "it is an archive, as PyTorch makes them: convert it with OpenVINO's convert_model, or "
           "use the pytorch backend";
  }
  if (begins("\x89HDF")) {
    return "it is an HDF5 file, as Keras makes them: export it as SavedModel";
  }
  if (beginning.find_first_not_of('\0') == std::string::npos) {
    return "it begins with nothing but zeros";
  }
  return "";
}

Error Refused(const fs::path& path, const char* expected, std::string_view reason = "") {
  if (reason.empty()) {
    reason = Mistaken(Beginning(path));
  }
  return Error::InvalidArgument(
      StrCat("'", path.string(), "' is not ", expected, ": ",
             reason.empty() ? "it is damaged, cut off, or another format" : reason));
}

// An IR is XML whose root element is <net>, which may come after a prolog and comments.
Error CheckIr(const fs::path& path) {
  std::string text = Beginning(path);
  if (text.starts_with("\xEF\xBB\xBF")) {
    text.erase(0, 3);
  }
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_xml = first != std::string::npos &&
                      (text.compare(first, 5, "<?xml") == 0 || text.compare(first, 4, "<net") == 0);
  if (!is_xml || text.find("<net") == std::string::npos) {
    return Refused(path, "a model of OpenVINO (IR)");
  }
  std::ifstream file(path, std::ios::binary);
  constexpr std::streamoff kTail = 64;
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  file.seekg(size > kTail ? size - kTail : 0);
  std::string tail((std::istreambuf_iterator<char>(file)), {});
  return tail.find("</net>") == std::string::npos
             ? Refused(path, "a model of OpenVINO (IR)", "its end is missing")
             : Error();
}

Error CheckMessage(const fs::path& path, uint64_t size, std::initializer_list<uint64_t> fields,
                   const char* expected) {
  if (size > kMaxGraphBytes) {
    return Refused(path, expected, "it is larger than 2 GiB, which this format cannot be");
  }
  const backend::OpenFile file(path);
  WireReader reader(file.fd, size);
  return IsMessage(reader, reader.whole(), {fields.begin(), fields.size()})
             ? Error()
             : Refused(path, expected);
}

Result<ModelFormat> CheckFolder(const fs::path& path) {
  const fs::path graph = path / "saved_model.pb";
  std::error_code error;
  if (!fs::is_regular_file(graph, error)) {
    return Error::InvalidArgument(
        StrCat("'", path.string(), "' is a folder without saved_model.pb, so it is no SavedModel"));
  }
  // SavedModel has its graphs in field 2.
  NEREID_KIT_TRY(
      CheckMessage(graph, fs::file_size(graph, error), {2}, "the graph of a SavedModel"));
  return ModelFormat::kTensorFlow;
}

}  // namespace

const char* FrontEndOf(ModelFormat format) {
  switch (format) {
    case ModelFormat::kIr:
      return "ir";
    case ModelFormat::kOnnx:
      return "onnx";
    case ModelFormat::kTensorFlow:
      return "tf";
    case ModelFormat::kTensorFlowLite:
      return "tflite";
    case ModelFormat::kPaddle:
      return "paddle";
  }
  return "";
}

Result<ModelFormat> CheckModelFile(const std::string& name) {
  const fs::path path = name;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return CheckFolder(path);
  }
  const uint64_t size = fs::is_regular_file(path, error) ? fs::file_size(path, error) : 0;
  if (error || size == 0) {
    return Error::InvalidArgument(StrCat("'", name, "' is ", error ? "not readable" : "empty"));
  }
  const std::string extension = path.extension().string();
  if (extension == ".xml") {
    NEREID_KIT_TRY(CheckIr(path));
    return ModelFormat::kIr;
  }
  if (extension == ".onnx") {
    NEREID_KIT_TRY(CheckMessage(path, size, {7}, "an ONNX model"));
    return ModelFormat::kOnnx;
  }
  if (extension == ".pb") {
    // GraphDef has nodes in field 1, whose operations are in field 2.
    NEREID_KIT_TRY(CheckMessage(path, size, {1, 2}, "a frozen graph of TensorFlow"));
    return ModelFormat::kTensorFlow;
  }
  if (extension == ".tflite") {
    // FlatBuffers have the identifier after the offset of the root.
    if (Beginning(path).substr(0, 8).substr(std::min<size_t>(size, 4)) != "TFL3") {
      return Refused(path, "a TensorFlow Lite model");
    }
    return ModelFormat::kTensorFlowLite;
  }
  if (extension == ".pdmodel") {
    NEREID_KIT_TRY(CheckMessage(path, size, {1}, "a PaddlePaddle model"));
    return ModelFormat::kPaddle;
  }
  return Error::InvalidArgument(
      StrCat("'", name, "' has no ending that says its format: OpenVINO reads .xml (with its .bin ",
             "beside it), .onnx, .pb, .tflite, .pdmodel and folders of SavedModels"));
}

}  // namespace nereid::openvino
