// SPDX-License-Identifier: Apache-2.0
#include "isolation/model_host.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>

#include "base/log.h"
#include "config/parse.h"
#include "config/print.h"
#include "isolation_profile/confinement_text.h"

namespace nereid::isolation {
namespace {

// How long requests that have ended may take to be released before the model is unloaded.
constexpr std::chrono::seconds kMaxReleaseTime{2};

using backend_host::BackendModel;
using backend_host::PluginInstance;

// The parameter, and the setting, that brought the model here.
const std::string kIsolation = "isolation";

std::string TextOf(const Texts& texts, const std::string& key) {
  const auto found = texts.find(key);
  return found == texts.end() ? std::string() : found->second;
}

// Takes back requests that the backend wants to have executed once more; no other request gets
// here.
class Rescheduler final : public core::Scheduler {
 public:
  explicit Rescheduler(const config::ModelConfig& config) {
    const auto* const batching = config.sequence_batching();
    may_reschedule_ = batching != nullptr && batching->iterative_sequence;
  }
  void Enqueue(core::RequestPtr request) override {
    core::CompleteWithError(std::move(request),
                            base::UnavailableError("an isolated model has no queue of its own"));
  }
  void OnCancelled(core::Request&) override {}
  bool Reschedule(core::RequestPtr& request) override {
    if (!may_reschedule_) return false;
    auto& hosted = static_cast<HostedRequest&>(request->sink());
    hosted.Reschedule(std::move(request));
    return true;
  }
  bool Stop(base::TimePoint) override { return true; }

