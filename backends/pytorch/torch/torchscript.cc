// SPDX-License-Identifier: Apache-2.0
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/tensorexpr_fuser.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <set>
#include <vector>

#include "pytorch_backend/torch/arguments.h"
#include "pytorch_backend/torch/gpu.h"
#include "pytorch_backend/torch/results.h"
#include "pytorch_backend/torch/types.h"
#include "pytorch_backend/torch/warnings.h"

namespace nereid::pytorch {

using backend::Error;
using backend::Result;
using backend::StrCat;

namespace {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;

// What a graph does with values that live longer than one of its runs.
class WriteFinder {
 public:
  explicit WriteFinder(const std::shared_ptr<torch::jit::Graph>& graph) : aliases_(graph) {
    inputs_ = graph->inputs().slice(1).vec();  // the first is the module itself
    FindAttributes(*graph->block());
    FindWrites(*graph->block());
  }

  bool writes_inputs() const { return writes_inputs_; }
  bool writes_attributes() const { return writes_attributes_; }
  bool keeps_inputs() const { return keeps_inputs_; }

 private:
  void FindAttributes(Block& block) {
    for (Node* const node : block.nodes()) {
      if (node->kind() == torch::jit::prim::GetAttr) {
        attributes_.push_back(node->output());
      }
      for (Block* const inner : node->blocks()) {
        FindAttributes(*inner);
      }
    }
  }

  void FindWrites(Block& block) {
    for (Node* const node : block.nodes()) {
      // A call that could not be inlined may do anything.
      if (node->kind() == torch::jit::prim::SetAttr ||
          node->kind() == torch::jit::prim::CallMethod) {
        writes_attributes_ = keeps_inputs_ = true;
      }
      if (const c10::FunctionSchema* const schema = node->maybeSchema()) {
        const size_t count = std::min(schema->arguments().size(), node->inputs().size());
        for (size_t i = 0; i < count; ++i) {
          const c10::AliasInfo* const alias = schema->arguments()[i].alias_info();
          if (alias != nullptr && alias->isWrite()) {
            NoteWrite(*node, node->input(i));
          }
        }
      }
      for (Block* const inner : node->blocks()) {
        FindWrites(*inner);
      }
    }
  }

  // The tensors within lists, tuples and dictionaries count as well as the values themselves.
  void NoteWrite(const Node& node, Value* value) {
    writes_inputs_ = writes_inputs_ || aliases_.mayContainAlias(value, inputs_);
    if (!aliases_.mayContainAlias(value, attributes_)) {
      return;
    }
    writes_attributes_ = true;
    // Writing to a tensor copies numbers; a container keeps the tensor itself, and so does set_.
    const bool copies = value->type()->isSubtypeOf(*c10::TensorType::get()) &&
                        node.kind() != torch::jit::aten::set_;
    keeps_inputs_ = keeps_inputs_ || !copies;
  }

  const torch::jit::AliasDb aliases_;
  std::vector<Value*> inputs_;
  std::vector<Value*> attributes_;
  bool writes_inputs_ = false;
  bool writes_attributes_ = false;
  bool keeps_inputs_ = false;
};

// Fills what the model may write to and keep. One whose graph cannot be analysed may do everything.
void FindWrites(const torch::jit::Method& forward, Signature* signature) {
  signature->writes_inputs = true;
  signature->writes_attributes = true;
  signature->keeps_inputs = true;
  try {
    const std::shared_ptr<torch::jit::Graph> graph =
        torch::jit::toGraphFunction(forward.function()).graph()->copy();
    torch::jit::Inline(*graph);
    const WriteFinder found(graph);
    signature->writes_inputs = found.writes_inputs();
    signature->writes_attributes = found.writes_attributes();
    signature->keeps_inputs = found.keeps_inputs();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): what is set above stays
  }
}

Signature ReadSignature(const torch::jit::Method& forward) {
  const c10::FunctionSchema& schema = forward.function().getSchema();
  Signature signature;
  // The first argument is the module itself.
  for (size_t a = 1; a < schema.arguments().size(); ++a) {
    const c10::Argument& argument = schema.arguments()[a];
    signature.arguments.push_back({.name = argument.name(),
                                   .type = ToValueType(*argument.type()),
                                   .has_default = argument.default_value().has_value()});
  }
  if (!schema.returns().empty()) {
    signature.result = ToValueType(*schema.returns()[0].type());
  }
  FindWrites(forward, &signature);
  return signature;
}

// Parameters and buffers, each memory once.
std::vector<backend::MemoryUse> FindWeights(const torch::jit::Module& module) {
  std::vector<backend::MemoryUse> weights;
  std::set<const void*> counted;
  const auto add = [&](const at::Tensor& tensor) {
    if (tensor.has_storage() && counted.insert(tensor.storage().data()).second) {
      backend::MemoryUse use{.bytes = tensor.storage().nbytes()};
      if (tensor.is_cuda()) {
        use.type = TRITONSERVER_MEMORY_GPU;
        use.id = tensor.get_device();  // NOLINT(bugprone-signed-char-misuse): a small number
      }
      backend::AddMemoryUse(use, &weights);
    }
  };
  for (const at::Tensor& parameter : module.parameters()) {
    add(parameter);
  }
  for (const at::Tensor& buffer : module.buffers()) {
    add(buffer);
  }
  return weights;
}

// A TorchScript model on its device. Thread-safe as far as Program promises.
class TorchScriptProgram : public Program {
 public:
  TorchScriptProgram(torch::jit::Module module, const Settings& settings, const Device& device)
      : module_(std::move(module)),
        device_(device),
        forward_(module_.get_method("forward")),
        settings_(settings),
        signature_(ReadSignature(forward_)),
        weights_(FindWeights(module_)) {}

