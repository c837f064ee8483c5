// SPDX-License-Identifier: Apache-2.0
#include "python_backend/model.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>

#include "backend_kit/missing_file.h"
#include "python_backend/json.h"

namespace nereid::python {
namespace {

namespace fs = std::filesystem;
using backend::Error;
using backend::Result;
using backend::StrCat;

// A model may take any time to complete its configuration, but a worker that hangs at its end is
// not waited for.
constexpr std::chrono::seconds kEndTimeout{5};

// Returns the folder of this library, which also contains the worker's scripts.
Result<std::string> OwnFolder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&OwnFolder), &info) == 0 || info.dli_fname == nullptr) {
    return Error::Internal("failed to find the folder of the Python backend");
  }
  std::error_code error;
  const fs::path path = fs::absolute(info.dli_fname, error);
  return path.parent_path().string();
}

// Names with these characters are refused, as in Triton; they would have no meaning here.
constexpr std::string_view kRefusedCharacters = ";|&$`<>()[]{}\\\"'*?~#!";

// Copying a smaller tensor costs less than keeping it.
constexpr uint64_t kFewestLent = uint64_t{64} << 10;
// Memory that is lent needs so many readable bytes after it.
constexpr uint64_t kLentPadding = 64;

// A part of a worker's memory that the server uses. Keeps the memory even after the worker has
// ended.
struct Lease {
  Lease(std::shared_ptr<Worker> from, BlockPool::Block lent)
      : worker(std::move(from)), block(std::move(lent)) {
    worker->memory().CountLease(1);
  }
  ~Lease() { worker->memory().CountLease(-1); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  std::shared_ptr<Worker> worker;  // destroyed last
  BlockPool::Block block;
};

bool DecoupledIn(const rapidjson::Value& config) {
  const rapidjson::Value* const policy = backend::Find(config, "model_transaction_policy");
  return policy != nullptr && backend::BoolMember(*policy, "decoupled");
}

}  // namespace

Result<std::unique_ptr<Backend>> Backend::Create(TRITONBACKEND_Backend* handle) {
  uint32_t major = 0;
  uint32_t minor = 0;
  NEREID_KIT_TRY(TRITONBACKEND_ApiVersion(&major, &minor));
  // Parameters of responses are the newest function that this backend uses.
  constexpr uint32_t kMinMinor = 17;
  if (major != TRITONBACKEND_API_VERSION_MAJOR || minor < kMinMinor) {
    return Error::Unsupported(StrCat("the Python backend needs the backend API 1.", kMinMinor,
                                     " or newer, the server has ", major, ".", minor));
  }
  auto backend = std::make_unique<Backend>();
  TRITONSERVER_Message* message = nullptr;  // owned by the server
  NEREID_KIT_TRY(TRITONBACKEND_BackendConfig(handle, &message));
  NEREID_KIT_ASSIGN(const std::string_view json, backend::MessageText(message));
  NEREID_KIT_ASSIGN(backend->settings, Settings::Parse(json));
  NEREID_KIT_ASSIGN(backend->folder, OwnFolder());
  TRITONBACKEND_ArtifactType type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  const char* location = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_BackendArtifacts(handle, &type, &location));
  std::error_code error;
  // A backend that is a folder with its own model.py, which this library runs.
  const fs::path shared_model = fs::path(location) / "model.py";
  if (!fs::equivalent(location, backend->folder, error) && fs::exists(shared_model, error)) {
    backend->model_folder = location;
  }
  backend->supervisor = std::make_unique<Supervisor>();
  backend->environments = std::make_unique<Environments>(
      *backend->supervisor, backend->folder + "/nereid_python", backend->settings.interpreter);
  return backend;
}

