// SPDX-License-Identifier: Apache-2.0
// A model of a backend of test_plugin/ without an engine: it is loaded, gets requests and responds
// to a client that keeps what it receives.
#pragma once

#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend_host/backend_model.h"
#include "backend_host/testing/hosted_model_fixture.h"
#include "base/shared_library.h"
#include "config/complete.h"
#include "core/response.h"

namespace nereid::backend_host {

inline std::string PluginPath(const std::string& backend) {
  return std::string(TEST_BACKEND_DIRECTORY) + "/" + backend + "/libtriton_" + backend + ".so";
}

// Returns the plug-in's events since the last call.
inline std::string Events(const std::string& backend) {
  auto library = base::SharedLibrary::Open(PluginPath(backend));
  NEREID_CHECK(library.ok());
  std::string text(4096, '\0');
  (*library)->Find<void(char*, size_t)>("TestEvents")(text.data(), text.size());
  text.resize(std::strlen(text.c_str()));
  return text;
}

// Collects what a client would receive.
class Client final : public core::ResponseSink {
 public:
  struct Received {
    std::string error;
    std::string output;  // of OUTPUT0
    std::vector<int64_t> shape;
    std::string says;
    bool is_final = false;
    bool is_null = false;
  };

  void Send(core::ResponsePtr response, bool is_final) override {
    Received received;
    received.is_final = is_final;
    received.is_null = response == nullptr;
    if (response != nullptr) {
      received.error = response->error().message();
      if (response->output_count() > 0) {
        const core::ResponseOutput& output = response->output(0);
        received.output.assign(reinterpret_cast<const char*>(output.data), output.byte_size);
        received.shape.assign(output.shape.dims().begin(), output.shape.dims().end());
      }
      for (const core::Parameter& parameter : response->parameters()) {
        received.says = std::get<std::string_view>(parameter.value);
      }
    }
    responses.push_back(std::move(received));
  }
  void OnRequestReleased(core::Request&) override { ++released; }
  void OnRequestGone() override { ++gone; }

  std::vector<Received> responses;
  int released = 0;
  int gone = 0;
};

inline config::ModelConfig MakeConfig(const std::string& backend) {
  config::ModelConfig config;
  config.name = "model";
  config.backend = backend;
  config.max_batch_size = 4;
  config.input.push_back({.name = "INPUT0", .data_type = tensor::DataType::kFp32, .dims = {2}});
  config.output.push_back({.name = "OUTPUT0", .data_type = tensor::DataType::kFp32, .dims = {2}});
  return config::Normalize(std::move(config));
}

class BackendModelTest : public HostedModelTest {
 protected:
  BackendModelTest() { Restart({.backend_directory = TEST_BACKEND_DIRECTORY}); }
  ~BackendModelTest() override {
    Drop();
    libraries_.reset();
    Events("plain");
    Events("promising");
  }

  void Restart(BackendLibrariesOptions options) {
    libraries_.reset();
    libraries_ = std::make_unique<BackendLibraries>(std::move(options), server_);
    Events("plain");
    Events("promising");
  }

  base::Status Load(config::ModelConfig config) {
    auto loaded = BackendModel::Load(
        {.name = "model", .version = 1, .model_dir = directory_, .config = std::move(config)},
        *libraries_);
    if (!loaded.ok()) return loaded.status();
    model_ = *std::move(loaded);
    return {};
  }

  // Loads a model and makes its instances, initialised on this thread.
  base::Status Start(config::ModelConfig config) {
    NEREID_RETURN_IF_ERROR(Load(std::move(config)));
    core::ModelOptions options;
    options.name = "model";
    options.version = 1;
    options.config = std::make_shared<const config::ModelConfig>(model_->config());
    options.max_batch_size = model_->config().max_batch_size;
    for (const auto& input : model_->config().input) {
      core::ModelTensor tensor;
      tensor.name = input.name;
      options.inputs.push_back(tensor);
    }
    for (const auto& output : model_->config().output) {
      core::ModelTensor tensor;
      tensor.name = output.name;
      tensor.dims = tensor::Shape(output.dims);
      tensor.model_dims = tensor::Shape(output.reshape.value_or(output.dims));
      tensor.has_reshape = output.reshape.has_value();
      options.outputs.push_back(tensor);
    }
    core_model_ = std::make_unique<core::Model>(std::move(options));
    core_model_->SetScheduler(std::make_unique<NoScheduler>());
    NEREID_RETURN_IF_ERROR(model_->CreateInstances(*core_model_));
    for (auto& made : model_->TakeInstances()) instances_.push_back(std::move(made.instance));
    for (auto& instance : instances_) {
      if (!instance->runs_on_any_thread()) NEREID_RETURN_IF_ERROR(instance->InitializeOnThread());
    }
    return {};
  }

  core::RequestPtr MakeRequest(std::string_view id) {
    core::RequestPtr request = core::Request::Create(client_);
    NEREID_CHECK(core_model_->TryPin());
    request->model = core::ModelHandle(*core_model_);
    // Deliberately not zero-terminated.
    const std::string text = std::string(id) + "!";
    request->id = request->arena().Copy(text).substr(0, id.size());
    core::RequestInput& input = request->AddInput("INPUT0", tensor::DataType::kFp32);
    input.shape = {1, 2};
    input.Append({.data = reinterpret_cast<const std::byte*>("abcd"), .size = 4});
    input.Append({.data = reinterpret_cast<const std::byte*>("efgh"), .size = 4});
    request->batch_size = 1;
    return request;
  }

  // Executes one batch of requests with these ids on the first instance.
  void Execute(std::initializer_list<std::string_view> ids) {
    std::vector<core::RequestPtr> batch;
    for (const std::string_view id : ids) batch.push_back(MakeRequest(id));
    instances_.at(0)->Execute(batch);
  }
  const Client::Received& OnlyResponse() {
    NEREID_CHECK(client_.responses.size() == 1);
    return client_.responses[0];
  }

  Client client_;
};

}  // namespace nereid::backend_host
