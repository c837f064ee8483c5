// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/model.h"

#include <filesystem>

#include "backend_kit/handles.h"
#include "backend_kit/location.h"
#include "backend_kit/missing_file.h"
#include "tensorrt_backend/profile_choice.h"

namespace nereid::tensorrt {

using backend::Error;
using backend::ModelConfig;
using backend::Result;
using backend::StrCat;

namespace {

// The first device of a group of instances on GPUs; -1 if the first group is not on GPUs.
int FirstDevice(const ModelConfig& config) {
  const auto groups = backend::ArrayOf(config.json(), "instance_group");
  if (groups.Empty()) {
    return -1;
  }
  const std::string_view kind = backend::StringMember(groups[0], "kind");
  if (kind == "KIND_MODEL") {
    return 0;
  }
  const std::vector<int64_t> gpus = backend::DimsMember(groups[0], "gpus");
  return kind == "KIND_GPU" && !gpus.empty() ? static_cast<int>(gpus[0]) : -1;
}

Error Prefixed(const std::string& model, const Error& error) {
  return Error(error.code(), StrCat("failed to load model '", model, "': ", error.message()));
}

}  // namespace

Result<std::unique_ptr<Backend>> Backend::Create(TRITONBACKEND_Backend* handle) {
  TRITONSERVER_Message* message = nullptr;
  NEREID_KIT_TRY(TRITONBACKEND_BackendConfig(handle, &message));  // owned by the server
  NEREID_KIT_ASSIGN(const std::string_view json, backend::MessageText(message));
  NEREID_KIT_ASSIGN(const BackendSettings settings, BackendSettings::FromJson(json));
  return std::unique_ptr<Backend>(new Backend(settings));
}

Result<std::shared_ptr<const Driver>> Backend::GetDriver() {
  const backend::MutexLock lock(mutex_);
  if (driver_ == nullptr) {
    NEREID_KIT_ASSIGN(driver_, Driver::Open());
  }
  return driver_;
}

Result<std::shared_ptr<const Library>> Backend::LibraryFor(const PlanHeader& plan) {
  NEREID_KIT_ASSIGN(std::shared_ptr<const Library> library, libraries_.For(plan));
  const backend::MutexLock lock(mutex_);
  OpenPlugins();
  return library;
}

void Backend::OpenPlugins() {
  // Their layers register themselves in TensorRT when they are opened, so it must be open before.
  for (const std::string& plugin : plugins_) {
    auto opened = OpenedLibrary::Open(plugin);
    if (!opened.ok()) {
      backend::LogIfError(opened.TakeError(), "unable to load plugin library");
    }
  }
  plugins_.clear();
}

Result<std::unique_ptr<Model>> Model::Create(TRITONBACKEND_Model* handle, Backend& backend) {
  NEREID_KIT_ASSIGN(const backend::ModelLocation location, backend::Locate(handle));
  NEREID_KIT_ASSIGN(ModelConfig config, ModelConfig::Load(handle));
  NEREID_KIT_ASSIGN(Settings settings, Settings::FromConfig(config));
  std::unique_ptr<Model> model(new Model(backend, location.name, location.version_folder,
                                         std::move(config), std::move(settings)));
  NEREID_KIT_TRY(model->CheckPlans());
  auto driver = backend.GetDriver();
  if (!driver.ok()) {
    return Prefixed(model->name_, driver.TakeError());
  }
  model->driver_ = std::move(driver).value();
  bool auto_complete = false;
  NEREID_KIT_TRY(TRITONBACKEND_ModelAutoCompleteConfig(handle, &auto_complete));
  if (auto_complete && FirstDevice(model->config_) >= 0) {
    NEREID_KIT_TRY(model->AutoComplete(handle));
  }
  NEREID_KIT_ASSIGN(model->ports_, backend::Ports::FromConfig(model->config_));
  return model;
}

Result<std::string> Model::PlanPath(const std::string& filename) const {
  const std::filesystem::path path = std::filesystem::path(folder_) / filename;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return Error::Unavailable(StrCat("unable to find '", path.string(), "' for model '", name_,
                                     "'.", backend::FoundInstead(path)));
  }
  return path.string();
}

Error Model::CheckPlans() const {
  std::vector<std::string> filenames;
  for (const auto& [capability, filename] : settings_.filenames_by_capability) {
    filenames.push_back(filename);
  }
  // Whether this one is needed depends on the devices, once other names are given.
  if (filenames.empty()) {
    filenames.push_back(settings_.model_filename);
  }
  for (const std::string& filename : filenames) {
    NEREID_KIT_ASSIGN(const std::string path, PlanPath(filename));
    auto header = ReadPlanHeader(path);
    if (!header.ok()) {
      return Prefixed(name_, header.TakeError());
    }
  }
  return {};
}

Error Model::AutoComplete(TRITONBACKEND_Model* handle) {
  NEREID_KIT_ASSIGN(const std::shared_ptr<const Engine> engine, EngineOn(FirstDevice(config_), -1));
  NEREID_KIT_ASSIGN(const std::vector<int> profiles,
                    ProfilesOf(config_, engine->profile_count(), name_));
  NEREID_KIT_TRY(Complete(*engine, profiles, name_, &config_));
  NEREID_KIT_TRY(config_.Store(handle));
  // The server adds defaults to the stored configuration.
  NEREID_KIT_ASSIGN(config_, ModelConfig::Load(handle));
  return {};
}

Result<std::shared_ptr<const Engine>> Model::EngineOn(int device, int dla_core) {
  const backend::MutexLock lock(mutex_);
  std::shared_ptr<const Engine>& engine = engines_[{device, dla_core}];
  if (engine == nullptr) {
    auto loaded = Load(device, dla_core);
    if (!loaded.ok()) {
      return Prefixed(name_, loaded.TakeError());
    }
    engine = std::move(loaded).value();
  }
  return engine;
}

Result<std::shared_ptr<const Engine>> Model::Load(int device, int dla_core) {
  NEREID_KIT_ASSIGN(const Capability capability, driver_->CapabilityOf(device));
  NEREID_KIT_ASSIGN(const std::string path, PlanPath(settings_.FilenameFor(capability)));
  NEREID_KIT_ASSIGN(const PlanHeader header, ReadPlanHeader(path));
  NEREID_KIT_ASSIGN(std::shared_ptr<const Library> library, backend_.LibraryFor(header));
  NEREID_KIT_ASSIGN(std::shared_ptr<const Engine> engine,
                    Engine::Load(library, {.driver = driver_, .id = device}, dla_core,
                                 {path, header, backend_.is_version_compatible()}, logger_));
  backend::LogInfo(StrCat("model '", name_, "' is loaded on GPU ", device, " (compute capability ",
                          capability.text(), ") by TensorRT ", library->version(), " (",
                          library->name(), "), ", engine->profile_count(), " optimization profiles",
                          engine->is_refittable() ? ", refittable" : ""));
  return engine;
}

}  // namespace nereid::tensorrt
