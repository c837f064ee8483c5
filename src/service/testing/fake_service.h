// SPDX-License-Identifier: Apache-2.0
// A server of one model "m" that responds to every request with its own inputs, for the tests of
// frontends. A test that needs something else sets `on_infer`.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/model.h"
#include "core/response.h"
#include "service/service.h"

namespace nereid::service {

// A model whose input i ("IN<i>") and output i ("OUT<i>") have the i-th type and the dims [-1].
inline std::unique_ptr<core::Model> MakeModel(const std::vector<tensor::DataType>& types,
                                              int64_t max_batch_size = 0,
                                              bool is_decoupled = false) {
  core::ModelOptions options;
  options.name = "m";
  options.version = 3;
  options.config = std::make_shared<config::ModelConfig>();
  options.max_batch_size = max_batch_size;
  options.is_decoupled = is_decoupled;
  for (size_t i = 0; i < types.size(); ++i) {
    core::ModelTensor tensor;
    tensor.type = types[i];
    tensor.dims = tensor.model_dims = tensor::Shape({-1});
    tensor.name = "IN" + std::to_string(i);
    options.inputs.push_back(tensor);
    tensor.name = "OUT" + std::to_string(i);
    tensor.labels = {"zero", "one"};
    options.outputs.push_back(tensor);
  }
  return std::make_unique<core::Model>(std::move(options));
}

inline core::ModelHandle Pin(core::Model& model) {
  model.TryPin();
  return core::ModelHandle(model);
}

// Every input as the output of the same position.
inline core::ResponsePtr Echo(core::Request& request) {
  core::ResponsePtr response = core::Response::Create(request);
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const core::RequestInput& input = request.inputs[i];
    core::ResponseOutput* const output = response->AddOutput(
        "OUT" + std::string(input.name.substr(2)), input.type, input.shape.dims());
    if (!response->AllocateBuffer(*output, input.byte_size, {}, false).ok()) continue;
    size_t offset = 0;
    for (size_t c = 0; c < input.chunk_count(); ++c) {
      const core::DataChunk& chunk = input.chunk(c);
      if (chunk.size > 0) std::memcpy(output->data + offset, chunk.data, chunk.size);
      offset += chunk.size;
    }
  }
  return response;
}

class FakeService final : public Service {
 public:
  explicit FakeService(std::unique_ptr<core::Model> model) : model_(std::move(model)) {}

  std::function<void(core::RequestPtr)> on_infer = [](core::RequestPtr request) {
    core::ResponseSink& sink = request->sink();
    core::ResponsePtr response = Echo(*request);
    request.reset();
    sink.Send(std::move(response), true);
  };
  std::function<void(core::Request&)> on_cancel = [](core::Request&) {};
  // Null: the model has no rules for its requests.
  std::function<void(core::Request&)> on_direct;
  // Gets those who wait for the model while it is not loaded. Null: it is not loaded on demand.
  std::function<void(ModelWaiter)> on_await;
  bool is_loaded = true;
  bool is_ready = true;
  HealthChecks checks;                 // of everything
  observe::Tracing* traces = nullptr;  // null: the server cannot trace

