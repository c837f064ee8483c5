// SPDX-License-Identifier: Apache-2.0
// The part of the backend that is written against OpenVINO's headers.
#include <openvino/core/preprocess/pre_post_process.hpp>
#include <openvino/frontend/manager.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/openvino.hpp>

#include <algorithm>
#include <array>
#include <cstring>

#include "backend_kit/scatter.h"
#include "openvino_backend/model_file.h"
#include "openvino_backend/program.h"

namespace nereid::openvino {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

struct TypePair {
  TRITONSERVER_DataType ours;
  ov::element::Type_t theirs;
};

constexpr std::array<TypePair, 14> kTypes = {{
    {TRITONSERVER_TYPE_BOOL, ov::element::Type_t::boolean},
    {TRITONSERVER_TYPE_UINT8, ov::element::Type_t::u8},
    {TRITONSERVER_TYPE_UINT16, ov::element::Type_t::u16},
    {TRITONSERVER_TYPE_UINT32, ov::element::Type_t::u32},
    {TRITONSERVER_TYPE_UINT64, ov::element::Type_t::u64},
    {TRITONSERVER_TYPE_INT8, ov::element::Type_t::i8},
    {TRITONSERVER_TYPE_INT16, ov::element::Type_t::i16},
    {TRITONSERVER_TYPE_INT32, ov::element::Type_t::i32},
    {TRITONSERVER_TYPE_INT64, ov::element::Type_t::i64},
    {TRITONSERVER_TYPE_FP16, ov::element::Type_t::f16},
    {TRITONSERVER_TYPE_BF16, ov::element::Type_t::bf16},
    {TRITONSERVER_TYPE_FP32, ov::element::Type_t::f32},
    {TRITONSERVER_TYPE_FP64, ov::element::Type_t::f64},
    {TRITONSERVER_TYPE_BYTES, ov::element::Type_t::string},
}};

TRITONSERVER_DataType OurType(const ov::element::Type& type) {
  for (const TypePair& pair : kTypes) {
    if (type == pair.theirs) {
      return pair.ours;
    }
  }
  return TRITONSERVER_TYPE_INVALID;
}

ov::element::Type TheirType(TRITONSERVER_DataType type) {
  for (const TypePair& pair : kTypes) {
    if (type == pair.ours) {
      return pair.theirs;
    }
  }
  return ov::element::dynamic;
}

// Runs `body` and makes an Error of its exception.
template <typename Body>
auto Guarded(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& e) {
    return Error::Internal(PlainText(e.what()));
  } catch (...) {
    return Error::Internal("OpenVINO failed without a reason");
  }
}

template <typename Port>
TensorInfo Describe(const Port& port, bool is_output) {
  TensorInfo info;
  info.names.assign(port.get_names().begin(), port.get_names().end());
  std::sort(info.names.begin(), info.names.end());
  if (info.names.empty()) {
    // Files of other frameworks, and of older versions, have names of nodes only.
    const auto node = is_output ? port.get_node()->input_value(0).get_node_shared_ptr()
                                : port.get_node_shared_ptr();
    info.names.push_back(node->get_friendly_name());
  }
  info.name = port.get_names().empty() ? info.names[0] : port.get_any_name();
  info.type = port.get_element_type().get_type_name();
  info.datatype = OurType(port.get_element_type());
  const ov::PartialShape& shape = port.get_partial_shape();
  info.has_rank = shape.rank().is_static();
  for (int64_t d = 0; info.has_rank && d < shape.rank().get_length(); ++d) {
    const ov::Dimension& dim = shape[d];
    info.dims.push_back(dim.is_static() ? dim.get_length() : -1);
  }
  return info;
}

template <typename Model>
Signature DescribeAll(const Model& model) {
  Signature signature;
  for (const auto& input : model.inputs()) {
    signature.inputs.push_back(Describe(input, false));
  }
  for (const auto& output : model.outputs()) {
    signature.outputs.push_back(Describe(output, true));
  }
  return signature;
}

