// SPDX-License-Identifier: Apache-2.0
#include "isolation_backend/model.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "backend_kit/completion.h"
#include "isolation_backend/records.h"
#include "isolation_profile/confinement_text.h"
#include "isolation_profile/program.h"
#include "nereid/backend_completion.h"
#include "python_backend/decode.h"

namespace nereid::isolation {

using backend::Error;
using backend::Result;
using backend::StrCat;
using python::Outcome;
using python::Reader;
using python::Work;
using python::Worker;
using Clock = std::chrono::steady_clock;

namespace {

constexpr uint64_t kMaxExplanations = 64;

// Reads the code and the text of an error of the backend.
Error ReadRefusal(std::span<const char> payload) {
  const std::span<const char> kept =
      payload.first(std::min<size_t>(payload.size(), python::kMaxMessage));
  std::string text(kept.begin(), kept.end());
  if (text.empty()) return Error::Internal("the backend failed without a message");
  const int code = text[0] - kFirstCode;
  text.erase(0, 1);
  const bool is_known = code >= 0 && code <= TRITONSERVER_ERROR_CANCELLED;
  return {is_known ? static_cast<TRITONSERVER_Error_Code>(code) : TRITONSERVER_ERROR_INTERNAL,
          text};
}

bool DecoupledIn(const rapidjson::Value& config) {
  const rapidjson::Value* const policy = backend::Find(config, "model_transaction_policy");
  return policy != nullptr && backend::BoolMember(*policy, "decoupled");
}

}  // namespace

Result<std::string> RunText(Worker& worker, Work work, std::string_view text,
                            Clock::time_point deadline) {
  NEREID_KIT_ASSIGN(const python::BlockPool::Block block, worker.blocks().Allocate(text.size()));
  std::memcpy(block.payload(), text.data(), text.size());
  block.Share();
  NEREID_KIT_ASSIGN(const python::WorkResult result,
                    worker.work().Run(work, block, text.size(), deadline));
  if (result.outcome != Outcome::kOk) return ReadRefusal(result.payload);
  if (result.payload.size() > python::kMaxText) {
    return Error::Internal(StrCat("a worker's text is longer than ", python::kMaxText, " bytes"));
  }
  return std::string(result.payload.begin(), result.payload.end());
}

Result<std::unique_ptr<Model>> Model::Create(TRITONBACKEND_Model* handle, Backend& backend) {
  NEREID_KIT_ASSIGN(backend::ModelConfig config, backend::ModelConfig::Load(handle));
  std::unique_ptr<Model> model(new Model(backend, std::move(config)));
  NEREID_KIT_ASSIGN(model->settings_, Settings::Parse(model->config_));
  NEREID_KIT_TRY(model->Locate(handle).Release());
  model->deaths_ = backend::NewModelCounter(backend.deaths.get(), handle);
  NEREID_KIT_TRY(model->Complete(handle).Release());
  model->is_decoupled_ = DecoupledIn(model->config_.json());
  return model;
}

Model::~Model() {
  const backend::MutexLock lock(spare_mutex_);
  if (spare_ != nullptr) spare_->Stop(Clock::now());
}

Error Model::Locate(TRITONBACKEND_Model* handle) {
  const char* name = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_ModelName(handle, &name));
  name_ = name;
  NEREID_KIT_TRY(TRITONBACKEND_ModelVersion(handle, &version_));
  TRITONBACKEND_ArtifactType type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  const char* location = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_ModelRepository(handle, &type, &location));
  folder_ = location;
  backend_name_ = backend::StringMember(config_.json(), "backend");
  NEREID_KIT_ASSIGN(temporary_, python::TemporaryFolder::Create());
  return {};
}

std::string Model::config_text() const { return backend::JsonText(config_.json()); }

Error Model::Complete(TRITONBACKEND_Model* handle) {
  rapidjson::Document given;
  given.CopyFrom(config_.json(), given.GetAllocator());
  // A limit of 0 that is there only because none was written would forbid the backend to find out.
  NEREID_KIT_ASSIGN(const bool gives_limit, backend::GivesMaxBatchSize(handle));
  if (!gives_limit) given.RemoveMember("max_batch_size");
  given_config_ = backend::JsonText(given);
  const auto ignore = [](const std::shared_ptr<Worker>&, const python::CallBlock& call) {
    python::Release(call.header);
  };
  NEREID_KIT_ASSIGN(std::shared_ptr<Worker> worker, StartWorker(name_, ignore, [] {}));
  Error error = worker->WaitForHello();
  if (error.ok()) {
    auto completion = RunText(*worker, Work::kComplete, given_config_);
    error = completion.ok() ? TakeCompletion(handle, completion.value()) : completion.TakeError();
  }
  if (!error.ok()) {
    worker->Stop(Clock::now());
    return error;
  }
  const backend::MutexLock lock(spare_mutex_);
  spare_ = std::move(worker);
  return {};
}

