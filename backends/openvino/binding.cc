// SPDX-License-Identifier: Apache-2.0
#include "openvino_backend/binding.h"

#include <algorithm>
#include <set>

#include "backend_kit/shape.h"

namespace nereid::openvino {

using backend::ConfiguredName;
using backend::Error;
using backend::InputPort;
using backend::ModelConfig;
using backend::OutputPort;
using backend::Ports;
using backend::Result;
using backend::ShapeToString;
using backend::StrCat;

namespace {

using Origin = InputPort::Origin;

std::string NamesOf(const std::vector<TensorInfo>& tensors) {
  std::set<std::string_view> sorted;
  for (const TensorInfo& tensor : tensors) {
    sorted.insert(tensor.name);
  }
  std::string text;
  for (const std::string_view name : sorted) {
    text += text.empty() ? "" : ", ";
    text += name;
  }
  return text;
}

// The configuration's shape of an input with the batch dimension; controls and batch inputs, whose
// shape is not configured, have nothing.
std::optional<std::vector<int64_t>> WholeShape(const InputPort& port, int64_t max_batch_size) {
  if (port.origin == Origin::kControl || port.origin == Origin::kBatchInput || port.is_ragged) {
    return std::nullopt;
  }
  std::vector<int64_t> dims = port.dims;
  if (max_batch_size > 0) {
    dims.insert(dims.begin(), -1);
  }
  return dims;
}

bool Fits(std::span<const int64_t> model, std::span<const int64_t> dims) {
  return std::equal(model.begin(), model.end(), dims.begin(), dims.end(),
                    [](int64_t m, int64_t d) { return m == d || m == -1 || d == -1; });
}

Error CheckDims(const TensorInfo& tensor, std::span<const int64_t> dims, bool is_batching,
                const std::string& model) {
  if (!tensor.has_rank || Fits(tensor.dims, dims)) {
    return {};
  }
  // A configuration cannot have no dimensions: a scalar has one or more of size one.
  if (tensor.dims.empty() &&
      std::all_of(dims.begin(), dims.end(), [](int64_t dim) { return dim == 1; })) {
    return {};
  }
  return Error::InvalidArgument(
      StrCat("model '", model, "', tensor '", tensor.name, "': the model expects ",
             tensor.dims.size(), " dimensions (shape ", ShapeToString(tensor.dims),
             ") but the model configuration specifies ", dims.size(), " dimensions (",
             is_batching
                 ? "an initial batch dimension because max_batch_size > 0 followed by the explicit "
                   "tensor shape, making complete shape "
                 : "shape ",
             ShapeToString(dims), ")"));
}

// The type that the program has to convert a tensor from or to; nothing if it is the model's.
Result<std::optional<TRITONSERVER_DataType>> Conversion(const TensorInfo& tensor,
                                                        TRITONSERVER_DataType configured,
                                                        const char* what,
                                                        const std::string& model) {
  if (configured == TRITONSERVER_TYPE_INVALID) {
    return Error::Internal(
        StrCat("unsupported datatype for ", what, " '", tensor.name, "' for model '", model, "'"));
  }
  if (tensor.datatype == configured) {
    return std::optional<TRITONSERVER_DataType>();
  }
  const bool has_text =
      tensor.datatype == TRITONSERVER_TYPE_BYTES || configured == TRITONSERVER_TYPE_BYTES;
  if (has_text) {
    return Error::InvalidArgument(
        StrCat("unable to load model '", model, "', configuration expects datatype ",
               ConfiguredName(configured), " for ", what, " '", tensor.name, "', model provides ",
               tensor.datatype == TRITONSERVER_TYPE_INVALID ? tensor.type
                                                            : ConfiguredName(tensor.datatype)));
  }
  return std::optional(configured);
}

rapidjson::Value::ConstArray List(const ModelConfig& config, const char* key) {
  return backend::ArrayOf(config.json(), key);
}

// Tensors of the model that another part of the configuration names.
std::set<std::string, std::less<>> NamedElsewhere(const ModelConfig& config) {
  std::set<std::string, std::less<>> names;
  if (const rapidjson::Value* sequences = backend::Find(config.json(), "sequence_batching")) {
    for (const rapidjson::Value& control : backend::ArrayOf(*sequences, "control_input")) {
      names.emplace(backend::StringMember(control, "name"));
    }
    for (const rapidjson::Value& state : backend::ArrayOf(*sequences, "state")) {
      names.emplace(backend::StringMember(state, "input_name"));
      names.emplace(backend::StringMember(state, "output_name"));
    }
  }
  return names;
}

Error CompleteList(const char* key, const std::vector<TensorInfo>& tensors,
                   const std::string& model, ModelConfig* config) {
  if (List(*config, key).Size() > 0) {
    return {};
  }
  const auto elsewhere = NamedElsewhere(*config);
  const size_t first = config->max_batch_size() > 0 ? 1 : 0;
  for (const TensorInfo& tensor : tensors) {
    if (std::any_of(tensor.names.begin(), tensor.names.end(),
                    [&](const std::string& name) { return elsewhere.contains(name); })) {
      continue;
    }
    if (!tensor.has_rank || tensor.datatype == TRITONSERVER_TYPE_INVALID) {
      return Error::InvalidArgument(
          StrCat("unable to load model '", model, "', ", key, " '", tensor.name, "' has ",
                 tensor.has_rank ? StrCat("the type ", tensor.type)
                                 : std::string("any number of dimensions"),
                 ", so its configuration cannot be completed: list the tensor in config.pbtxt"));
    }
    std::vector<int64_t> dims(
        tensor.dims.begin() + static_cast<std::ptrdiff_t>(std::min(first, tensor.dims.size())),
        tensor.dims.end());
    // No dimensions cannot be expressed; one of size one has as many elements.
    if (dims.empty()) {
      dims.push_back(1);
    }
    config->AddTensor(key, tensor.name, ConfiguredName(tensor.datatype), dims);
    if (first == 1 && tensor.dims.size() == 1) {
      auto& allocator = config->mutable_json().GetAllocator();
      rapidjson::Value reshape(rapidjson::kObjectType);
      reshape.AddMember("shape", rapidjson::Value(rapidjson::kArrayType), allocator);
      auto list = config->mutable_json()[key].GetArray();
      list[list.Size() - 1].AddMember("reshape", reshape, allocator);
    }
  }
  return {};
}

}  // namespace

Result<Binding> Bind(const Ports& ports, const Signature& signature, const std::string& model) {
  Binding binding;
  if (ports.inputs.size() != signature.inputs.size()) {
    return Error::InvalidArgument(StrCat(
        "unable to load model '", model, "', configuration expects ", ports.inputs.size(),
        " inputs, model provides ", signature.inputs.size(), ": ", NamesOf(signature.inputs)));
  }
  std::set<size_t> used;
  for (const InputPort& port : ports.inputs) {
    const int found = FindTensor(signature.inputs, port.name);
    if (found < 0) {
      return Error::InvalidArgument(StrCat("unexpected inference input '", port.name,
                                           "', allowed inputs are: ", NamesOf(signature.inputs)));
    }
    if (!used.insert(static_cast<size_t>(found)).second) {
      return Error::InvalidArgument(StrCat("unable to load model '", model, "', input '", port.name,
                                           "' is listed more than once"));
    }
    binding.inputs.push_back(static_cast<size_t>(found));
  }
  for (const OutputPort& port : ports.outputs) {
    const int found = FindTensor(signature.outputs, port.name);
    if (found < 0) {
      return Error::InvalidArgument(StrCat("unexpected inference output '", port.name,
                                           "', allowed outputs are: ", NamesOf(signature.outputs)));
    }
    binding.outputs.push_back(static_cast<size_t>(found));
  }
  return binding;
}

Result<Changes> NeededChanges(const Ports& ports, const Binding& binding,
                              const Signature& signature, int64_t max_batch_size,
                              const Settings& settings, const std::string& model) {
  Changes changes;
  changes.input_dims.resize(signature.inputs.size());
  changes.input_types.resize(signature.inputs.size());
  changes.output_types.resize(signature.outputs.size());
  for (size_t i = 0; i < ports.inputs.size(); ++i) {
    const size_t at = binding.inputs[i];
    const TensorInfo& tensor = signature.inputs[at];
    NEREID_KIT_ASSIGN(changes.input_types[at],
                      Conversion(tensor, ports.inputs[i].datatype, "input", model));
    const auto configured = WholeShape(ports.inputs[i], max_batch_size);
    std::vector<int64_t> dims =
        configured && (settings.reshape_inputs || !tensor.has_rank) ? *configured : tensor.dims;
    // What the configuration leaves open is open, also where the file was made for one size.
    for (size_t d = 0; configured && configured->size() == dims.size() && d < dims.size(); ++d) {
      dims[d] = (*configured)[d] == -1 ? -1 : dims[d];
    }
    // What has other first dimensions than the batch is left as it is.
    const bool has_batch = max_batch_size > 0 && !dims.empty() &&
                           ports.inputs[i].origin != Origin::kBatchInput &&
                           !ports.inputs[i].is_ragged;
    if (has_batch) {
      dims[0] = settings.fixed_batch ? max_batch_size : -1;
    }
    if (dims != tensor.dims || !tensor.has_rank) {
      changes.input_dims[at] = std::move(dims);
    }
  }
  for (size_t o = 0; o < ports.outputs.size(); ++o) {
    const size_t at = binding.outputs[o];
    NEREID_KIT_ASSIGN(
        changes.output_types[at],
        Conversion(signature.outputs[at], ports.outputs[o].datatype, "output", model));
  }
  return changes;
}

Error CheckShapes(const Ports& ports, const Binding& binding, const Signature& signature,
                  int64_t max_batch_size, const Settings& settings, const std::string& model) {
  const bool is_batching = max_batch_size > 0;
  for (size_t i = 0; i < ports.inputs.size(); ++i) {
    const TensorInfo& tensor = signature.inputs[binding.inputs[i]];
    if (ports.inputs[i].is_ragged && tensor.dims != std::vector<int64_t>{-1}) {
      return Error::InvalidArgument(
          StrCat("unable to load model '", model,
                 "', configuration expects model provides input with shape [-1] for ragged input '",
                 tensor.name, "', model provides ", ShapeToString(tensor.dims)));
    }
    if (const auto dims = WholeShape(ports.inputs[i], max_batch_size)) {
      NEREID_KIT_TRY(CheckDims(tensor, *dims, is_batching, model));
    }
  }
  for (size_t o = 0; o < ports.outputs.size(); ++o) {
    const OutputPort& port = ports.outputs[o];
    const TensorInfo& tensor = signature.outputs[binding.outputs[o]];
    if (port.scatter) {
      continue;
    }
    std::vector<int64_t> dims = port.dims;
    if (is_batching) {
      dims.insert(dims.begin(), -1);
    }
    NEREID_KIT_TRY(CheckDims(tensor, dims, is_batching, model));
    const bool keeps_batch = !is_batching || !tensor.has_rank || tensor.dims.empty() ||
                             tensor.dims[0] == (settings.fixed_batch ? max_batch_size : -1);
    if (!keeps_batch && (settings.fixed_batch || max_batch_size > 1)) {
      return Error::InvalidArgument(
          StrCat("unable to load model '", model, "', its output '", tensor.name,
                 "' has a first dimension of ", tensor.dims[0],
                 " for every batch, so the model cannot be batched: set max_batch_size to 0 and ",
                 "list all dimensions"));
    }
  }
  return {};
}

bool NeedsCompletion(const ModelConfig& config) {
  return List(config, "input").Size() + List(config, "batch_input").Size() == 0 ||
         List(config, "output").Size() == 0;
}

bool HasBatchDimensions(const Signature& signature) {
  const auto has = [](const TensorInfo& tensor) {
    return tensor.has_rank && !tensor.dims.empty() && tensor.dims[0] == -1;
  };
  return std::all_of(signature.inputs.begin(), signature.inputs.end(), has) &&
         std::all_of(signature.outputs.begin(), signature.outputs.end(), has);
}

bool HasBatchOf(const Signature& signature, int64_t rows) {
  const auto has = [rows](const TensorInfo& tensor) {
    return tensor.has_rank && !tensor.dims.empty() && tensor.dims[0] == rows;
  };
  return std::all_of(signature.inputs.begin(), signature.inputs.end(), has) &&
         std::all_of(signature.outputs.begin(), signature.outputs.end(), has);
}

Error Complete(const Signature& signature, int64_t max_batch_size, const std::string& model,
               ModelConfig* config) {
  if (config->max_batch_size() == 0) {
    config->SetMaxBatchSize(max_batch_size);
    if (max_batch_size > 1 && backend::Find(config->json(), "sequence_batching") == nullptr &&
        backend::Find(config->json(), "dynamic_batching") == nullptr) {
      config->SetMember("dynamic_batching", rapidjson::Value(rapidjson::kObjectType));
    }
  }
  if (List(*config, "batch_input").Size() == 0) {
    NEREID_KIT_TRY(CompleteList("input", signature.inputs, model, config));
  }
  return CompleteList("output", signature.outputs, model, config);
}

}  // namespace nereid::openvino
