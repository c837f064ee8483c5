// SPDX-License-Identifier: Apache-2.0
#include "caffe2_backend/model.h"

#include <filesystem>
#include <fstream>

#include "backend_kit/location.h"
#include "backend_kit/missing_file.h"
#include "caffe2_backend/borders.h"
#include "onnxruntime_backend/auto_complete.h"
#include "onnxruntime_backend/validate.h"

namespace nereid::caffe2 {

using backend::Error;
using backend::ModelConfig;
using backend::Result;
using backend::StrCat;
using onnxruntime::Session;

namespace {

constexpr const char* kDefaultFilename = "model.netdef";

Result<std::string> ReadFile(const std::filesystem::path& path, const std::string& model_name) {
  // Protobuf's limit.
  constexpr uint64_t kMaxBytes = (uint64_t{2} << 30) - 1;
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return Error::Unavailable(StrCat("unable to find '", path.string(), "' for model instance '",
                                     model_name, "'.", backend::FoundInstead(path)));
  }
  if (!std::filesystem::is_regular_file(status)) {
    return Error::InvalidArgument(
        StrCat("'", path.string(), "' is not a Caffe2 NetDef: it is not a file"));
  }
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error || size > kMaxBytes) {
    return Error::InvalidArgument(StrCat("'", path.string(), "' is not a Caffe2 NetDef: ",
                                         error ? error.message() : "it is larger than 2 GB"));
  }
  std::ifstream file(path, std::ios::binary);
  std::string bytes(size, '\0');
  if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) {
    return Error::Unavailable(StrCat("unable to read '", path.string(), "'"));
  }
  return bytes;
}

}  // namespace

Result<std::unique_ptr<Model>> Model::Create(TRITONBACKEND_Model* handle, const Backend& shared) {
  NEREID_KIT_ASSIGN(backend::ModelLocation location, backend::Locate(handle));
  NEREID_KIT_ASSIGN(ModelConfig config, ModelConfig::Load(handle));
  NEREID_KIT_ASSIGN(onnxruntime::Settings settings, onnxruntime::Settings::FromConfig(config));
  settings.model_filename = backend::StringMember(config.json(), "default_model_filename");
  if (settings.model_filename.empty()) {
    settings.model_filename = kDefaultFilename;
  }
  std::unique_ptr<Model> model(new Model(handle, shared, std::move(location.name),
                                         std::move(location.version_folder), std::move(config),
                                         std::move(settings)));
  bool auto_complete = false;
  NEREID_KIT_TRY(TRITONBACKEND_ModelAutoCompleteConfig(handle, &auto_complete));
  if (auto_complete && onnxruntime::NeedsCompletion(model->config())) {
    NEREID_KIT_TRY(model->AutoComplete(handle));
  }
  return model;
}

Result<backend::BatchVerdict> Model::ChooseBatching(TRITONBACKEND_Model*, const Session&) {
  const int64_t size = config().max_batch_size();
  return backend::BatchVerdict{.is_batched = size > 0,
                               .reason = "configured",
                               .text = StrCat("max_batch_size is ", size, " in the configuration")};
}

Error Model::Check(const Session& session) const {
  onnxruntime::Signature signature = session.signature();
  for (const rapidjson::Value& output : config().tensors("output")) {
    std::vector<int64_t> wanted = backend::ModelDims(output);
    if (config().max_batch_size() > 0) {
      wanted.insert(wanted.begin(), -1);
    }
    for (onnxruntime::TensorInfo& tensor : signature.outputs) {
      if (tensor.name == backend::StringMember(output, "name") &&
          tensor.dims.size() == wanted.size()) {
        for (size_t d = 0; d < wanted.size(); ++d) {
          tensor.dims[d] = wanted[d] == -1 ? -1 : tensor.dims[d];
        }
      }
    }
  }
  return onnxruntime::Validate(name(), config(), signature);
}

Result<std::string> Model::ToOnnx() const {
  const std::filesystem::path path = std::filesystem::path(folder()) / settings().model_filename;
  const std::filesystem::path init_path = path.parent_path() / ("init_" + path.filename().string());
  NEREID_KIT_ASSIGN(const std::string bytes, ReadFile(path, name()));
  NEREID_KIT_ASSIGN(const std::string init_bytes, ReadFile(init_path, name()));
  NEREID_KIT_ASSIGN(const NetDef net, NetDef::Parse(bytes, path.string()));
  NetDef init;
  if (!init_bytes.empty()) {  // a network without operators may be an empty file
    NEREID_KIT_ASSIGN(init, NetDef::Parse(init_bytes, init_path.string()));
  }
  NEREID_KIT_ASSIGN(const Borders borders, Borders::FromConfig(name(), config(), net, init));
  const Source source{.init = init,
                      .net = net,
                      .init_name = init_path.filename().string(),
                      .net_name = path.filename().string()};
  Result<std::string> onnx = Translate(source, borders.inputs, borders.outputs);
  if (!onnx.ok()) {
    const Error error = onnx.TakeError();
    return Error(error.code(), StrCat("unable to load model '", name(), "': ", error.message()));
  }
  return onnx;
}

Result<std::shared_ptr<Session>> Model::Load(const onnxruntime::Placement& placement) {
  NEREID_KIT_ASSIGN(const std::string onnx, ToOnnx());
  return Session::LoadBytes(environment(), onnx, domain_, settings(), placement, name());
}

}  // namespace nereid::caffe2
