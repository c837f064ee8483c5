// SPDX-License-Identifier: Apache-2.0
#include "cli/served_models.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "config/paths.h"
#include "config/print.h"
#include "repository/local_store.h"

namespace nereid::cli {
namespace {

namespace fs = std::filesystem;

using base::InvalidArgumentError;
using config::ModelConfig;
using config::ModelInput;
using repository::Entry;

// The only version of each model.
constexpr std::string_view kVersion = "1";

// The folder of ServedModels as the server sees it.
class ServedStore final : public repository::Store {
 public:
  ServedStore(std::string folder, std::shared_ptr<const std::vector<ModelFile>> models)
      : folder_(std::move(folder)), models_(std::move(models)) {}

  base::Result<std::vector<Entry>> List(const std::string& folder) const override {
    auto entries = local_.List(folder);
    if (const ModelFile* const model = LinkedAt(folder); model != nullptr && entries.ok()) {
      std::erase_if(*entries, [&](const Entry& entry) { return !model->Has(entry.name); });
    }
    return entries;
  }
  bool Exists(const std::string& path) const override { return local_.Exists(path); }
  bool IsFolder(const std::string& path) const override { return local_.IsFolder(path); }
  base::Result<std::string> Read(const std::string& path, size_t max_bytes) const override {
    return local_.Read(path, max_bytes);
  }
  // The time of a folder changes with every file that is made in it, whatever its name is.
  base::Result<int64_t> ModifiedNs(const std::string& path) const override {
    if (LinkedAt(path) != nullptr) return int64_t{0};
    return local_.ModifiedNs(path);
  }

 private:
  // Returns the model whose version is at `path` as a link to a folder with other files; null if
  // there is none.
  const ModelFile* LinkedAt(const std::string& path) const {
    for (const ModelFile& model : *models_) {
      if (!model.needs_folder) continue;
      if (path == config::JoinPath(config::JoinPath(folder_, model.name), kVersion)) return &model;
    }
    return nullptr;
  }

  const repository::LocalStore local_;
  const std::string folder_;
  const std::shared_ptr<const std::vector<ModelFile>> models_;
};

base::Status CannotMake(const fs::path& path, const std::error_code& error) {
  return base::InternalError(fmt::format("cannot make '{}': {}", path.string(), error.message()));
}

base::Status WriteText(const fs::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return base::OkStatus();
  return base::InternalError(fmt::format("cannot write '{}'", path.string()));
}

std::string ConfigText(const ModelConfig& config) {
  std::string text = config::ToText(config);
  // A 0 that was written is not the same as none, but is not printed.
  if (config.gives_max_batch_size && config.max_batch_size == 0) text += "max_batch_size: 0\n";
  return text;
}

std::string Replace(std::string text, std::string_view old, std::string_view by) {
  for (size_t at = text.find(old); at != std::string::npos; at = text.find(old, at + by.size())) {
    text.replace(at, old.size(), by);
  }
  return text;
}

// Removes the first dimension of a tensor, which is the batch.
base::Status RemoveBatch(const std::string& name, std::vector<int64_t>& dims) {
  if (dims.empty() || dims.front() != config::kWildcardDim) {
    return InvalidArgumentError(fmt::format(
        "with --max-batch-size, the first dimension of '{}' is the batch: expected -1, found {}",
        name, dims.empty() ? "no dimension" : std::to_string(dims.front())));
  }
  dims.erase(dims.begin());
  return base::OkStatus();
}

template <typename Tensor>
base::Status RemoveBatches(std::vector<Tensor>& tensors) {
  for (Tensor& tensor : tensors) {
    NEREID_RETURN_IF_ERROR(RemoveBatch(tensor.name, tensor.dims));
    if (!tensor.dims.empty()) continue;
    // A configuration has at least one dimension besides the batch, and the model does not see it.
    tensor.dims = {1};
    tensor.reshape.emplace();
  }
  return base::OkStatus();
}

base::Result<std::vector<int64_t>> ParseDims(std::string_view text) {
  std::vector<int64_t> dims;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), dim);
    if (error != std::errc() || end != part.data() + part.size() || dim == 0 || dim < -1) {
      return InvalidArgumentError(fmt::format(
          "'{}' is not a dimension: expected a number, or -1 for any", std::string(part)));
    }
    dims.push_back(dim);
  }
  return dims;
}

}  // namespace

base::Result<ModelInput> ParseTensor(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return InvalidArgumentError(fmt::format(
        "'{}' is not a tensor: {}. Expected NAME:TYPE:DIMS, such as pixels:FP32:-1,3,224,224", text,
        why));
  };
  const size_t dims_at = text.rfind(':');
  if (dims_at == std::string_view::npos || dims_at == 0) return refuse("there is no type");
  const size_t type_at = text.rfind(':', dims_at - 1);
  if (type_at == std::string_view::npos) return refuse("there are no dimensions");
  if (type_at == 0) return refuse("there is no name");
  std::string_view type = text.substr(type_at + 1, dims_at - type_at - 1);
  if (type.starts_with("TYPE_")) type.remove_prefix(5);
  const auto known = tensor::FromProtocolName(type == "STRING" ? "BYTES" : type);
  if (!known) {
    return refuse(fmt::format(
        "'{}' is not a type; types are BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, "
        "INT64, FP16, BF16, FP32, FP64 and BYTES",
        type));
  }
  auto dims = ParseDims(text.substr(dims_at + 1));
  if (!dims.ok()) return refuse(dims.status().message());
  if (dims->empty()) return refuse("there are no dimensions");
  return ModelInput{
      .name = std::string(text.substr(0, type_at)), .data_type = *known, .dims = *std::move(dims)};
}

