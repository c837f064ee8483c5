// SPDX-License-Identifier: Apache-2.0
#include "openvino_backend/model.h"

#include <algorithm>
#include <filesystem>

#include "backend_kit/completion.h"
#include "backend_kit/handles.h"
#include "backend_kit/location.h"
#include "backend_kit/memory_use.h"
#include "backend_kit/missing_file.h"
#include "openvino_backend/batch_trial.h"
#include "openvino_backend/completion.h"
#include "openvino_backend/model_file.h"

namespace nereid::openvino {

using backend::BatchVerdict;
using backend::Error;
using backend::ModelConfig;
using backend::Result;
using backend::StrCat;

namespace {

// How many dimensions the tensor of this name has; nothing if there is none, or any number.
std::optional<size_t> RankOf(const Signature& signature, const std::string& name) {
  for (const auto* tensors : {&signature.inputs, &signature.outputs}) {
    if (const int at = FindTensor(*tensors, name); at >= 0) {
      const TensorInfo& tensor = (*tensors)[static_cast<size_t>(at)];
      return tensor.has_rank ? std::optional(tensor.dims.size()) : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<Model>> Model::Create(TRITONBACKEND_Model* handle, Backend& backend) {
  NEREID_KIT_ASSIGN(const backend::ModelLocation location, backend::Locate(handle));
  NEREID_KIT_ASSIGN(ModelConfig config, ModelConfig::Load(handle));
  NEREID_KIT_ASSIGN(Settings settings, Settings::FromConfig(config, backend.cache_dir()));
  std::unique_ptr<Model> model(
      new Model(handle, backend, location.name, std::move(config), std::move(settings)));
  NEREID_KIT_ASSIGN(model->path_, model->ModelPath(location.version_folder));
  NEREID_KIT_ASSIGN(std::unique_ptr<Source> source, model->Read());
  bool auto_complete = false;
  NEREID_KIT_TRY(TRITONBACKEND_ModelAutoCompleteConfig(handle, &auto_complete));
  std::shared_ptr<Program> program;
  if (auto_complete && (NeedsCompletion(model->config_) || HasBatchLayout(source->signature()))) {
    NEREID_KIT_ASSIGN(program, model->AutoComplete(handle, *source));
  }
  NEREID_KIT_ASSIGN(const bool is_changed, model->Adapt(source));
  const backend::MutexLock lock(model->mutex_);
  if (program != nullptr && !is_changed) {
    model->programs_.emplace_back("CPU", std::move(program));
    model->ReportMemory();
  } else {
    model->source_ = std::move(source);
  }
  return model;
}

Result<std::string> Model::ModelPath(const std::string& folder) const {
  std::filesystem::path path = std::filesystem::path(folder) / settings_.model_filename;
  std::error_code ignored;
  // Triton's ONNX models may be folders, with the weights beside the model.
  if (path.extension() == ".onnx" &&
      std::filesystem::is_regular_file(path / "model.onnx", ignored)) {
    path /= "model.onnx";
  }
  if (!std::filesystem::exists(path, ignored)) {
    return Error::Unavailable(StrCat("unable to find '", path.string(), "' for model '", name_,
                                     "'.", backend::FoundInstead(path)));
  }
  return path.string();
}

Result<std::unique_ptr<Source>> Model::Read() const {
  auto format = CheckModelFile(path_);
  if (!format.ok()) {
    const Error error = format.TakeError();
    return Error(error.code(), StrCat("failed to load model '", name_, "': ", error.message()));
  }
  auto source = backend_.runtime().Read(path_, settings_);
  if (!source.ok()) {
    const Error error = source.TakeError();
    return Error(error.code(), StrCat("failed to load model '", name_, "': ", error.message()));
  }
  return source;
}

Result<std::shared_ptr<Program>> Model::AutoComplete(TRITONBACKEND_Model* handle, Source& source) {
  std::shared_ptr<Program> program;
  NEREID_KIT_ASSIGN(const BatchVerdict verdict, ChooseBatching(handle, source, &program));
  NEREID_KIT_TRY(Complete(source.signature(),
                          verdict.is_batched ? backend_.default_max_batch_size() : 0, name_,
                          &config_));
  NEREID_KIT_TRY(config_.Store(handle));
  // The server adds defaults to the stored configuration.
  NEREID_KIT_ASSIGN(config_, ModelConfig::Load(handle));
  return program;
}

Result<BatchVerdict> Model::ChooseBatching(TRITONBACKEND_Model* handle, Source& source,
                                           std::shared_ptr<Program>* program) {
  const int default_size = backend_.default_max_batch_size();
  NEREID_KIT_ASSIGN(const bool is_given, backend::GivesMaxBatchSize(handle));
  const auto rank_of = [&](const std::string& name) { return RankOf(source.signature(), name); };
  BatchVerdict verdict;
  if (const int64_t size = config_.max_batch_size(); is_given || size != 0) {
    verdict = {.is_batched = size > 0,
               .reason = "configured",
               .text = StrCat("max_batch_size is ", size, " in the configuration")};
  } else if (const auto listed = backend::ListedWithoutBatch(config_, rank_of)) {
    verdict = BatchVerdict::No("configured",
                               StrCat("the configuration lists all dimensions of '", *listed, "'"));
  } else if (default_size <= 0) {
    verdict = BatchVerdict::No("default_max_batch_size", "default-max-batch-size is 0");
  } else if (HasBatchLayout(source.signature())) {
    NEREID_KIT_ASSIGN(verdict, TryLayout(source.signature()));
  } else if (!HasBatchOf(source.signature(), -1)) {
    verdict = BatchVerdict::No(backend::kFixedDimension, "not all first dimensions are variable");
  } else {
    NEREID_KIT_ASSIGN(*program, source.Compile("CPU", settings_));
    verdict = TryBatches(**program, default_size);
    backend::LogInfo(StrCat("model '", name_, "' is ", verdict.is_batched ? "" : "not ",
                            "batched (", verdict.text,
                            "); max_batch_size in its configuration would decide otherwise"));
  }
  NEREID_KIT_TRY(backend::Explain(handle, "batching", verdict.ToJson()));
  return verdict;
}

Result<BatchVerdict> Model::TryLayout(const Signature& signature) const {
  const BatchVerdict batched{.is_batched = true,
                             .reason = "layout",
                             .text = "the file's layouts call the first dimensions the batch"};
  if (HasBatchOf(signature, -1)) {
    return batched;
  }
  NEREID_KIT_ASSIGN(const std::unique_ptr<Source> source, Read());
  Changes changes;
  changes.input_types.resize(signature.inputs.size());
  changes.output_types.resize(signature.outputs.size());
  for (const TensorInfo& input : signature.inputs) {
    changes.input_dims.emplace_back(input.dims)->at(0) = -1;
  }
  if (!source->Change(changes).ok() || !HasBatchOf(source->signature(), -1)) {
    return BatchVerdict::No(backend::kFixedDimension,
                            "the file's layouts call the first dimensions the batch, but the model "
                            "cannot have another number of rows");
  }
  return batched;
}

Result<bool> Model::Adapt(std::unique_ptr<Source>& source) {
  NEREID_KIT_ASSIGN(ports_, backend::Ports::FromConfig(config_));
  NEREID_KIT_ASSIGN(binding_, Bind(ports_, source->signature(), name_));
  const int64_t rows = config_.max_batch_size();
  const bool is_made_for_rows = rows > 1 && HasBatchOf(source->signature(), rows);
  Result<bool> is_changed = ChangeSource(*source);
  if (is_changed.ok() || settings_.fixed_batch || !is_made_for_rows) {
    return is_changed;
  }
  // Something inside the file has this number of rows, too. The source may be changed by half.
  settings_.fixed_batch = true;
  NEREID_KIT_ASSIGN(source, Read());
  is_changed = ChangeSource(*source);
  if (is_changed.ok()) {
    backend::LogInfo(StrCat("model '", name_, "' was made for ", rows,
                            " rows and cannot have another number: smaller batches are filled up"));
  }
  return is_changed;
}

Result<bool> Model::ChangeSource(Source& source) const {
  NEREID_KIT_ASSIGN(const Changes changes,
                    NeededChanges(ports_, binding_, source.signature(), config_.max_batch_size(),
                                  settings_, name_));
  const auto any = [](const auto& list) {
    return std::any_of(list.begin(), list.end(), [](const auto& one) { return one.has_value(); });
  };
  const bool is_changed =
      any(changes.input_dims) || any(changes.input_types) || any(changes.output_types);
  if (is_changed) {
    if (const Error error = source.Change(changes); !error.ok()) {
      return Error(
          error.code(),
          StrCat("unable to load model '", name_,
                 "', it cannot have the types and shapes of its configuration: ", error.message()));
    }
  }
  NEREID_KIT_TRY(CheckShapes(ports_, binding_, source.signature(), config_.max_batch_size(),
                             settings_, name_));
  return is_changed;
}

Result<std::shared_ptr<Program>> Model::ProgramAt(const std::string& device) {
  const backend::MutexLock lock(mutex_);
  for (const auto& [where, program] : programs_) {
    if (where == device) {
      return program;
    }
  }
  std::unique_ptr<Source> source = std::move(source_);
  if (source == nullptr) {
    NEREID_KIT_ASSIGN(source, Read());
    NEREID_KIT_ASSIGN(const Changes changes,
                      NeededChanges(ports_, binding_, source->signature(), config_.max_batch_size(),
                                    settings_, name_));
    NEREID_KIT_TRY(source->Change(changes));
  }
  auto program = source->Compile(device, settings_);
  if (!program.ok()) {
    const Error error = program.TakeError();
    return Error(error.code(), StrCat("unable to load model '", name_, "' on device '", device,
                                      "': ", error.message()));
  }
  programs_.emplace_back(device, program.value());
  ReportMemory();
  return program;
}

void Model::ReportMemory() const {
  backend::MemoryUse use;
  for (const auto& [device, program] : programs_) {
    use.bytes += program->weight_bytes();
  }
  backend::LogIfError(backend::ReportMemoryUse(handle_, {&use, 1}), "memory of the model");
}

}  // namespace nereid::openvino