class OvRequest : public Request {
 public:
  OvRequest(ov::CompiledModel& compiled, const Signature& signature)
      : signature_(signature),
        input_ports_(compiled.inputs()),
        request_(compiled.create_infer_request()),
        outputs_(signature.outputs.size()) {
    is_stateful_ = !request_.query_state().empty();
    for (size_t o = 0; o < outputs_.size(); ++o) {
      const auto& port = compiled.outputs()[o];
      std::vector<size_t> shape;
      const ov::PartialShape& declared = port.get_partial_shape();
      for (int64_t d = 0; declared.rank().is_static() && d < declared.rank().get_length(); ++d) {
        shape.push_back(declared[d].is_static() ? static_cast<size_t>(declared[d].get_length())
                                                : 0);
      }
      if (declared.rank().is_dynamic()) {
        shape.push_back(0);
      }
      GiveMemory(o, ov::Tensor(port.get_element_type(), ov::Shape(shape)));
    }
  }

  Error Run(std::span<const CallInput> inputs) override {
    return Guarded([&]() -> Error {
      for (size_t i = 0; i < inputs.size(); ++i) {
        NEREID_KIT_TRY(SetInput(i, inputs[i]));
      }
      RenewOutputs();
      // Variables inside the model would otherwise keep what another request has left.
      if (is_stateful_) {
        for (ov::VariableState& state : request_.query_state()) {
          state.reset();
        }
      }
      request_.infer();
      return {};
    });
  }

  Result<CallOutput> Output(size_t o) override {
    return Guarded([&]() -> Result<CallOutput> { return ReadOutput(o); });
  }

 private:
  struct OutputSlot {
    ov::Tensor tensor;  // the memory of the results
    // Whether somebody may still read the last one, so that the next run needs other memory.
    bool is_lent = false;
    std::vector<int64_t> shape;
    std::vector<std::string_view> strings;
  };

  Error SetInput(size_t i, const CallInput& input) {
    const TensorInfo& info = signature_.inputs[i];
    if (!input.is_present) {
      return Error::InvalidArgument(
          StrCat("input '", info.name, "' is missing, without which the model cannot run"));
    }
    const ov::PartialShape& expected = input_ports_[i].get_partial_shape();
    ov::Shape shape(input.shape.begin(), input.shape.end());
    if (expected.rank().is_static() && expected.rank().get_length() == 0 &&
        ov::shape_size(shape) == 1) {
      shape.clear();  // a configuration cannot have no dimensions
    }
    if (!expected.compatible(ov::PartialShape(shape))) {
      return Error::InvalidArgument(StrCat("input '", info.name, "' has shape ",
                                           backend::ShapeToString(input.shape),
                                           ", the model takes ", expected.to_string()));
    }
    const ov::element::Type& type = input_ports_[i].get_element_type();
    if (type == ov::element::i64 || type == ov::element::u64) {
      NEREID_KIT_TRY(CheckRange(info, input.data, ov::shape_size(shape)));
    }
    if (type != ov::element::string) {
      request_.set_input_tensor(i, ov::Tensor(type, shape, const_cast<char*>(input.data)));
      return {};
    }
    ov::Tensor tensor(type, shape);
    auto* const texts = tensor.data<std::string>();
    for (size_t e = 0; e < input.strings.size(); ++e) {
      texts[e] = input.strings[e];
    }
    request_.set_input_tensor(i, tensor);
    return {};
  }

  // The library computes with 32 bits where a model has 64, and would cut values off.
  static Error CheckRange(const TensorInfo& info, const char* data, size_t count) {
    for (size_t e = 0; e < count; ++e) {
      int64_t value = 0;
      std::memcpy(&value, data + e * sizeof(value), sizeof(value));
      if (value < INT32_MIN || value > INT32_MAX) {
        return Error::InvalidArgument(StrCat("input '", info.name, "' has a value beyond 32 bits, ",
                                             "with which OpenVINO computes where a model has ",
                                             info.type));
      }
    }
    return {};
  }

