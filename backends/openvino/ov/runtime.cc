// SPDX-License-Identifier: Apache-2.0
// Reads and compiles models with OpenVINO.
#include <openvino/core/preprocess/pre_post_process.hpp>
#include <openvino/frontend/manager.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/openvino.hpp>

#include <algorithm>

#include "openvino_backend/model_file.h"
#include "openvino_backend/ov/describe.h"
#include "openvino_backend/ov/guarded.h"
#include "openvino_backend/ov/request.h"
#include "openvino_backend/program.h"

namespace nereid::openvino {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

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
