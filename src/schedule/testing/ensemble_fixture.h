// SPDX-License-Identifier: Apache-2.0
// Ensembles of models that the test plays.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/submitter.h"
#include "schedule/ensemble_scheduler.h"

namespace nereid::schedule {

inline constexpr size_t kSize =
    4096;  // bytes of a tensor: more than a response keeps in its own memory

inline core::ModelTensor Tensor(const std::string& name, bool is_optional = false) {
  core::ModelTensor tensor;
  tensor.name = name;
  tensor.type = tensor::DataType::kUint8;
  tensor.dims = {-1};
  tensor.model_dims = {-1};
  tensor.is_optional = is_optional;
  return tensor;
}

inline std::unique_ptr<core::Model> MakeModel(const std::string& name,
                                              std::vector<std::string> inputs,
                                              std::vector<std::string> outputs,
                                              bool decoupled = false,
                                              bool holds_resources = false) {
  core::ModelOptions options;
  options.name = name;
  options.version = 1;
  options.config = std::make_shared<config::ModelConfig>();
  options.is_decoupled = decoupled;
  options.holds_resources = holds_resources;
  for (const std::string& input : inputs) options.inputs.push_back(Tensor(input));
  for (const std::string& output : outputs) options.outputs.push_back(Tensor(output));
  return std::make_unique<core::Model>(std::move(options));
}

// Makes a response with each of the model's outputs, filled with `value`.
inline core::ResponsePtr Respond(core::Request& request, int value) {
  core::ResponsePtr response = core::Response::Create(request);
  const std::array<int64_t, 1> shape{kSize};
  for (const core::ModelTensor& output : request.model->outputs()) {
    core::ResponseOutput* added = response->AddOutput(output.name, tensor::DataType::kUint8, shape);
    EXPECT_TRUE(response->AllocateBuffer(*added, kSize, {}, false).ok());
    std::memset(added->data, value, kSize);
  }
  return response;
}

// Responds to `request` with `value` and releases it.
inline void Answer(core::RequestPtr request, int value) {
  core::ResponsePtr response = Respond(*request, value);
  Complete(std::move(request), std::move(response));
}

// Passes each request to the test's function for its model.
class FakeEngine final : public core::Submitter {
 public:
  using Behaviour = std::function<void(core::RequestPtr)>;

  void Add(std::unique_ptr<core::Model> model, Behaviour behaviour) {
    const std::string name = model->name();
    models_[name] = std::move(model);
    behaviours_[name] = std::move(behaviour);
  }
  base::Result<core::ModelHandle> PinModel(std::string_view name, int64_t /*version*/) override {
    const auto found = models_.find(std::string(name));
    if (found == models_.end()) return base::NotFoundError("no model '" + std::string(name) + "'");
    NEREID_CHECK(found->second->TryPin());
    return core::ModelHandle(*found->second);
  }
  void Submit(core::RequestPtr request) override {
    const auto& behave = behaviours_.at(request->model->name());
    behave(std::move(request));
  }
  void CancelSubmitted(core::Request& request) override {
    request.Cancel();
    if (on_cancel) on_cancel(request);
  }
  core::Model& model(const std::string& name) { return *models_.at(name); }

  std::function<void(core::Request&)> on_cancel;

 private:
  std::map<std::string, std::unique_ptr<core::Model>> models_;
  std::map<std::string, Behaviour> behaviours_;
};

// The sink of the ensemble's client.
class Client final : public core::ResponseSink {
 public:
  void Send(core::ResponsePtr response, bool is_final) override {
    EXPECT_EQ(finals, 0u);
    if (is_final) ++finals;
    if (on_response) on_response();
    if (response == nullptr) return responses.push_back(is_final ? "end" : "nothing");
    if (!response->error().ok())
      return responses.push_back(std::string(response->error().message()));
    std::string text;
    for (size_t i = 0; i < response->output_count(); ++i) {
      const core::ResponseOutput& output = response->output(i);
      text += (i > 0 ? " " : "") + std::string(output.name) + "=" +
              std::to_string(output.byte_size > 0 ? static_cast<int>(output.data[0]) : -1);
      data.push_back(output.data);
    }
    responses.push_back(text);
  }
  void OnRequestReleased(core::Request&) override { ++released; }
  void OnRequestGone() override { ++gone; }