  // Outputs are always written to memory that was made here. Where an output is an input unchanged,
  // the library would otherwise write later results to the memory of earlier inputs.
  void GiveMemory(size_t o, ov::Tensor tensor) {
    request_.set_output_tensor(o, tensor);
    outputs_[o].tensor = std::move(tensor);
    outputs_[o].is_lent = false;
  }

  void RenewOutputs() {
    for (size_t o = 0; o < outputs_.size(); ++o) {
      const OutputSlot& slot = outputs_[o];
      if (slot.is_lent) {
        // The new memory is as large as the last; the library enlarges it for a larger result.
        GiveMemory(o, ov::Tensor(slot.tensor.get_element_type(), slot.tensor.get_shape()));
      }
    }
  }

  Result<CallOutput> ReadOutput(size_t o) {
    OutputSlot& slot = outputs_[o];
    const ov::Shape& shape = slot.tensor.get_shape();
    slot.shape.assign(shape.begin(), shape.end());
    CallOutput output{.shape = slot.shape};
    if (slot.tensor.get_element_type() == ov::element::string) {
      const auto* const texts = slot.tensor.data<const std::string>();
      slot.strings.assign(texts, texts + slot.tensor.get_size());
      output.strings = slot.strings;
      return output;
    }
    if (slot.tensor.get_size() > 0) {
      output.data = static_cast<const char*>(slot.tensor.data());
    }
    if (slot.tensor.get_byte_size() >= backend::OutputWriter::kMinLentBytes) {
      output.keeper = std::make_shared<ov::Tensor>(slot.tensor);
      slot.is_lent = true;
    }
    return output;
  }

  const Signature& signature_;
  const std::vector<ov::Output<const ov::Node>> input_ports_;
  ov::InferRequest request_;
  std::vector<OutputSlot> outputs_;
  bool is_stateful_ = false;
};

class OvProgram : public Program {
 public:
  OvProgram(ov::CompiledModel compiled, Signature signature, uint64_t weight_bytes)
      : compiled_(std::move(compiled)),
        signature_(std::move(signature)),
        weight_bytes_(weight_bytes) {}

  const Signature& signature() const override { return signature_; }
  Result<std::unique_ptr<Request>> NewRequest() override {
    return Guarded([&]() -> Result<std::unique_ptr<Request>> {
      return std::unique_ptr<Request>(std::make_unique<OvRequest>(compiled_, signature_));
    });
  }
  uint64_t weight_bytes() const override { return weight_bytes_; }

 private:
  ov::CompiledModel compiled_;
  const Signature signature_;
  const uint64_t weight_bytes_;
};

uint64_t WeightBytes(const ov::Model& model) {
  uint64_t bytes = 0;
  for (const auto& node : model.get_ops()) {
    if (const auto constant = std::dynamic_pointer_cast<ov::op::v0::Constant>(node)) {
      bytes += constant->get_byte_size();
    }
  }
  return bytes;
}

class OvSource : public Source {
 public:
  OvSource(ov::Core core, std::shared_ptr<ov::Model> model)
      : core_(std::move(core)), model_(std::move(model)), signature_(DescribeAll(*model_)) {}

  const Signature& signature() const override { return signature_; }