  const Signature& signature() const override { return signature_; }
  Device device() const override { return device_; }
  std::vector<backend::MemoryUse> weights() const override { return weights_; }

  Result<std::shared_ptr<const Results>> Run(std::span<const ValueNode> arguments,
                                             std::span<const CallInput> inputs,
                                             bool with_paths) const override {
    const WarningsToLog warnings;
    try {
      const c10::InferenceMode inference_mode(settings_.inference_mode);
      const at::NoGradGuard no_gradients;
      ApplyExecutorSettings();
      const OnGpu gpu(device_);
      // Kept until the results are described: memory that inputs share with results is not theirs.
      std::vector<at::Tensor> tensors;
      NEREID_KIT_ASSIGN(Call call,
                        MakeCall(forward_.function().getSchema(), arguments, inputs, device_,
                                 signature_.writes_inputs || signature_.keeps_inputs, &tensors));
      c10::IValue result = forward_(std::move(call.positional), call.keywords);
      auto results = Flatten(std::move(result), device_, with_paths);
      gpu.Wait();
      if (device_.kind != Device::Kind::kCpu) {
        CleanCache(settings_);
      }
      return results;
    } catch (const std::exception& error) {
      return Error::Internal(StrCat("PyTorch execute failure: ", MessageOf(error)));
    }
  }

 private:
  // As in Triton, settings of the executor are made before each call, because they are the thread's
  // or the process's.
  void ApplyExecutorSettings() const {
    torch::jit::setGraphExecutorOptimize(settings_.optimized_execution);
    if (device_.kind != Device::Kind::kCpu) {
      PrepareGpu(settings_);
    }
    if (settings_.jit_profiling) {
      torch::jit::getProfilingMode() = *settings_.jit_profiling;
    }
    if (settings_.jit_executor) {
      torch::jit::getExecutorMode() = *settings_.jit_executor;
    }
    if (settings_.tensor_fuser) {
      torch::jit::setTensorExprFuserEnabled(*settings_.tensor_fuser);
    }
  }

  const torch::jit::Module module_;
  const Device device_;
  const torch::jit::Method forward_;
  const Settings settings_;
  const Signature signature_;
  const std::vector<backend::MemoryUse> weights_;
};

}  // namespace

Result<std::unique_ptr<const Program>> LoadTorchScript(const std::string& path,
                                                       const Settings& settings,
                                                       const Device& device,
                                                       const std::string& model) {
  const WarningsToLog warnings;
  try {
    const c10::InferenceMode inference_mode(settings.inference_mode);
    const OnGpu gpu(device);
    torch::jit::Module module = torch::jit::load(path, ToTorch(device));
    module.eval();
    if (!module.find_method("forward")) {
      return Error::InvalidArgument(
          StrCat("failed to load model '", model, "': it has no method 'forward'"));
    }
    return std::unique_ptr<const Program>(
        std::make_unique<TorchScriptProgram>(std::move(module), settings, device));
  } catch (const std::exception& error) {
    return Error::Internal(StrCat("failed to load model '", model, "': ", MessageOf(error)));
  }
}

}  // namespace nereid::pytorch
