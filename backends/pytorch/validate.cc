// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/validate.h"

#include <algorithm>

#include "pytorch_backend/call_spec.h"
#include "pytorch_backend/input_rules.h"

namespace nereid::pytorch {

using backend::ConfiguredName;
using backend::Error;
using backend::InputPort;
using backend::OutputPort;
using backend::Ports;
using backend::StrCat;

namespace {

// Every type of fixed size exists in PyTorch as well; BYTES are lists of strings.
bool IsSupported(TRITONSERVER_DataType datatype) {
  return datatype == TRITONSERVER_TYPE_BYTES || backend::ElementByteSize(datatype) > 0;
}

template <typename Port>
Error CheckPort(const Port& port, const char* what, bool is_batching, const std::string& model) {
  if (!IsSupported(port.datatype)) {
    return Error::Internal(StrCat("unsupported datatype TYPE_",
                                  TRITONSERVER_DataTypeString(port.datatype), " for ", what, " '",
                                  port.name, "' for model '", model, "'"));
  }
  if (port.datatype == TRITONSERVER_TYPE_BYTES && port.dims.size() + (is_batching ? 1 : 0) > 1) {
    return Error::Internal(StrCat("Triton only supports 1 dimensional List of String as ", what,
                                  " for '", port.name, "' for model '", model, "'"));
  }
  return {};
}

void AppendNames(const ValueType& type, const Path& path, std::vector<std::string>* names) {
  const ValueType& required = type.Required();
  if (required.is_leaf()) {
    names->push_back(StrCat("{ name: \"", ToString(path), "\" data_type: ",
                            required.is_text() ? "TYPE_STRING" : "TYPE_...", " dims: [ ",
                            required.kind == ValueType::Kind::kTensor ? "..." : "-1", " ] }"));
    return;
  }
  for (size_t i = 0; i < required.elements.size(); ++i) {
    Path child = path;
    child.push_back(required.kind == ValueType::Kind::kDict   ? "key"
                    : required.kind == ValueType::Kind::kList ? "0"
                    : i < required.fields.size()              ? required.fields[i]
                                                              : std::to_string(i));
    AppendNames(required.elements[i], child, names);
  }
}

std::string Join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    text += (text.empty() ? "" : ", ") + part;
  }
  return text;
}

std::vector<std::string> RuleTexts(std::span<const InputRule> rules) {
  std::vector<std::string> texts;
  for (const InputRule& rule : rules) {
    texts.push_back(StrCat("{ name: \"INPUT__", texts.size(), "\" data_type: ",
                           ConfiguredName(rule.datatype), " dims: ", ShapeText(rule), " }"));
  }
  return texts;
}

// Whether batches of up to `max_batch_size` rows fit.
Error CheckBatchDimension(const InputPort& port, const InputRule& rule, int64_t max_batch_size,
                          const std::string& model) {
  const DimRule first = rule.dims.empty() ? DimRule{.fixed = 0} : rule.dims.front();
  if (first.fixed < 0 && first.smallest() <= 1 && first.most >= max_batch_size) {
    return {};
  }
  return Error::InvalidArgument(StrCat(
      "unable to load model '", model, "', max_batch_size is ", max_batch_size, ", but input '",
      port.name, "' was compiled for ", ShapeText(rule),
      first.fixed < 0 ? StrCat(" with ", first.smallest(), " to ", first.most, " rows")
                      : std::string(),
      ": export the model with a dynamic first dimension (dynamic_shapes) of that size, or set "
      "max_batch_size to 0"));
}

Error CheckInputRule(const InputPort& port, const InputRule& rule, int64_t max_batch_size,
                     const std::string& model) {
  if (port.datatype != rule.datatype) {
    return Error::InvalidArgument(StrCat("unable to load model '", model,
                                         "', configuration expects datatype ",
                                         ConfiguredName(port.datatype), " for input '", port.name,
                                         "', model provides ", ConfiguredName(rule.datatype)));
  }
  if (max_batch_size > 0) {
    NEREID_KIT_TRY(CheckBatchDimension(port, rule, max_batch_size, model));
  }
  // The sizes of these are known with a request only.
  if (port.is_ragged || port.origin != InputPort::Origin::kInput) {
    return {};
  }
  const size_t batch = max_batch_size > 0 ? 1 : 0;
  bool fits = port.dims.size() + batch == rule.dims.size();
  for (size_t d = 0; fits && d < port.dims.size(); ++d) {
    const DimRule& dim = rule.dims[d + batch];
    const int64_t configured = port.dims[d];
    fits =
        configured < 0 || (dim.fixed >= 0 ? configured == dim.fixed
                                          : configured >= dim.smallest() && configured <= dim.most);
  }
  if (fits) {
    return {};
  }
  std::string dims;
  for (const int64_t dim : port.dims) {
    dims += (dims.empty() ? "" : ", ") + std::to_string(dim);
  }
  return Error::InvalidArgument(StrCat("unable to load model '", model, "', input '", port.name,
                                       "' has dims [", dims, "] in the configuration, ",
                                       batch > 0 ? "and max_batch_size is set, " : "",
                                       "but the model was compiled for ", ShapeText(rule)));
}