  Error Change(const Changes& changes) override {
    return Guarded([&]() -> Error {
      ov::preprocess::PrePostProcessor converter(model_);
      bool converts = false;
      for (size_t i = 0; i < changes.input_types.size(); ++i) {
        if (const auto type = changes.input_types[i]) {
          converter.input(i).tensor().set_element_type(TheirType(*type));
          converts = true;
        }
      }
      for (size_t o = 0; o < changes.output_types.size(); ++o) {
        if (const auto type = changes.output_types[o]) {
          converter.output(o).tensor().set_element_type(TheirType(*type));
          converts = true;
        }
      }
      if (converts) {
        model_ = converter.build();
      }
      std::map<size_t, ov::PartialShape> shapes;
      for (size_t i = 0; i < changes.input_dims.size(); ++i) {
        if (const auto& dims = changes.input_dims[i]) {
          shapes[i] = ov::PartialShape(std::vector<ov::Dimension>(dims->begin(), dims->end()));
        }
      }
      if (!shapes.empty()) {
        model_->reshape(shapes);
      }
      Signature changed = DescribeAll(*model_);
      // Conversions may drop names.
      for (size_t i = 0; i < changed.inputs.size(); ++i) {
        changed.inputs[i].name = signature_.inputs[i].name;
        changed.inputs[i].names = signature_.inputs[i].names;
      }
      for (size_t o = 0; o < changed.outputs.size(); ++o) {
        changed.outputs[o].name = signature_.outputs[o].name;
        changed.outputs[o].names = signature_.outputs[o].names;
      }
      signature_ = std::move(changed);
      return {};
    });
  }

  Result<std::shared_ptr<Program>> Compile(const std::string& device,
                                           const Settings& settings) override {
    return Guarded([&]() -> Result<std::shared_ptr<Program>> {
      ov::AnyMap properties;
      for (const auto& [key, value] : settings.properties) {
        if (key != ov::compilation_num_threads.name() || Takes(device, key)) {
          properties[key] = value;
        }
      }
      return std::shared_ptr<Program>(std::make_shared<OvProgram>(
          core_.compile_model(model_, device, properties), signature_, WeightBytes(*model_)));
    });
  }

 private:
  // Whether the device has the property; Triton's users set one that CPUs lack by now.
  bool Takes(const std::string& device, const std::string& key) {
    const auto known = core_.get_property(device, ov::supported_properties);
    const bool takes = std::find(known.begin(), known.end(), key) != known.end();
    if (!takes) {
      backend::LogInfo(StrCat("the parameter '", key, "' is ignored: device '", device,
                              "' of this version of OpenVINO does not have it"));
    }
    return takes;
  }

  ov::Core core_;
  std::shared_ptr<ov::Model> model_;
  Signature signature_;
};

class OvRuntime : public Runtime {
 public:
  OvRuntime() { Prepare(core_); }

  Result<std::unique_ptr<Source>> Read(const std::string& path, const Settings& settings) override {
    NEREID_KIT_ASSIGN(const ModelFormat format, CheckModelFile(path));
    return Guarded([&]() -> Result<std::unique_ptr<Source>> {
      const auto front_end = front_ends_.load_by_framework(FrontEndOf(format));
      if (front_end == nullptr || !front_end->supported(path)) {
        return Error::InvalidArgument(StrCat("'", path,
                                             "' is damaged, or no model that OpenVINO's reader '",
                                             FrontEndOf(format), "' knows"));
      }
      ov::Core core = core_;
      if (!settings.extension_path.empty()) {
        // Operations of one model are not known to the others.
        core = ov::Core();
        Prepare(core);
        core.add_extension(settings.extension_path);
      }
      auto model = core.read_model(path);
      return std::unique_ptr<Source>(std::make_unique<OvSource>(core, std::move(model)));
    });
  }

 private:
  // Weights are read into memory: cutting off a file that is mapped ends the process that reads it.
  static void Prepare(ov::Core& core) { core.set_property(ov::enable_mmap(false)); }

  ov::Core core_;
  ov::frontend::FrontEndManager front_ends_;
};

}  // namespace

Result<std::unique_ptr<Runtime>> MakeRuntime() {
  return Guarded([]() -> Result<std::unique_ptr<Runtime>> {
    return std::unique_ptr<Runtime>(std::make_unique<OvRuntime>());
  });
}

}  // namespace nereid::openvino