base::Result<ModelConfig> MakeModelConfig(const ModelFile& model, const ModelSettings& settings) {
  ModelConfig config = settings.config.value_or(ModelConfig());
  config.name = model.name;
  if (config.backend.empty()) config.backend = model.backend;
  if (config.platform.empty() && config.backend == model.backend) config.platform = model.platform;
  // A model under the names that its backend expects needs none; see ModelFile::links.
  const auto& [own, expected] = model.links.front();
  if (config.default_model_filename.empty() && own == expected) config.default_model_filename = own;
  if (!settings.inputs.empty()) config.input = settings.inputs;
  if (!settings.outputs.empty()) config.output = settings.outputs;
  if (!settings.max_batch_size) return config;
  config.max_batch_size = *settings.max_batch_size;
  config.gives_max_batch_size = true;
  if (config.max_batch_size <= 0) return config;
  if (!settings.inputs.empty()) NEREID_RETURN_IF_ERROR(RemoveBatches(config.input));
  if (!settings.outputs.empty()) NEREID_RETURN_IF_ERROR(RemoveBatches(config.output));
  if (std::holds_alternative<std::monostate>(config.scheduling_choice)) {
    config.scheduling_choice = config::DynamicBatching();
  }
  return config;
}

base::Result<std::unique_ptr<ServedModels>> ServedModels::Create(std::vector<ModelFile> models,
                                                                 const ModelSettings& settings) {
  base::Result<base::TemporaryFolder> made = base::MakeTemporaryFolder("serve");
  if (!made.ok()) {
    return base::UnavailableError(fmt::format(
        "{}; the repository of the files is made there: set TMPDIR to a folder that can be written "
        "to, or give a container one (--tmpfs /tmp)",
        made.status().message()));
  }
  base::TemporaryFolder folder = *std::move(made);
  const bool says_inputs =
      !settings.inputs.empty() || (settings.config && !settings.config->input.empty());
  std::unique_ptr<ServedModels> served(
      new ServedModels(std::move(folder), std::move(models), says_inputs));
  for (const ModelFile& model : served->models()) {
    if (model.kind == ModelFile::Kind::kRepository) continue;
    NEREID_RETURN_IF_ERROR(served->Add(model, settings));
  }
  return served;
}

ServedModels::~ServedModels() {
  std::error_code ignored;
  fs::remove_all(folder_.path, ignored);  // does not follow links
}

// Refuses a folder with a library that the server would take for the model's backend: who serves a
// file from a folder does not expect to run what else is there.
static base::Status CheckNeighbours(const ModelFile& model) {
  const fs::path library = fs::path(model.parent()) / ("libtriton_" + model.backend + ".so");
  std::error_code ignored;
  if (!model.needs_folder || !fs::exists(library, ignored)) return base::OkStatus();
  return InvalidArgumentError(
      fmt::format("'{}' beside '{}' would be run in place of the server's backend. Remove it, or "
                  "serve the model from a repository",
                  library.string(), model.path));
}

base::Status ServedModels::Add(const ModelFile& model, const ModelSettings& settings) const {
  const fs::path folder = fs::path(folder_.path) / model.name;
  std::error_code error;
  if (model.kind == ModelFile::Kind::kFolder) {
    fs::create_directory_symlink(model.path, folder, error);
    return error ? CannotMake(folder, error) : base::OkStatus();
  }
  NEREID_RETURN_IF_ERROR(CheckNeighbours(model));
  NEREID_ASSIGN_OR_RETURN(const ModelConfig config, MakeModelConfig(model, settings));
  fs::create_directory(folder, error);
  if (error) return CannotMake(folder, error);
  NEREID_RETURN_IF_ERROR(WriteText(folder / "config.pbtxt", ConfigText(config)));
  const fs::path version = folder / kVersion;
  if (model.needs_folder) {
    fs::create_directory_symlink(model.parent(), version, error);
    return error ? CannotMake(version, error) : base::OkStatus();
  }
  fs::create_directory(version, error);
  for (const auto& [own, expected] : model.links) {
    if (!error) fs::create_symlink(fs::path(model.parent()) / own, version / expected, error);
  }
  return error ? CannotMake(version, error) : base::OkStatus();
}

std::vector<std::string> ServedModels::repositories() const {
  std::vector<std::string> paths;
  bool has_others = false;
  for (const ModelFile& model : models()) {
    if (model.kind == ModelFile::Kind::kRepository) {
      paths.push_back(model.path);
    } else {
      has_others = true;
    }
  }
  if (has_others) paths.push_back(folder_.path);
  return paths;
}

repository::StoreKind ServedModels::store() const {
  return {.prefix = folder_.path + "/", .make = [path = folder_.path, models = models_] {
            return std::make_unique<ServedStore>(path, models);
          }};
}

const ModelFile* ServedModels::Find(std::string_view name) const {
  const auto found = std::ranges::find_if(models(), [&](const ModelFile& model) {
    return model.kind != ModelFile::Kind::kRepository && model.name == name;
  });
  return found == models().end() ? nullptr : &*found;
}

std::string ServedModels::WithOwnPaths(std::string text) const {
  for (const ModelFile& model : models()) {
    if (model.kind == ModelFile::Kind::kRepository) continue;
    const std::string folder = config::JoinPath(folder_.path, model.name);
    if (model.kind == ModelFile::Kind::kFile) {
      text = Replace(std::move(text), config::JoinPath(folder, kVersion), model.parent());
      // Some messages have this in place of the path.
      text = Replace(std::move(text), fmt::format("'{}/{}/", model.name, kVersion),
                     fmt::format("'{}/", model.parent()));
    }
    text = Replace(std::move(text), folder, model.path);
  }
  return text;
}

}  // namespace nereid::cli
