// SPDX-License-Identifier: Apache-2.0
#include "python_backend/model.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "backend_kit/missing_file.h"
#include "isolation_profile/program.h"
#include "python_backend/json.h"
#include "python_backend/json_object.h"

namespace nereid::python {
namespace {

namespace fs = std::filesystem;
using backend::Error;
using backend::Result;
using backend::StrCat;

// A model may take any time to complete its configuration, but a worker that hangs at its end is
// not waited for.
constexpr std::chrono::seconds kEndTimeout{5};

// Names with these characters are refused, as in Triton; they would have no meaning here.
constexpr std::string_view kRefusedCharacters = ";|&$`<>()[]{}\\\"'*?~#!";

bool DecoupledIn(const rapidjson::Value& config) {
  const rapidjson::Value* const policy = backend::Find(config, "model_transaction_policy");
  return policy != nullptr && backend::BoolMember(*policy, "decoupled");
}

}  // namespace

Result<std::unique_ptr<Model>> Model::Create(TRITONBACKEND_Model* handle, Backend& backend) {
  NEREID_KIT_ASSIGN(backend::ModelConfig config, backend::ModelConfig::Load(handle));
  std::unique_ptr<Model> model(new Model(backend, std::move(config)));
  NEREID_KIT_TRY(model->Locate(handle).Release());
  NEREID_KIT_TRY(model->ReadParameters().Release());
  model->deaths_ = backend::NewModelCounter(backend.deaths.get(), handle);
  NEREID_KIT_TRY(model->ReadIsolation().Release());
  if (Error error(TRITONBACKEND_ModelServer(handle, &model->server_)); !error.ok()) {
    model->server_ = nullptr;
  }
  model->is_decoupled_ = DecoupledIn(model->config_.json());
  bool completes = false;
  NEREID_KIT_TRY(TRITONBACKEND_ModelAutoCompleteConfig(handle, &completes));
  if (completes) NEREID_KIT_TRY(model->Complete(handle).Release());
  model->is_decoupled_ = DecoupledIn(model->config_.json());
  NEREID_KIT_ASSIGN(model->outputs_, OutputRules::Create(model->name_, model->config_,
                                                         backend.settings.checks_outputs));
  if (model->LendsInputs()) NEREID_KIT_TRY(model->lenders_.Offer(handle).Release());
  return model;
}

Error Model::Locate(TRITONBACKEND_Model* handle) {
  const char* name = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_ModelName(handle, &name));
  name_ = name;
  if (name_.find_first_of(kRefusedCharacters) != std::string::npos) {
    return Error::InvalidArgument("Invalid stub name: contains invalid characters");
  }
  NEREID_KIT_TRY(TRITONBACKEND_ModelVersion(handle, &version_));
  TRITONBACKEND_ArtifactType type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  const char* location = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_ModelRepository(handle, &type, &location));
  if (type != TRITONBACKEND_ARTIFACT_FILESYSTEM) {
    return Error::Unsupported(StrCat("unsupported artifact type for model '", name_, "'"));
  }
  repository_ = location;
  if (!backend_.model_folder.empty()) {
    file_ = backend_.model_folder + "/model.py";
    return {};
  }
  const std::string_view given = backend::StringMember(config_.json(), "default_model_filename");
  const std::string file(given.empty() ? "model.py" : given);
  file_ = StrCat(repository_, "/", version_, "/", file);
  std::error_code error;
  if (!fs::exists(file_, error)) {
    return Error::Internal(
        StrCat("Failed to preinitialize Python stub: Python model file not found in '", file_, "'.",
               backend::FoundInstead(file_)));
  }
  const fs::path plain = fs::path(file).lexically_normal();
  if (plain.is_absolute() || *plain.begin() == "..") {
    return Error::InvalidArgument(StrCat("default_model_filename '", file, "' of model '", name_,
                                         "' leads outside the model directory"));
  }
  return {};
}

Error Model::ReadParameters() {
  const std::string environment = config_.Parameter("EXECUTION_ENV_PATH").value_or("");
  if (!environment.empty()) {
    backend::LogInfo(StrCat("Using Python execution env ", environment));
  }
  NEREID_KIT_ASSIGN(environment_, backend_.environments->Get(environment, repository_));
  const std::string cpu_only = config_.Parameter("FORCE_CPU_ONLY_INPUT_TENSORS").value_or("yes");
  if (cpu_only != "yes" && cpu_only != "no") {
    return Error::Unsupported(
        StrCat("Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: ", cpu_only, "'"));
  }
  std::error_code error;
  if (fs::exists(repository_ + "/triton_python_backend_stub", error)) {
    backend::LogWarning(StrCat("model '", name_,
                               "' brings a triton_python_backend_stub, which is not "
                               "needed here: any Python interpreter can run a model"));
  }
  return {};
}

Error Model::ReadIsolation() {
  if (config_.Parameter("isolation").value_or("none") != "process") return {};
  Isolation wanted;
  NEREID_KIT_ASSIGN(wanted.settings, isolation::Settings::Parse(config_));
  NEREID_KIT_ASSIGN(wanted.program, isolation::FindProgram());
  NEREID_KIT_ASSIGN(wanted.temporary, TemporaryFolder::Create());
  isolation_ = std::move(wanted);
  return {};
}

