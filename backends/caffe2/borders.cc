// SPDX-License-Identifier: Apache-2.0
#include "caffe2_backend/borders.h"

#include <algorithm>
#include <optional>
#include <set>

#include "backend_kit/ports.h"

namespace nereid::caffe2 {

using backend::Error;
using backend::InputPort;
using backend::ModelConfig;
using backend::OutputPort;
using backend::Result;
using backend::StrCat;

namespace {

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

}  // namespace nereid::caffe2
