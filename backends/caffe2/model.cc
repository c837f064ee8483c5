// SPDX-License-Identifier: Apache-2.0
#include "caffe2_backend/model.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "backend_kit/location.h"
#include "backend_kit/missing_file.h"
#include "backend_kit/ports.h"
#include "onnxruntime_backend/auto_complete.h"
#include "onnxruntime_backend/validate.h"

namespace nereid::caffe2 {

using backend::Error;
using backend::InputPort;
using backend::ModelConfig;
using backend::OutputPort;
using backend::Result;
using backend::StrCat;
using onnxruntime::Session;

namespace {

constexpr const char* kDefaultFilename = "model.netdef";

// The types that Caffe2's tensors can have.
std::optional<Element> ElementOf(TRITONSERVER_DataType type) {
  switch (type) {
    case TRITONSERVER_TYPE_BOOL:
      return Element::kBool;
    case TRITONSERVER_TYPE_UINT8:
      return Element::kUint8;
    case TRITONSERVER_TYPE_UINT16:
      return Element::kUint16;
    case TRITONSERVER_TYPE_INT8:
      return Element::kInt8;
    case TRITONSERVER_TYPE_INT16:
      return Element::kInt16;
    case TRITONSERVER_TYPE_INT32:
      return Element::kInt32;
    case TRITONSERVER_TYPE_INT64:
      return Element::kInt64;
    case TRITONSERVER_TYPE_FP16:
      return Element::kHalf;
    case TRITONSERVER_TYPE_FP32:
      return Element::kFloat;
    case TRITONSERVER_TYPE_FP64:
      return Element::kDouble;
    case TRITONSERVER_TYPE_BYTES:
      return Element::kString;
    default:
      return std::nullopt;
  }
}

// The names with commas between them, as many as fit into an error.
constexpr size_t kMaxText = 4096;

std::string Joined(const std::set<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) {
    if (text.size() + name.size() > kMaxText) {
      return text + ", ...";
    }
    text += StrCat(text.empty() ? "" : ", ", name);
  }
  return text;
}

// Fails if a network lists its tensors and this one is not among them.
Error CheckName(const char* what, const std::string& name,
                const std::vector<std::string_view>& external) {
  const std::set<std::string_view> allowed(external.begin(), external.end());
  if (allowed.empty() || allowed.contains(name)) {
    return {};
  }
  return Error::InvalidArgument(StrCat("unexpected inference ", what, " '", name, "', allowed ",
                                       what, "s are: ", Joined(allowed)));
}

Error CheckName(const InputPort& input, const std::vector<std::string_view>& external) {
  Error error = CheckName("input", input.name, external);
  if (input.origin == InputPort::Origin::kControl && !error.ok()) {
    return Error::Internal(StrCat("configuration specified sequence control '", input.name,
                                  "', but model does not provide that input"));
  }
  return error;
}

template <typename Port>
Result<Border> MakeBorder(const char* what, const Port& port, const Dims& dims,
                          const std::string& model_name) {
  const std::optional<Element> type = ElementOf(port.datatype);
  if (!type) {
    return Error::Internal(StrCat("unsupported datatype TYPE_",
                                  TRITONSERVER_DataTypeString(port.datatype), " for ", what, " '",
                                  port.name, "' for model '", model_name, "'"));
  }
  return Border{.name = port.name, .type = *type, .dims = dims};
}

// The dimensions with that of the batch. The elements of a ragged batch follow each other in one
// dimension; what the server computes from a batch has one, too, or two for shapes.
Dims WholeDims(const ModelConfig& config, const InputPort& input, const backend::Ports& ports) {
  if (input.is_ragged) {
    return {-1};
  }
  if (input.origin == InputPort::Origin::kBatchInput) {
    for (const backend::BatchInput& batch_input : ports.batch_inputs) {
      const auto& targets = batch_input.targets;
      if (std::find(targets.begin(), targets.end(), input.name) != targets.end() &&
          batch_input.kind == backend::BatchInputKind::kItemShape) {
        return {-1, -1};
      }
    }
    return {-1};
  }
  Dims dims = input.dims;
  if (config.max_batch_size() > 0) {
    dims.insert(dims.begin(), -1);
  }
  return dims;
}

// What to write where the configuration has no inputs: the names of those that the init network
// does not make.
Error MissingInputs(const std::string& model_name, const NetDef& net, const NetDef& init) {
  std::set<std::string_view> made;
  for (const Operator& operation : init.operators) {
    made.insert(operation.outputs.begin(), operation.outputs.end());
  }
  std::string text;
  for (const std::string_view name : net.external_inputs) {
    if (!made.contains(name) && text.size() + name.size() < kMaxText) {
      text += StrCat(text.empty() ? "" : " ", "input { name: \"", name,
                     "\" data_type: TYPE_FP32 dims: [ ... ] }");
    }
  }
  return Error::InvalidArgument(StrCat(
      "model '", model_name, "' needs its inputs in the configuration: types and shapes are ",
      "not in the files. To begin with: ",
      text.empty() ? "the names of all blobs that the network reads" : text));
}

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

Result<Borders> Borders::FromConfig(const std::string& model_name, const ModelConfig& config,
                                    const NetDef& net, const NetDef& init) {
  NEREID_KIT_ASSIGN(const backend::Ports ports, backend::Ports::FromConfig(config));
  if (config.tensors("input").Size() == 0 && ports.batch_inputs.empty()) {
    return MissingInputs(model_name, net, init);
  }
  Borders borders;
  for (const InputPort& input : ports.inputs) {
    NEREID_KIT_TRY(CheckName(input, net.external_inputs));
    NEREID_KIT_ASSIGN(Border border,
                      MakeBorder("input", input, WholeDims(config, input, ports), model_name));
    borders.inputs.push_back(std::move(border));
  }
  for (const OutputPort& output : ports.outputs) {
    NEREID_KIT_TRY(CheckName("output", output.name, net.external_outputs));
    Dims dims = output.dims;
    if (config.max_batch_size() > 0) {
      dims.insert(dims.begin(), -1);
    }
    if (output.scatter) {
      dims = {-1};
    }
    NEREID_KIT_ASSIGN(Border border, MakeBorder("output", output, dims, model_name));
    borders.outputs.push_back(std::move(border));
  }
  if (config.tensors("output").Size() == 0) {
    borders.outputs.clear();  // the network's
  }
  return borders;
}

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
