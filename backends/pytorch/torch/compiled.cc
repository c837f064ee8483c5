// SPDX-License-Identifier: Apache-2.0
#include <c10/core/InferenceMode.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <thread>

#include "backend_kit/mutex.h"
#include "pytorch_backend/call_spec.h"
#include "pytorch_backend/error_stream.h"
#include "pytorch_backend/input_rules.h"
#include "pytorch_backend/package.h"
#include "pytorch_backend/processor.h"
#include "pytorch_backend/temporary_folder.h"
#include "pytorch_backend/torch/first_run.h"
#include "pytorch_backend/torch/results.h"
#include "pytorch_backend/torch/types.h"
#include "pytorch_backend/torch/warnings.h"

namespace nereid::pytorch {

using backend::Error;
using backend::Result;
using backend::StrCat;
using Loader = torch::inductor::AOTIModelPackageLoader;

namespace {

std::string WithPrinted(const std::exception& error, const CapturedErrors& printed) {
  const std::string text = MessageOf(error);
  const std::string more = printed.Text();
  return more.empty() || text.find(more) != text.npos ? text : StrCat(text, " (", more, ")");
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// Constants, each memory once. They are views of one block.
uint64_t CountBytes(Loader& loader) {
  uint64_t bytes = 0;
  std::set<const void*> counted;
  for (const auto& [name, tensor] : loader.get_runner()->extract_constants_map(false)) {
    if (tensor.defined() && tensor.has_storage() &&
        counted.insert(tensor.const_data_ptr()).second) {
      bytes += tensor.nbytes();
    }
  }
  return bytes;
}

// A compiled model on the CPU. Thread-safe: the library has several runners.
class CompiledProgram : public Program {
 public:
  CompiledProgram(std::unique_ptr<Loader> loader, Signature signature,
                  std::optional<std::vector<InputRule>> rules, const Settings& settings,
                  const Device& device)
      : loader_(std::move(loader)),
        signature_(std::move(signature)),
        paths_(FlatPaths(signature_.result)),
        rules_(std::move(rules)),
        settings_(settings),
        device_(device),
        weight_bytes_(CountBytes(*loader_)) {}

  const Signature& signature() const override { return signature_; }
  Device device() const override { return device_; }
  std::vector<backend::MemoryUse> weights() const override { return {{.bytes = weight_bytes_}}; }
  const std::vector<InputRule>* input_rules() const override { return rules_ ? &*rules_ : nullptr; }

  Result<std::shared_ptr<const Results>> Run(std::span<const ValueNode> arguments,
                                             std::span<const CallInput> inputs,
                                             bool) const override {
    const WarningsToLog warnings;
    const CapturedErrors printed;
    try {
      const c10::InferenceMode inference_mode(settings_.inference_mode);
      // Kept until the results are described: memory that inputs share with results is not theirs.
      std::vector<at::Tensor> tensors;
      NEREID_KIT_TRY(MakeTensors(arguments, inputs, &tensors));
      std::vector<at::Tensor> results = RunLoader(tensors);
      if (results.size() != paths_.size()) {
        return Error::Internal(StrCat("the model returned ", results.size(), " tensors, ",
                                      signature_.ToString(), " has ", paths_.size()));
      }
      return Flatten(std::move(results), paths_);
    } catch (const std::exception& error) {
      return Error::Internal(StrCat("PyTorch execute failure: ", WithPrinted(error, printed)));
    }
  }

 private:
  Error MakeTensors(std::span<const ValueNode> arguments, std::span<const CallInput> inputs,
                    std::vector<at::Tensor>* tensors) const {
    std::vector<CallInput> flat;
    for (const int input : FlatInputs(arguments)) {
      if (input < 0 || !inputs[static_cast<size_t>(input)].is_present) {
        return Error::InvalidArgument(
            StrCat(input < 0 ? "an input" : inputs[static_cast<size_t>(input)].name,
                   " is missing; a compiled model needs all inputs that it was compiled with"));
      }
      flat.push_back(inputs[static_cast<size_t>(input)]);
    }
    if (rules_) {
      NEREID_KIT_TRY(CheckInputs(*rules_, flat));
    }
    for (size_t i = 0; i < flat.size(); ++i) {
      const bool copies = !rules_ || (*rules_)[i].is_written;
      const at::Tensor view = ViewOf(flat[i], std::nullopt);
      tensors->push_back(copies ? view.clone() : view);
    }
    return {};
  }

  std::vector<at::Tensor> RunLoader(const std::vector<at::Tensor>& tensors) const {
    if (!has_run_.load()) {
      return SharedFirstRun().With(!rules_.has_value(), [&] {
        std::vector<at::Tensor> results = loader_->run(tensors);
        has_run_.store(true);
        return results;
      });
    }
    return loader_->run(tensors);
  }

  const std::unique_ptr<Loader> loader_;
  const Signature signature_;
  const std::vector<std::string> paths_;
  const std::optional<std::vector<InputRule>> rules_;
  const Settings settings_;
  const Device device_;
  const uint64_t weight_bytes_;
  mutable std::atomic<bool> has_run_{false};
};

// Concurrent calls wait for a runner. Runners share the weights, so there may be many.
size_t RunnerCount() { return std::clamp<size_t>(std::thread::hardware_concurrency(), 8, 64); }

// The library reads the metadata of each package into one object of the process, so two packages
// must not be opened at once.
std::unique_ptr<Loader> Open(const std::string& folder, const std::string& package_model) {
  static backend::Mutex mutex;
  const backend::MutexLock lock(mutex);
  return std::make_unique<Loader>(folder, package_model, false, RunnerCount(), -1);
}

Result<std::unique_ptr<const Program>> Load(const Package& package, const Settings& settings,
                                            const Device& device, const std::string& model) {
  NEREID_KIT_ASSIGN(const TemporaryFolder folder, TemporaryFolder::Make());
  NEREID_KIT_TRY(package.Unpack(folder.path()));
  const WarningsToLog warnings;
  const CapturedErrors printed;
  SharedFirstRun();
  try {
    const c10::InferenceMode inference_mode(settings.inference_mode);
    std::unique_ptr<Loader> loader = Open(folder.path(), package.model);
    const std::vector<std::string> spec = loader->get_call_spec();
    if (spec.size() != 2) {
      return Error::InvalidArgument("it has no call specification");
    }
    NEREID_KIT_ASSIGN(Signature signature, ReadCallSpec(spec[0], spec[1]));
    std::optional<std::vector<InputRule>> rules = ReadInputRules(package.source);
    if (rules && rules->size() != CountValues(signature)) {
      return Error::Unsupported(
          StrCat("the model takes ", rules->size(), " tensors, ", signature.ToString(), " has ",
                 CountValues(signature),
                 " values: it was exported with examples that are numbers or None; "
                 "make them attributes of the model, or leave them out"));
    }
    if (!rules) {
      backend::LogWarning(
          StrCat("the shapes of model '", model,
                 "' cannot be read from its package, so PyTorch "
                 "checks the inputs, which refuses dimensions of 1 that are variable"));
    }
    return std::unique_ptr<const Program>(std::make_unique<CompiledProgram>(
        std::move(loader), std::move(signature), std::move(rules), settings, device));
  } catch (const std::exception& error) {
    const std::string text = Replaced(WithPrinted(error, printed), folder.path() + "/", "");
    const bool is_mount = text.find("failed to map segment") != text.npos;
    return Error::Internal(StrCat(
        text,
        is_mount ? "; the folder for temporary files does not allow programs: set TMPDIR" : ""));
  }
}

}  // namespace

Result<std::unique_ptr<const Program>> LoadCompiled(const std::string& path,
                                                    const Settings& settings, const Device& device,
                                                    const std::string& model) {
  const auto in_model = [&](Error error) {
    return Error(error.code(), StrCat("failed to load model '", model, "': ", error.message()));
  };
  auto package = Package::Read(path);
  if (!package.ok()) {
    return in_model(package.TakeError());
  }
  if (Error error = package.value().CheckDevice(device); !error.ok()) {
    return in_model(std::move(error));
  }
  if (Error error = package.value().CheckMachine(CpuFlags()); !error.ok()) {
    return in_model(std::move(error));
  }
  auto program = Load(package.value(), settings, device, model);
  if (!program.ok()) {
    return in_model(program.TakeError());
  }
  return program;
}

}  // namespace nereid::pytorch