  bool IsLive() const override { return true; }
  bool IsReady() const override { return is_ready; }
  HealthChecks CheckLiveness() const override { return checks; }
  HealthChecks CheckReadiness() const override { return checks; }
  base::Result<HealthChecks> CheckModel(std::string_view, std::string_view) override {
    return checks;
  }
  const ServerMetadata& metadata() const override { return metadata_; }
  base::Result<core::ModelHandle> FindModel(std::string_view name,
                                            std::string_view /*version*/) override {
    if (name != "m" || !is_loaded) {
      return base::NotFoundError("Request for unknown model: '" + std::string(name) +
                                 "' is not found");
    }
    core::ModelHandle model = Pin(*model_);
    if (on_direct) model.SetRoute(core::ModelHandle::kFollowsRules);
    return model;
  }
  bool LoadsOnDemand(std::string_view /*name*/) override { return on_await != nullptr; }
  void AwaitModel(std::string_view /*name*/, std::string_view /*version*/,
                  ModelWaiter done) override {
    on_await(std::move(done));
  }
  base::Result<bool> IsModelReady(std::string_view name, std::string_view version) override {
    const auto model = FindModel(name, version);
    if (!model.ok()) return model.status();
    return is_ready;
  }
  base::Result<ModelMetadata> DescribeModel(std::string_view name,
                                            std::string_view version) override {
    const auto model = FindModel(name, version);
    if (!model.ok()) return model.status();
    return ModelMetadata{.name = "m",
                         .versions = {"1", "3"},
                         .platform = "p",
                         .inputs = {{"IN0", tensor::DataType::kFp32, {-1, 16}}},
                         .outputs = {}};
  }
  base::Result<std::shared_ptr<const config::ModelConfig>> GetModelConfig(
      std::string_view name, std::string_view version) override {
    const auto model = FindModel(name, version);
    if (!model.ok()) return model.status();
    auto config = std::make_shared<config::ModelConfig>();
    config->name = "m";
    return std::shared_ptr<const config::ModelConfig>(std::move(config));
  }
  base::Result<std::vector<ModelStatistics>> ReadStatistics(std::string_view name,
                                                            std::string_view version) override {
    if (name != "m") {
      return base::InvalidArgumentError("requested model '" + std::string(name) +
                                        "' is not available");
    }
    core::StatisticsSnapshot statistics;
    statistics.inference_count = 3;
    statistics.execution_count = 2;
    statistics.last_inference_ms = 7;
    statistics.success = {2, 90};
    statistics.batches[2].compute_infer = {1, 40};
    statistics.responses[0] = {
        .compute_infer = {1, 10}, .compute_output = {1, 5}, .success = {1, 15}};
    return std::vector<ModelStatistics>{
        {"m", version.empty() ? "1" : std::string(version), statistics}};
  }
  std::vector<IndexEntry> RepositoryIndex(bool only_ready) override {
    if (only_ready) return {{.name = "m", .version = "3", .state = "READY"}};
    return {{.name = "m", .version = "3", .state = "READY"},
            {.name = "bad", .version = "1", .state = "UNAVAILABLE", .reason = "broken"},
            {.name = "never"}};
  }
  // What was asked for, as "load m config=... file:<path>=<content>" and "unload m dependents".
  std::vector<std::string> operations;
  base::Status LoadModel(std::string_view name, const LoadOptions& options) override {
    std::string text = "load " + std::string(name);
    if (options.config) text += " config=" + *options.config;
    for (const auto& file : options.files) text += " file:" + file.path + "=" + file.content;
    operations.push_back(text);
    if (name == "m") return base::OkStatus();
    return base::InternalError("failed to load '" + std::string(name) + "'");
  }
  base::Status UnloadModel(std::string_view name, bool unload_dependents) override {
    operations.push_back("unload " + std::string(name) + (unload_dependents ? " dependents" : ""));
    return base::OkStatus();
  }
  void RunBlocking(base::UniqueFunction<void()> work) override { work(); }
  void Infer(core::RequestPtr request) override { on_infer(std::move(request)); }
  void Direct(core::Request& request, const HeaderLookup& /*header*/) override {
    request.model.SetRoute(0);
    on_direct(request);
  }
  void Cancel(core::Request& request) override {
    request.Cancel();
    on_cancel(request);
  }
  memory::RegionTable& regions() override { return regions_; }
  observe::Tracing* tracing() override { return traces; }
  std::string MetricsText() override { return "# HELP x\nx 1\n"; }
  std::string plugin_metrics;  // the lines of every family
  std::string PluginMetricsText(const std::string& /*family*/) override { return plugin_metrics; }

  core::Model& model() { return *model_; }

 private:
  const std::unique_ptr<core::Model> model_;
  memory::RegionTable regions_{true};
  const ServerMetadata metadata_{"triton", "2.73.0", {"classification", "sequence"}};
};

}  // namespace nereid::service
