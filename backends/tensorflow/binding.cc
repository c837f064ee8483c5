// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/binding.h"

#include <algorithm>
#include <set>

#include "tensorflow_backend/tensor_check.h"
#include "tensorflow_backend/types.h"

namespace nereid::tensorflow {

using backend::Error;
using backend::InputPort;
using backend::OutputPort;
using backend::Ports;
using backend::Result;
using backend::StrCat;

namespace {

// Large graphs have thousands of nodes.
constexpr size_t kMaxListed = 50;

template <typename Names>
std::string List(const Names& names) {
  std::string text;
  size_t count = 0;
  for (const std::string& name : names) {
    if (++count > kMaxListed) {
      return text + ", ...";
    }
    text += text.empty() ? "" : ", ";
    text += name;
  }
  return text;
}

std::set<std::string> NamesOf(const std::map<std::string, TensorInfo>& tensors) {
  std::set<std::string> names;
  for (const auto& [name, info] : tensors) {
    names.insert(name);
  }
  return names;
}

Error Unexpected(const char* what, const std::string& name, const std::set<std::string>& allowed) {
  return Error::InvalidArgument(StrCat("unexpected inference ", what, " '", name, "', allowed ",
                                       what, "s are: ", List(allowed)));
}

bool IsControl(const InputPort& port) { return port.origin == InputPort::Origin::kControl; }

Error MissingControl(const InputPort& port) {
  return Error::Internal(StrCat("configuration specified sequence control '", port.name,
                                "', but model does not provide that input"));
}

// The tensor that a configuration calls `name`.
TensorInfo InfoOf(const std::map<std::string, TensorInfo>* tensors, const std::string& name) {
  return tensors == nullptr ? TensorInfo{.place = name, .dims = {}} : tensors->at(name);
}

// Looks a tensor up in the graph. What a signature says counts, because it is what was checked.
Result<TensorInfo> Locate(const TensorInfo& wanted, bool has_signature, const char* what,
                          const std::string& name, Session& session, const std::string& model) {
  const auto found = session.Find(wanted.place);
  if (!found) {
    return Error::InvalidArgument(StrCat("unable to load model '", model, "', ", what, " '", name,
                                         "' is '", wanted.place, "', which is not in the graph"));
  }
  if (has_signature && found->type != wanted.type) {
    return Error::InvalidArgument(StrCat(
        "unable to load model '", model, "', ", what, " '", name, "' has the type ",
        TheirName(wanted.type), " in its signature and ", TheirName(found->type), " in the graph"));
  }
  return has_signature ? wanted : *found;
}

}  // namespace

void OpenScalars(const Ports& ports, int64_t max_batch_size, Signature* signature) {
  for (const InputPort& port : ports.inputs) {
    const auto found = signature->inputs.find(port.name);
    if (found == signature->inputs.end() || !IsScalar(found->second)) {
      continue;
    }
    found->second.has_rank = max_batch_size == 0 && HasOneElement(port.dims);
  }
}

Error CheckSignature(const Ports& ports, const Signature& signature, int64_t max_batch_size,
                     const std::string& model) {
  const bool is_batching = max_batch_size > 0;
  std::set<std::string> names;
  for (const InputPort& port : ports.inputs) {
    if (!signature.inputs.contains(port.name)) {
      return IsControl(port) ? MissingControl(port)
                             : Unexpected("input", port.name, NamesOf(signature.inputs));
    }
    if (!names.insert(port.name).second) {
      return Error::InvalidArgument(StrCat("unable to load model '", model, "', input '", port.name,
                                           "' is listed more than once"));
    }
  }
  if (names.size() != signature.inputs.size()) {
    return Error::InvalidArgument(StrCat("unable to load model '", model,
                                         "', configuration expects ", names.size(),
                                         " inputs, model provides ", signature.inputs.size()));
  }
  for (const InputPort& port : ports.inputs) {
    NEREID_KIT_TRY(CheckInput(port, signature.inputs.at(port.name), is_batching, model));
  }
  for (const OutputPort& port : ports.outputs) {
    if (!signature.outputs.contains(port.name)) {
      return Unexpected("output", port.name, NamesOf(signature.outputs));
    }
    NEREID_KIT_TRY(CheckOutput(port, signature.outputs.at(port.name), is_batching, model));
  }
  return {};
}

Error CheckNodes(const Ports& ports, const Graph& graph, const std::string& model) {
  if (graph.nodes.empty()) {
    return Error::InvalidArgument(StrCat("model ", model, " has an empty network"));
  }
  const std::set<std::string> inputs = NamesOf(graph.Placeholders());
  if (inputs.size() < ports.inputs.size()) {
    return Error::InvalidArgument(StrCat("unable to load model '", model,
                                         "', configuration expects ", ports.inputs.size(),
                                         " inputs, model provides at most ", inputs.size()));
  }
  for (const InputPort& port : ports.inputs) {
    if (!inputs.contains(NodeOf(port.name))) {
      return IsControl(port) ? MissingControl(port) : Unexpected("input", port.name, inputs);
    }
  }
  const std::set<std::string> others = graph.OtherNodes();
  for (const OutputPort& port : ports.outputs) {
    if (!others.contains(NodeOf(port.name))) {
      return Unexpected("output", port.name,
                        others.size() > kMaxListed ? graph.LastNodes() : others);
    }
  }
  return {};
}

Error CheckListed(const Ports& ports, const Graph& graph, const std::string& model) {
  if (!ports.outputs.empty()) {
    return {};
  }
  const auto quoted = [](const std::string& name, const std::string& more) {
    return StrCat("'", name, "'", more);
  };
  std::vector<std::string> inputs;
  for (const auto& [name, info] : graph.Placeholders()) {
    inputs.push_back(quoted(name, StrCat(" (", TheirName(info.type), ")")));
  }
  std::vector<std::string> outputs;
  for (const std::string& name : graph.LastNodes()) {
    outputs.push_back(quoted(name, ""));
  }
  constexpr size_t kMaxListed = 20;
  inputs.resize(std::min(inputs.size(), kMaxListed));
  outputs.resize(std::min(outputs.size(), kMaxListed));
  return Error::InvalidArgument(
      StrCat("the configuration of model '", model,
             "' has no outputs, which a GraphDef does not tell: list inputs and outputs in "
             "config.pbtxt; the graph has the placeholders ",
             List(inputs), " and ends with ", List(outputs)));
}

Result<Bound> Bind(const Ports& ports, const Signature* signature, Session& session,
                   const std::string& model) {
  const bool has_signature = signature != nullptr;
  Bound bound;
  for (const InputPort& port : ports.inputs) {
    const TensorInfo wanted = InfoOf(has_signature ? &signature->inputs : nullptr, port.name);
    NEREID_KIT_ASSIGN(TensorInfo info,
                      Locate(wanted, has_signature, "input", port.name, session, model));
    NEREID_KIT_TRY(CheckType("input", port.name, info, port.datatype, model));
    bound.inputs.push_back(std::move(info));
  }
  for (const OutputPort& port : ports.outputs) {
    const TensorInfo wanted = InfoOf(has_signature ? &signature->outputs : nullptr, port.name);
    NEREID_KIT_ASSIGN(TensorInfo info,
                      Locate(wanted, has_signature, "output", port.name, session, model));
    NEREID_KIT_TRY(CheckType("output", port.name, info, port.datatype, model));
    bound.outputs.push_back(std::move(info));
  }
  return bound;
}

}  // namespace nereid::tensorflow