Result<std::unique_ptr<Model>> Model::Create(TRITONBACKEND_Model* handle, Backend& backend) {
  NEREID_KIT_ASSIGN(backend::ModelConfig config, backend::ModelConfig::Load(handle));
  std::unique_ptr<Model> model(new Model(backend, std::move(config)));
  NEREID_KIT_TRY(model->Locate(handle).Release());
  NEREID_KIT_TRY(model->ReadParameters().Release());
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
  if (NEREIDBACKEND_ModelLendInputs != nullptr && model->LendsInputs()) {
    NEREID_KIT_TRY(NEREIDBACKEND_ModelLendInputs(
        handle, kFewestLent,
        [](void* user, uint64_t size, NEREIDBACKEND_LentInput* lent) {
          return static_cast<Model*>(user)->Lend(size, lent);
        },
        model.get()));
  }
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

void Model::AddLender(const std::string& instance, const std::shared_ptr<Worker>& worker) {
  const backend::MutexLock lock(lenders_mutex_);
  lenders_[instance] = worker;
}

std::shared_ptr<Worker> Model::FindLender() {
  std::shared_ptr<Worker> found;
  const backend::MutexLock lock(lenders_mutex_);
  for (const auto& [instance, lender] : lenders_) {
    std::shared_ptr<Worker> worker = lender.lock();
    if (worker == nullptr || !worker->is_alive()) continue;
    if (found == nullptr || worker->memory().lease_count() < found->memory().lease_count())
      found = std::move(worker);
  }
  return found;
}

bool Model::Lend(uint64_t size, NEREIDBACKEND_LentInput* lent) {
  std::shared_ptr<Worker> worker = FindLender();
  if (worker == nullptr) return false;
  auto block = worker->memory().inputs().Allocate(size + kLentPadding);
  if (!block.ok()) {
    block.TakeError().Ignore();
    return false;
  }
  auto* const lease = new Lease(std::move(worker), std::move(block).value());
  lent->buffer = lease->block.payload();
  lent->release = [](void* user) { delete static_cast<Lease*>(user); };
  lent->user = lease;
  return true;
}

std::string Model::config_text() const {
  rapidjson::StringBuffer text;
  rapidjson::Writer<rapidjson::StringBuffer> writer(text);
  config_.json().Accept(writer);
  return {text.GetString(), text.GetSize()};
}

Result<std::shared_ptr<Worker>> Model::StartWorker(const std::string& name,
                                                   Worker::CallHandler on_call,
                                                   Worker::DeathHandler on_death) const {
  rapidjson::StringBuffer greeting;
  rapidjson::Writer<rapidjson::StringBuffer> writer(greeting);
  const auto add = [&writer](const char* key, const std::string& value) {
    writer.Key(key);
    writer.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  };
  writer.StartObject();
  add("name", name);
  add("model_file", file_);
  add("model_dir", StrCat(repository_, "/", version_));
  add("version", std::to_string(version_));
  add("backend_dir", backend_.folder);
  // Users must not depend on where files lie that came with a load request or out of an archive:
  // errors name the model, or the archive.
  const bool is_temporary = repository_.find("/nereid-tmp-") != std::string::npos;
  add("hidden_model", is_temporary ? repository_ : "");
  add("shown_model", name_);
  add("hidden_environment", environment_.folder == nullptr ? "" : environment_.folder->path());
  add("shown_environment", environment_.archive);
  writer.Key("shares_model_file");
  writer.Bool(!backend_.model_folder.empty());
  writer.Key("is_decoupled");
  writer.Bool(is_decoupled_);
  writer.Key("server_pid");
  writer.Int(getpid());
  writer.EndObject();
  WorkerOptions options{.command = {.arguments = {environment_.interpreter,
                                                  backend_.folder + "/nereid_python/worker.py"},
                                    .environment = environment_.variables},
                        .greeting = greeting.GetString(),
                        .name = name,
                        .start_timeout = backend_.settings.start_timeout};
  return Worker::Start(*backend_.supervisor, std::move(options), std::move(on_call),
                       std::move(on_death));
}

}  // namespace nereid::python