  std::function<void()> on_response;
  std::vector<std::string> responses;
  std::vector<const std::byte*> data;
  size_t finals = 0;
  size_t released = 0;
  size_t gone = 0;
};

struct StepText {
  std::string model;
  std::map<std::string, std::string> inputs;
  std::map<std::string, std::string> outputs;
};

class EnsembleFixture : public testing::Test {
 protected:
  ~EnsembleFixture() override {
    // Everything was released.
    EXPECT_EQ(ensemble_->pin_count(), 0u);
  }

  void Make(std::vector<std::string> inputs, std::vector<std::string> outputs,
            std::vector<StepText> steps, uint32_t max_inflight_requests = 0) {
    auto config = std::make_shared<config::ModelConfig>();
    config->name = "e";
    for (const std::string& name : inputs) {
      config->input.push_back({.name = name, .dims = {-1}, .optional = name == "optional"});
    }
    for (const std::string& name : outputs) config->output.push_back({.name = name, .dims = {-1}});
    config::Ensembling ensemble;
    std::vector<StepModel> models;
    for (StepText& step : steps) {
      ensemble.step.push_back({.model_name = step.model,
                               .model_version = -1,
                               .input_map = step.inputs,
                               .output_map = step.outputs});
      if (step.model == "missing") {
        models.emplace_back();
      } else {
        const core::Model& model = engine_.model(step.model);
        models.push_back(
            {.is_decoupled = model.is_decoupled(), .holds_resources = model.holds_resources()});
      }
    }
    ensemble.max_inflight_requests = max_inflight_requests;
    config->scheduling_choice = ensemble;
    auto plan = EnsemblePlan::Compile(*config, models);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    core::ModelOptions options;
    options.name = "e";
    options.version = 1;
    options.config = config;
    options.is_decoupled = plan->is_decoupled();
    for (const std::string& input : inputs) {
      options.inputs.push_back(Tensor(input, input == "optional"));
    }
    for (const std::string& output : outputs) options.outputs.push_back(Tensor(output));
    ensemble_ = std::make_unique<core::Model>(std::move(options));
    ensemble_->SetScheduler(std::make_unique<EnsembleScheduler>(*ensemble_, std::move(plan).value(),
                                                                engine_, waits_, timers_));
  }

  core::RequestPtr Request(core::ResponseSink& client, std::vector<std::string> wanted = {}) {
    core::RequestPtr request = core::Request::Create(client);
    NEREID_CHECK(ensemble_->TryPin());
    request->model = core::ModelHandle(*ensemble_);
    for (size_t i = 0; i < ensemble_->inputs().size(); ++i) {
      if (ensemble_->inputs()[i].is_optional) continue;
      core::RequestInput& input =
          request->AddInput(ensemble_->inputs()[i].name, tensor::DataType::kUint8);
      input.shape = {kSize};
      input.model_index = static_cast<uint32_t>(i);
      input.Append({.data = data_.data(), .size = kSize, .where = {}});
    }
    for (const std::string& name : wanted) {
      request->outputs.push_back(
          {.name = name, .model_index = static_cast<uint32_t>(ensemble_->FindOutput(name))});
    }
    return request;
  }
  void Run(core::ResponseSink& client, std::vector<std::string> wanted = {}) {
    ensemble_->scheduler().Enqueue(Request(client, std::move(wanted)));
  }
  // A model that responds at once with its first input plus one.
  void AddCounting(const std::string& name, std::vector<std::string> inputs = {"I"}) {
    engine_.Add(MakeModel(name, inputs, {"O"}), [this, name](core::RequestPtr request) {
      order_.push_back(name);
      const int value =
          request->inputs.empty() ? 100 : static_cast<int>(*request->inputs[0].first.data);
      core::ResponsePtr response = Respond(*request, value + 1);
      Complete(std::move(request), std::move(response));
    });
  }
  // A model that releases its requests without a response.
  void AddSilent(const std::string& name, bool decoupled = false) {
    engine_.Add(MakeModel(name, {"I"}, {"O"}, decoupled), [](core::RequestPtr) {});
  }
  // A model whose requests wait in `held_`.
  void AddHolding(const std::string& name, bool decoupled = false) {
    engine_.Add(MakeModel(name, {"I"}, {"O"}, decoupled),
                [this](core::RequestPtr request) { held_.push_back(std::move(request)); });
  }

  base::Timers timers_;
  ProducerWaits waits_;
  FakeEngine engine_;
  std::vector<std::string> order_;
  std::vector<core::RequestPtr> held_;
  const std::vector<std::byte> data_{kSize, std::byte{7}};
  std::unique_ptr<core::Model> ensemble_;
};

}  // namespace nereid::schedule
