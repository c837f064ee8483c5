// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/binding.h"

#include <algorithm>
#include <set>

#include "backend_kit/shape.h"
#include "tensorflow_backend/types.h"

namespace nereid::tensorflow {

using backend::ConfiguredName;
using backend::Error;
using backend::InputPort;
using backend::OutputPort;
using backend::Ports;
using backend::Result;
using backend::ShapeToString;
using backend::StrCat;

namespace {

using Origin = InputPort::Origin;

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

// Whether the configuration's shape fits the model's. A dimension that the model leaves open may
// have any size in the configuration; `is_exact`: but not the other way round.
bool Fits(std::span<const int64_t> model, std::span<const int64_t> dims, bool is_exact) {
  return std::equal(
      model.begin(), model.end(), dims.begin(), dims.end(),
      [&](int64_t m, int64_t d) { return m == d || m == -1 || (!is_exact && d == -1); });
}

// A configuration cannot have no dimensions: a scalar may have some of size one.
bool HasOneElement(std::span<const int64_t> dims) {
  return std::all_of(dims.begin(), dims.end(), [](int64_t dim) { return dim == 1; });
}

Error CheckDims(const std::string& name, const TensorInfo& info, std::vector<int64_t> dims,
                bool is_batching, bool is_exact, const std::string& model) {
  if (!info.has_rank) {
    return {};
  }
  if (is_batching && (info.dims.empty() || info.dims[0] != -1)) {
    return Error::InvalidArgument(StrCat(
        "model '", model, "', tensor '", name,
        "': for the model to support batching the shape should have at least 1 dimension and the "
        "first dimension must be -1; but shape expected by the model is ",
        ShapeToString(info.dims)));
  }
  if (is_batching) {
    dims.insert(dims.begin(), -1);
  }
  if (Fits(info.dims, dims, is_exact) || (!is_batching && IsScalar(info) && HasOneElement(dims))) {
    return {};
  }
  return Error::InvalidArgument(
      StrCat("model '", model, "', tensor '", name, "': the model expects ", info.dims.size(),
             " dimensions (shape ", ShapeToString(info.dims),
             ") but the model configuration specifies ", dims.size(), " dimensions (",
             is_batching
                 ? "an initial batch dimension because max_batch_size > 0 followed by the explicit "
                   "tensor shape, making complete shape "
                 : "shape ",
             ShapeToString(dims), ")"));
}

std::string ModelType(const TensorInfo& info) {
  const TRITONSERVER_DataType type = OurType(info.type);
  return type == TRITONSERVER_TYPE_INVALID ? TheirName(info.type) : ConfiguredName(type);
}

Error CheckType(const char* what, const std::string& name, const TensorInfo& info,
                TRITONSERVER_DataType type, const std::string& model) {
  if (OurType(info.type) == TRITONSERVER_TYPE_INVALID) {
    return Error::InvalidArgument(StrCat("unable to process ", what, " '", name, "' for '", model,
                                         "', unsupported datatype '", TheirName(info.type), "'"));
  }
  if (TheirType(type) == 0) {
    return Error::InvalidArgument(StrCat("unsupported datatype '", ConfiguredName(type),
                                         "' for tensor '", name, "' for model '", model, "'"));
  }
  if (TheirType(type) != info.type) {
    return Error::InvalidArgument(StrCat(
        "unable to load model '", model, "', configuration expects datatype ", ConfiguredName(type),
        " for ", what, " '", name, "', model provides ", ModelType(info)));
  }
  return {};
}

Error CheckControl(const InputPort& port, const TensorInfo& info, bool is_batching,
                   const std::string& model) {
  const Error dims = CheckDims(port.name, info, {1}, is_batching, true, model);
  if (!dims.ok()) {
    return Error::InvalidArgument(StrCat("unable to load model '", model, "', sequence control '",
                                         port.name, "': ", dims.message()));
  }
  if (TheirType(port.datatype) != info.type) {
    return Error::InvalidArgument(StrCat("unable to load model '", model, "', sequence control '",
                                         port.name, "': the model expects ", ModelType(info),
                                         " but the model configuration specifies data-type ",
                                         ConfiguredName(port.datatype)));
  }
  return {};
}

Error CheckInput(const InputPort& port, const TensorInfo& info, bool is_batching,
                 const std::string& model) {
  if (port.origin == Origin::kControl) {
    return CheckControl(port, info, is_batching, model);
  }
  if (info.place.empty()) {
    return Error::Unsupported(StrCat("unable to load model '", model, "', input '", port.name,
                                     "' is a sparse or composite tensor, which is not supported"));
  }
  const bool has_own_shape = port.is_ragged || port.origin == Origin::kBatchInput;
  if (port.is_ragged && info.has_rank && info.dims != std::vector<int64_t>{-1}) {
    return Error::InvalidArgument(
        StrCat("unable to load model '", model,
               "', configuration expects model provides input with shape [-1]  for ragged input '",
               port.name, "', model provides ", ShapeToString(info.dims)));
  }
  if (!has_own_shape) {
    NEREID_KIT_TRY(CheckDims(port.name, info, port.dims, is_batching, true, model));
  }
  return CheckType("input", port.name, info, port.datatype, model);
}

Error CheckOutput(const OutputPort& port, const TensorInfo& info, bool is_batching,
                  const std::string& model) {
  if (info.place.empty()) {
    return Error::Unsupported(StrCat("unable to load model '", model, "', output '", port.name,
                                     "' is a sparse or composite tensor, which is not supported"));
  }
  // The shape of an output that is split by an input's shape is not that of the model.
  if (!port.scatter) {
    NEREID_KIT_TRY(CheckDims(port.name, info, port.dims, is_batching, false, model));
  }
  return CheckType("output", port.name, info, port.datatype, model);
}

bool IsControl(const InputPort& port) { return port.origin == Origin::kControl; }

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
