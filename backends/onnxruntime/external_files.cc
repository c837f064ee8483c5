// SPDX-License-Identifier: Apache-2.0
#include "onnxruntime_backend/external_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "onnxruntime_backend/weight_file.h"

namespace nereid::onnxruntime {

using backend::Error;
using backend::Result;
using backend::StrCat;

ExternalFiles::ExternalFiles(std::string path, const struct stat& model)
    : path_(std::move(path)), model_(model) {}
ExternalFiles::~ExternalFiles() = default;
ExternalFiles::ExternalFiles(ExternalFiles&&) noexcept = default;

namespace {

bool IsBelow(const std::filesystem::path& root, const std::filesystem::path& whole) {
  return std::mismatch(root.begin(), root.end(), whole.begin(), whole.end()).first == root.end();
}

// Returns the file that a tensor of the model at `path` names, with links resolved. Model files may
// come from anywhere: one that names a file elsewhere could disclose that file's content through
// the model. If the model is itself a link, its weights may be beside the target, as in stores that
// keep each content once.
Result<std::string> Resolve(const std::filesystem::path& path, const ExternalTensor& tensor) {
  const std::filesystem::path folder = path.parent_path();
  const auto refuse = [&tensor](const char* why) {
    return Error::InvalidArgument(StrCat("the data of tensor '", tensor.name,
                                         "' are said to be in '", tensor.location, "', ", why));
  };
  const std::filesystem::path location(tensor.location);
  if (location.empty() || location.is_absolute()) {
    return refuse("which is not a path relative to the model's folder");
  }
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::canonical(folder / location, error);
  if (error) {
    return refuse("which does not exist");
  }
  const std::filesystem::path root = std::filesystem::canonical(folder, error);
  const bool is_in_folder = !error && IsBelow(root, whole);
  const std::filesystem::path store = std::filesystem::canonical(path, error).parent_path();
  const bool is_in_store = !error && IsBelow(store, whole);
  if (!is_in_folder && !is_in_store) {
    return refuse("which is outside the model's folder");
  }
  return whole.string();
}

}  // namespace

Result<ExternalFiles> ExternalFiles::Open(const std::string& path, const ModelFile& model) {
  ExternalFiles external(path, model.facts);
  for (const ExternalTensor& tensor : model.external_tensors) {
    const auto known =
        std::find_if(external.files_.begin(), external.files_.end(),
                     [&](const auto& file) { return file->location() == tensor.location; });
    if (known != external.files_.end()) {
      NEREID_KIT_TRY((*known)->Check(tensor));
      continue;
    }
    NEREID_KIT_ASSIGN(std::string file_path, Resolve(path, tensor));
    auto file = std::make_unique<WeightFile>(tensor.location, std::move(file_path));
    NEREID_KIT_TRY(file->Map());
    NEREID_KIT_TRY(file->Check(tensor));
    external.files_.push_back(std::move(file));
  }
  return external;
}

uint64_t ExternalFiles::byte_size() const {
  uint64_t size = 0;
  for (const auto& file : files_) {
    size += file->size();
  }
  return size;
}

Error ExternalFiles::AddTo(OrtSessionOptions* options) const {
  std::vector<const ORTCHAR_T*> locations;
  std::vector<char*> contents;
  std::vector<size_t> sizes;
  for (const std::unique_ptr<WeightFile>& file : files_) {
    if (file->size() > 0) {
      locations.push_back(file->location().c_str());
      contents.push_back(file->data());
      sizes.push_back(file->size());
    }
  }
  return locations.empty()
             ? Error()
             : FromOrt(Api().AddExternalInitializersFromFilesInMemory(
                   options, locations.data(), contents.data(), sizes.data(), locations.size()));
}

Error ExternalFiles::Finish() const {
  for (const std::unique_ptr<WeightFile>& file : files_) {
    NEREID_KIT_TRY(file->Finish());
  }
  struct stat now{};
  if (::stat(path_.c_str(), &now) != 0 || !IsSameContent(now, model_)) {
    return Error::Unavailable(StrCat("'", path_, "' was changed while it was read"));
  }
  return {};
}

}  // namespace nereid::onnxruntime