Error CheckKinds(const Ports& ports, const ValueNode& node) {
  if (node.input >= 0) {
    const InputPort& port = ports.inputs[static_cast<size_t>(node.input)];
    if ((port.datatype == TRITONSERVER_TYPE_BYTES) != node.type->Required().is_text()) {
      return Error::InvalidArgument(StrCat("configuration expects datatype ",
                                           ConfiguredName(port.datatype), " for input '", port.name,
                                           "', model provides ", node.type->text));
    }
  }
  for (const ValueNode& child : node.children) {
    NEREID_KIT_TRY(CheckKinds(ports, child));
  }
  return {};
}

}  // namespace

Error CheckPorts(const Ports& ports, bool is_batching, const std::string& model) {
  for (const InputPort& input : ports.inputs) {
    if (input.origin == InputPort::Origin::kControl) {
      continue;  // the server has checked those
    }
    NEREID_KIT_TRY(CheckPort(input,
                             input.origin == InputPort::Origin::kState ? "input state" : "input",
                             is_batching, model));
  }
  for (const OutputPort& output : ports.outputs) {
    NEREID_KIT_TRY(CheckPort(output, "output", is_batching, model));
  }
  return {};
}

Error CheckInputsListed(const Ports& ports, const Program& program, const std::string& model) {
  if (std::any_of(ports.inputs.begin(), ports.inputs.end(), [](const InputPort& input) {
        return input.origin == InputPort::Origin::kInput;
      })) {
    return {};
  }
  const Signature& signature = program.signature();
  if (program.input_rules() != nullptr) {
    return Error::Internal(
        StrCat("model configuration must contain at least one input, none were specified. Those of "
               "model '",
               model, "' are ", Join(RuleTexts(*program.input_rules()))));
  }
  std::vector<std::string> names;
  for (const Argument& argument : signature.arguments) {
    AppendNames(argument.type, {argument.name}, &names);
  }
  return Error::InvalidArgument(
      StrCat("unable to load model '", model, "', configuration expects 0 inputs, model provides ",
             names.size(),
             ": TorchScript files have no types and shapes, so config.pbtxt has to say them: ",
             signature.ToString(), " is input [ ", Join(names), " ]; outputs may be left out"));
}

Error CheckKinds(const Ports& ports, const std::vector<ValueNode>& arguments) {
  for (const ValueNode& argument : arguments) {
    NEREID_KIT_TRY(CheckKinds(ports, argument));
  }
  return {};
}

Error CheckInputRules(const Ports& ports, const std::vector<ValueNode>& arguments,
                      std::span<const InputRule> rules, int64_t max_batch_size,
                      const std::string& model) {
  const std::vector<int> inputs = FlatInputs(arguments);
  for (size_t i = 0; i < inputs.size() && i < rules.size(); ++i) {
    if (inputs[i] >= 0) {
      NEREID_KIT_TRY(CheckInputRule(ports.inputs[static_cast<size_t>(inputs[i])], rules[i],
                                    max_batch_size, model));
    }
  }
  return {};
}

Error CheckOutputPlaces(const std::vector<OutputPlace>& outputs, const Signature& signature,
                        const std::string& model) {
  const std::vector<std::string> paths = FlatPaths(signature.result);
  for (const OutputPlace& output : outputs) {
    if (!output.path.empty() && output.index < 0 &&
        std::find(paths.begin(), paths.end(), output.path) == paths.end()) {
      return Error::InvalidArgument(StrCat("unable to load model '", model, "', output '",
                                           output.name, "' has no place in the result of ",
                                           signature.ToString()));
    }
  }
  return {};
}

std::vector<InputName> InputNames(const Ports& ports) {
  std::vector<InputName> names;
  for (const InputPort& input : ports.inputs) {
    using Origin = InputPort::Origin;
    names.push_back(
        {.name = input.name,
         .is_listed = input.origin == Origin::kInput || input.origin == Origin::kBatchInput,
         .what = input.origin == Origin::kState ? "state" : "input"});
  }
  return names;
}

}  // namespace nereid::pytorch