Command Model::WorkerCommand(const std::string& name) const {
  Command command{
      .arguments = {environment_.interpreter, backend_.folder + "/nereid_python/worker.py"},
      .environment = environment_.variables};
  if (!isolation_) return command;
  // The interpreter is where its environment is, and where links from there lead.
  std::error_code error;
  const fs::path given(environment_.interpreter);
  const fs::path real = fs::canonical(given, error);
  isolation::ModelPlaces places;
  places.model = repository_;
  places.readable = {backend_.folder, backend_.model_folder,
                     given.parent_path().parent_path().string(),
                     real.parent_path().parent_path().string()};
  places.temporary = isolation_->temporary->path();
  SetVariable(command.environment, "TMPDIR", places.temporary);
  command.arguments.insert(command.arguments.begin(),
                           {isolation_->program, isolation::kProgramMode, name,
                            isolation_->settings.ConfinementFor(places)});
  return command;
}

Error Model::Complete(TRITONBACKEND_Model* handle) {
  NEREID_KIT_ASSIGN(const std::shared_ptr<Worker> worker,
                    StartWorker(
                        name_,
                        [](const std::shared_ptr<Worker>& from, const CallBlock& call) {
                          if (call.kind == Call::kLog) return Release(call.header);
                          Reply(from->blocks(), call.header, Outcome::kError,
                                "this is not possible in auto_complete_config");
                        },
                        [] {}));
  if (Error error = worker->WaitForHello(); !error.ok()) {
    worker->Stop(std::chrono::steady_clock::now());
    return error;
  }
  auto completed = worker->work().RunText(Work::kComplete, config_text());
  if (completed.ok() && completed.value().empty()) {
    {
      const backend::MutexLock lock(spare_mutex_);
      spare_ = worker;
    }
    // Tells the server that a model without any configuration is meant to be so.
    return config_.Store(handle);
  }
  if (completed.ok()) worker->work().RunText(Work::kFinalize, "").ok();
  worker->Stop(std::chrono::steady_clock::now() +
               (completed.ok() ? kEndTimeout : std::chrono::seconds(0)));
  if (!completed.ok()) return completed.TakeError();
  if (auto checked = ParseObject(completed.value(),
                                 "Failed to parse auto-complete JSON: its objects", kConfigJson);
      !checked.ok()) {
    return checked.TakeError();
  }
  auto config = backend::ModelConfig::Parse(completed.value());
  if (!config.ok()) return Error::Internal("Failed to parse auto-complete JSON.");
  NEREID_KIT_TRY(config.value().Store(handle).Release());
  NEREID_KIT_ASSIGN(config_, backend::ModelConfig::Load(handle));
  return {};
}

Model::~Model() {
  if (spare_ != nullptr) spare_->Stop(std::chrono::steady_clock::now());
}

Result<std::shared_ptr<Worker>> Model::GetWorker(const std::string& name,
                                                 Worker::CallHandler on_call,
                                                 Worker::DeathHandler on_death) {
  std::shared_ptr<Worker> spare;
  {
    const backend::MutexLock lock(spare_mutex_);
    spare.swap(spare_);
  }
  // A load must not fail because the spare worker has ended meanwhile.
  if (spare == nullptr || !spare->is_alive()) {
    return StartWorker(name, std::move(on_call), std::move(on_death));
  }
  spare->Adopt(name, std::move(on_call), std::move(on_death));
  return spare;
}

// A sequence may get the same request again, unchanged. Texts are checked, so they must be where no
// worker can change them. HTTP, which requests such memory, does not do so for decoupled models.
bool Model::LendsInputs() const {
  if (is_decoupled_ || backend::Find(config_.json(), "sequence_batching") != nullptr) return false;
  const rapidjson::Value* const inputs = backend::Find(config_.json(), "input");
  if (inputs == nullptr || !inputs->IsArray()) return false;
  return std::ranges::none_of(inputs->GetArray(), [](const rapidjson::Value& input) {
    return backend::StringMember(input, "data_type") == "TYPE_STRING";
  });
}

std::string Model::config_text() const { return backend::JsonText(config_.json()); }

std::string Model::Arguments(const std::string& instance, const std::string& kind,
                             int32_t device) const {
  JsonObject arguments;
  arguments.Add("model_config", config_text());
  arguments.Add("model_instance_kind", kind);
  arguments.Add("model_instance_name", instance);
  arguments.Add("model_instance_device_id", std::to_string(device));
  arguments.Add("model_repository", repository_);
  arguments.Add("model_version", std::to_string(version_));
  arguments.Add("model_name", name_);
  return arguments.Text();
}

Result<std::shared_ptr<Worker>> Model::StartWorker(const std::string& name,
                                                   Worker::CallHandler on_call,
                                                   Worker::DeathHandler on_death) const {
  JsonObject greeting;
  greeting.Add("name", name);
  greeting.Add("model_file", file_);
  greeting.Add("model_dir", StrCat(repository_, "/", version_));
  greeting.Add("version", std::to_string(version_));
  greeting.Add("backend_dir", backend_.folder);
  // Users must not depend on where files lie that came with a load request or out of an archive:
  // errors name the model, or the archive.
  const bool is_temporary = repository_.find("/nereid-tmp-") != std::string::npos;
  greeting.Add("hidden_model", is_temporary ? repository_ : "");
  greeting.Add("shown_model", name_);
  greeting.Add("hidden_environment",
               environment_.folder == nullptr ? "" : environment_.folder->path());
  greeting.Add("shown_environment", environment_.archive);
  greeting.Add("shares_model_file", !backend_.model_folder.empty());
  greeting.Add("is_decoupled", is_decoupled_);
  greeting.Add("server_pid", getpid());
  WorkerOptions options{.command = WorkerCommand(name),
                        .greeting = greeting.Text(),
                        .name = name,
                        .start_timeout = backend_.settings.start_timeout};
  return Worker::Start(*backend_.supervisor, std::move(options), std::move(on_call),
                       std::move(on_death));
}

}  // namespace nereid::python