Error Model::TakeCompletion(TRITONBACKEND_Model* handle, const std::string& completion) {
  Reader reader(completion);
  const std::string_view text = reader.SizedText();
  const auto explanations = reader.Read<uint64_t>();
  for (uint64_t i = 0; i < std::min(explanations, kMaxExplanations) && reader.ok(); ++i) {
    const std::string subject(reader.SizedText());
    const std::string json(reader.SizedText());
    NEREID_KIT_TRY(NEREIDBACKEND_ModelExplain(handle, subject.c_str(), json.c_str()));
  }
  if (!reader.ok()) return Error::Internal("an isolated model's configuration was cut short");
  bool completes = false;
  NEREID_KIT_TRY(TRITONBACKEND_ModelAutoCompleteConfig(handle, &completes));
  if (!completes) return {};
  NEREID_KIT_ASSIGN(const backend::ModelConfig completed, backend::ModelConfig::Parse(text));
  NEREID_KIT_TRY(completed.Store(handle).Release());
  NEREID_KIT_ASSIGN(config_, backend::ModelConfig::Load(handle));
  return {};
}

Error Model::Load(Worker& worker) const {
  auto loaded = RunText(worker, Work::kComplete, given_config_);
  return loaded.ok() ? Error() : loaded.TakeError();
}

Result<Model::Made> Model::GetWorker(const std::string& name, Worker::CallHandler on_call,
                                     Worker::DeathHandler on_death) {
  std::shared_ptr<Worker> spare;
  {
    const backend::MutexLock lock(spare_mutex_);
    spare.swap(spare_);
  }
  if (spare != nullptr && spare->is_alive()) {
    spare->Adopt(name, std::move(on_call), std::move(on_death));
    return Made{std::move(spare), true};
  }
  NEREID_KIT_ASSIGN(std::shared_ptr<Worker> worker,
                    StartWorker(name, std::move(on_call), std::move(on_death)));
  return Made{std::move(worker), false};
}

// The server looks for a library in the same places.
std::string Model::InstalledLibrary() const {
  namespace fs = std::filesystem;
  std::error_code error;
  const std::string given(backend::StringMember(config_.json(), "runtime"));
  const std::string file = given.empty() ? StrCat("libtriton_", backend_name_, ".so") : given;
  for (const std::string& folder : {StrCat(folder_, "/", version_), folder_}) {
    if (fs::exists(folder + "/" + file, error)) return {};
  }
  return StrCat(backend_.backends, "/", backend_name_, "/", file);
}

std::string Model::ConfinementText() const {
  const std::filesystem::path program(backend_.program);
  ModelPlaces places;
  places.model = folder_;
  places.readable = {backend_.backends, program.string(),
                     (program.parent_path().parent_path() / "lib").string()};
  places.temporary = temporary_->path();
  // The code of a library that comes with the model is as little trusted as the model.
  if (std::string library = InstalledLibrary(); !library.empty()) {
    places.libraries.push_back(std::move(library));
  }
  return settings_.ConfinementFor(places);
}

Result<std::shared_ptr<Worker>> Model::StartWorker(const std::string& name,
                                                   Worker::CallHandler on_call,
                                                   Worker::DeathHandler on_death) const {
  TextList greeting('\0');
  greeting.Add(key::kServerPid, std::to_string(getpid()));
  greeting.Add(key::kModel, name_);
  greeting.Add(key::kVersion, std::to_string(version_));
  greeting.Add(key::kFolder, folder_);
  greeting.Add(key::kBackend, backend_name_);
  greeting.Add(key::kSettings, backend_.SettingsOf(backend_name_));
  std::vector<std::string> environment = python::CurrentEnvironment();
  python::SetVariable(environment, "TMPDIR", temporary_->path());
  python::WorkerOptions options{
      .command = {.arguments = {backend_.program, kProgramMode, name, ConfinementText()},
                  .environment = std::move(environment)},
      .greeting = greeting.text(),
      .name = name,
      .what = kProcess};
  return Worker::Start(*backend_.supervisor, std::move(options), std::move(on_call),
                       std::move(on_death));
}

}  // namespace nereid::isolation