 private:
  bool may_reschedule_ = false;
};

// The shapes are those of the model: the server has applied `reshape` to inputs, and applies it to
// outputs.
core::ModelOptions Describe(const BackendModel& backend) {
  const config::ModelConfig& config = backend.config();
  core::ModelOptions options;
  options.name = backend.name();
  options.version = backend.version();
  options.config = std::make_shared<const config::ModelConfig>(config);
  options.max_batch_size = config.max_batch_size;
  options.is_decoupled = config.is_decoupled();
  for (const config::ModelInput& input : config.input) {
    core::ModelTensor& tensor = options.inputs.emplace_back();
    tensor.name = input.name;
    tensor.type = input.data_type;
    tensor.dims.Assign(input.dims);
    tensor.model_dims.Assign(input.reshape.value_or(input.dims));
  }
  for (const config::ModelOutput& output : config.output) {
    core::ModelTensor& tensor = options.outputs.emplace_back();
    tensor.name = output.name;
    tensor.type = output.data_type;
    tensor.dims.Assign(output.dims);
    tensor.model_dims.Assign(output.reshape.value_or(output.dims));
  }
  return options;
}

// The server sends the values of states with each request, so their first values do not matter.
base::Result<std::shared_ptr<const core::StatePlan>> PlanStates(const config::ModelConfig& config) {
  if (config.sequence_batching() == nullptr || config.sequence_batching()->state.empty()) {
    return std::shared_ptr<const core::StatePlan>();
  }
  config::SequenceBatching batching = *config.sequence_batching();
  for (auto& state : batching.state) state.initial_state.clear();
  return core::StatePlan::Compile(batching, config.max_batch_size, {});
}

TRITONSERVER_InstanceGroupKind KindOf(const std::string& number) {
  return static_cast<TRITONSERVER_InstanceGroupKind>(std::atoi(number.c_str()));
}

}  // namespace

Texts ReadTexts(std::string_view text) {
  Texts texts;
  const auto next = [&text] {
    const size_t end = std::min(text.find('\0'), text.size());
    std::string taken(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    return taken;
  };
  while (!text.empty()) {
    std::string key = next();
    texts.insert_or_assign(std::move(key), next());
  }
  return texts;
}

ModelHost::ModelHost(Texts greeting, Channel& channel, TRITONSERVER_Server& server)
    : greeting_(std::move(greeting)), channel_(channel) {
  const std::string backend = TextOf(greeting_, key::kBackend);
  // A list within a list has other separators.
  std::string list = TextOf(greeting_, key::kSettings);
  std::ranges::replace(list, kSeparator, '\0');
  Texts settings = ReadTexts(list);
  // Here the backend itself is wanted.
  settings.erase(kIsolation);
  libraries_ = std::make_unique<backend_host::BackendLibraries>(
      backend_host::BackendLibrariesOptions{
          .backend_directory = TextOf(settings, "backend-directory"),
          .backend_settings = {{backend, settings}},
          .host_policies = {},
          .auto_complete_config = TextOf(settings, "auto-complete-config") == "true",
          .min_compute_capability =
              std::strtod(TextOf(settings, "min-compute-capability").c_str(), nullptr),
          .gpus = nullptr},
      server);
}

ModelHost::~ModelHost() {
  if (model_ != nullptr) {
    // A thread of the backend may have responded, and not have released the request yet.
    const auto drained = std::make_shared<std::promise<void>>();
    model_->Close([drained] { drained->set_value(); });
    if (drained->get_future().wait_for(kMaxReleaseTime) == std::future_status::timeout) {
      NEREID_LOG(kWarning, "the backend has not released all requests");
    }
  }
  instance_.reset();
  model_.reset();
  backend_model_.reset();
}

base::Result<Message> ModelHost::Load(std::string_view config) {
  backend_host::BackendModelOptions options;
  options.name = TextOf(greeting_, key::kModel);
  options.version = std::strtoll(TextOf(greeting_, key::kVersion).c_str(), nullptr, 10);
  options.model_dir = TextOf(greeting_, key::kFolder);
  NEREID_ASSIGN_OR_RETURN(options.config, config::ParseModelConfigJson(config));
  options.config.parameters.erase(kIsolation);
  NEREID_ASSIGN_OR_RETURN(backend_model_, BackendModel::Load(std::move(options), *libraries_));
  NEREID_RETURN_IF_ERROR(MakeModel());
  NEREID_ASSIGN_OR_RETURN(const std::string completed, config::ToJson(backend_model_->config()));
  Message result;
  result.AppendSized(completed);
  result.Append(uint64_t{backend_model_->explanations().size()});
  for (const auto& [subject, json] : backend_model_->explanations()) {
    result.AppendSized(subject);
    result.AppendSized(json);
  }
  return result;
}

base::Status ModelHost::MakeModel() {
  model_ = std::make_unique<core::Model>(Describe(*backend_model_));
  model_->SetScheduler(std::make_unique<Rescheduler>(backend_model_->config()));
  context_ = std::make_unique<HostContext>(HostContext{channel_, *model_, nullptr});
  NEREID_ASSIGN_OR_RETURN(context_->states, PlanStates(backend_model_->config()));
  return {};
}

base::Status ModelHost::Initialize(const Texts& arguments) {
  backend_host::PluginInstanceOptions options;
  options.name = TextOf(arguments, "name");
  options.kind = KindOf(TextOf(arguments, "kind"));
  options.device_id = std::atoi(TextOf(arguments, "device").c_str());
  options.host_policy = TextOf(arguments, "host_policy");
  for (const auto& [key, value] : arguments) {
    if (key.starts_with("profile")) options.profiles.push_back(value);
  }
  instance_ = std::make_unique<PluginInstance>(*backend_model_, *model_, std::move(options));
  return instance_->Initialize();
}

base::Result<Message> ModelHost::Execute(const Channel::Item& item) {
  auto read = HostedBatch::Read(*context_, item, requests_);
  if (!read.ok()) return read.status();
  const std::shared_ptr<HostedBatch> batch = *std::move(read);
  {
    const base::MutexLock lock(batches_mutex_);
    std::erase_if(batches_, [](const auto& other) { return other->is_gone(); });
    batches_.push_back(batch);
  }
  instance_->Execute(requests_);
  requests_.clear();
  return batch->Close();
}

bool ModelHost::can_check_ready() const {
  return backend_model_->library().entry_points().instance_ready != nullptr;
}

base::Status ModelHost::CheckReady() const { return instance_->CheckReady(); }

void ModelHost::Cancel(uint64_t number) {
  const base::MutexLock lock(batches_mutex_);
  for (const auto& batch : batches_) {
    if (batch->Cancel(number)) return;
  }
}

}  // namespace nereid::isolation
