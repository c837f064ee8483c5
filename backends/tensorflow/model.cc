// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/model.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "backend_kit/completion.h"
#include "backend_kit/handles.h"
#include "backend_kit/location.h"
#include "backend_kit/missing_file.h"
#include "tensorflow_backend/batch_trial.h"
#include "tensorflow_backend/binding.h"
#include "tensorflow_backend/completion.h"
#include "tensorflow_backend/types.h"

namespace nereid::tensorflow {

using backend::BatchVerdict;
using backend::Error;
using backend::ModelConfig;
using backend::Ports;
using backend::Result;
using backend::StrCat;

namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultSignature = "serving_default";

Error FailedToLoad(const std::string& model, const Error& error) {
  return Error(error.code(), StrCat("failed to load model '", model, "': ", error.message()));
}

std::string Joined(const std::vector<std::string>& texts, const char* between) {
  std::string all;
  for (const std::string& text : texts) {
    all += all.empty() ? text : between + text;
  }
  return all;
}

bool HasTags(const MetaGraph& graph, std::vector<std::string> tags) {
  std::vector<std::string> has = graph.tags;
  std::sort(has.begin(), has.end());
  std::sort(tags.begin(), tags.end());
  return has == tags;
}

// Signatures that TensorFlow itself runs when it loads or trains a model.
bool IsInternal(const std::string& name) { return name.starts_with("__saved_model_"); }

// Chooses the signature that the user names; otherwise the default one, or another if there is
// none.
Result<Signature> ChooseSignature(const MetaGraph& graph, const std::string& wanted,
                                  const std::string& model) {
  const auto& all = graph.signatures;
  auto found = all.find(wanted.empty() ? kDefaultSignature : wanted);
  if (found == all.end() && wanted.empty()) {
    found = std::find_if(all.begin(), all.end(),
                         [](const auto& entry) { return !IsInternal(entry.first); });
    if (found != all.end()) {
      backend::LogWarning(StrCat("model '", model, "': unable to find serving signature '",
                                 kDefaultSignature, "', using signature '", found->first, "'"));
    }
  }
  if (found != all.end()) {
    return found->second;
  }
  std::vector<std::string> names;
  for (const auto& [name, signature] : all) {
    if (!IsInternal(name)) {
      names.push_back(name);
    }
  }
  return Error::InvalidArgument(StrCat(
      "unable to load model '", model, "', expected '", wanted.empty() ? kDefaultSignature : wanted,
      "' signature; the file has ", names.empty() ? "none" : Joined(names, ", ")));
}

// A SavedModel that was copied without its folder of variables would load, and no request would
// work.
Error CheckVariables(const MetaGraph& graph, const Signature& signature, const fs::path& folder) {
  constexpr const char* kIndex = "variables/variables.index";
  std::error_code ignored;
  if (!graph.has_values || fs::exists(folder / kIndex, ignored)) {
    return {};
  }
  std::vector<std::string> places;
  for (const auto& [name, info] : signature.outputs) {
    places.push_back(info.place);
  }
  const std::set<std::string> operations = graph.graph.OperationsOf(places);
  for (const char* reads : {"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableV2"}) {
    if (operations.contains(reads)) {
      return Error::InvalidArgument(StrCat("'", folder.string(), "' has no ", kIndex,
                                           ", and so no values for the variables of its graph"));
    }
  }
  return {};
}

Result<std::vector<std::string>> ParseInitOps(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file) {
    return Error::Unavailable(StrCat("'", path.string(), "' cannot be read"));
  }
  const std::string what = StrCat("file '", path.string(), "'");
  NEREID_KIT_ASSIGN(const rapidjson::Document json, backend::ParseJson(text, what.c_str()));
  const rapidjson::Value* list = backend::Find(json, "init_ops");
  if (list == nullptr || !list->IsArray()) {
    return Error::InvalidArgument(StrCat("the ", what, " has no list 'init_ops'"));
  }
  std::vector<std::string> names;
  for (const rapidjson::Value& name : list->GetArray()) {
    if (!name.IsString()) {
      return Error::InvalidArgument(
          StrCat("the ", what, " has something in 'init_ops' that is no name of an operation"));
    }
    names.emplace_back(name.GetString(), name.GetStringLength());
  }
  return names;
}

// A GraphDef does not say what its inputs and outputs are; a user needs to know what could be.
Error CheckListed(const Ports& ports, const Graph& graph, const std::string& model) {
  if (!ports.outputs.empty()) {
    return {};
  }
  const auto quoted = [](const std::string& name, const std::string& more) {
    return StrCat("'", name, "'", more);
  };
  std::vector<std::string> inputs;
  for (const auto& [name, info] : graph.Placeholders()) {
    inputs.push_back(quoted(name, StrCat(" (", TheirName(info.type), ")")));
  }
  std::vector<std::string> outputs;
  for (const std::string& name : graph.LastNodes()) {
    outputs.push_back(quoted(name, ""));
  }
  constexpr size_t kMaxListed = 20;
  inputs.resize(std::min(inputs.size(), kMaxListed));
  outputs.resize(std::min(outputs.size(), kMaxListed));
  return Error::InvalidArgument(
      StrCat("the configuration of model '", model,
             "' has no outputs, which a GraphDef does not tell: list inputs and outputs in "
             "config.pbtxt; the graph has the placeholders ",
             Joined(inputs, ", "), " and ends with ", Joined(outputs, ", ")));
}

}  // namespace

Result<std::unique_ptr<Model>> Model::Create(TRITONBACKEND_Model* handle, Backend& backend) {
  NEREID_KIT_ASSIGN(const backend::ModelLocation location, backend::Locate(handle));
  NEREID_KIT_ASSIGN(ModelConfig config, ModelConfig::Load(handle));
  NEREID_KIT_ASSIGN(Settings settings,
                    Settings::FromConfig(config, backend.flags(), location.name));
  std::unique_ptr<Model> model(
      new Model(backend, location.name, location.folder, std::move(config), std::move(settings)));
  NEREID_KIT_TRY(model->ReadFile(location.version_folder));
  bool auto_complete = false;
  NEREID_KIT_TRY(TRITONBACKEND_ModelAutoCompleteConfig(handle, &auto_complete));
  if (auto_complete && !model->settings_.is_graph_def) {
    NEREID_KIT_TRY(model->AutoComplete(handle));
  }
  NEREID_KIT_ASSIGN(model->ports_, Ports::FromConfig(model->config_));
  OpenScalars(model->ports_, model->config_.max_batch_size(), &model->signature_);
  NEREID_KIT_TRY(model->CheckConfig());
  model->operations_ = model->OperationsOf();
  model->graph_ = {};
  return model;
}

Error Model::ReadFile(const std::string& version_folder) {
  const fs::path path = fs::path(version_folder) / settings_.model_filename;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    return Error::Unavailable(StrCat("unable to find '", path.string(), "' for model instance '",
                                     name_, "'.", backend::FoundInstead(path)));
  }
  spec_ = {.is_graph_def = settings_.is_graph_def,
           .path = path.string(),
           .tags = settings_.is_graph_def ? std::vector<std::string>() : settings_.tags,
           .config = settings_.session_config,
           .init_ops = {}};
  if (!settings_.init_ops_file.empty()) {
    NEREID_KIT_TRY(ReadInitOps(version_folder));
  }
  if (!settings_.is_graph_def) {
    return ReadSavedModelGraph();
  }
  auto graph = ReadGraphDef(spec_.path);
  if (!graph.ok()) {
    return FailedToLoad(name_, graph.TakeError());
  }
  graph_ = std::move(graph).value();
  return {};
}

Error Model::ReadSavedModelGraph() {
  auto read = ReadSavedModel(spec_.path);
  if (!read.ok()) {
    return FailedToLoad(name_, read.TakeError());
  }
  std::vector<MetaGraph>& graphs = read.value();
  std::vector<std::string> known;
  for (MetaGraph& graph : graphs) {
    if (HasTags(graph, settings_.tags)) {
      NEREID_KIT_ASSIGN(signature_, ChooseSignature(graph, settings_.signature, name_));
      if (const Error error = CheckVariables(graph, signature_, spec_.path); !error.ok()) {
        return FailedToLoad(name_, error);
      }
      graph_ = std::move(graph.graph);
      return {};
    }
    known.push_back(StrCat("'", Joined(graph.tags, ","), "'"));
  }
  return Error::InvalidArgument(StrCat("unable to load model '", name_, "', expected '",
                                       Joined(settings_.tags, ","), "' tag; the file has ",
                                       Joined(known, ", ")));
}

Error Model::ReadInitOps(const std::string& version_folder) {
  fs::path path = fs::path(version_folder) / settings_.init_ops_file;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    path = fs::path(folder_) / settings_.init_ops_file;
  }
  auto names = ParseInitOps(path);
  if (!names.ok()) {
    return FailedToLoad(name_, names.TakeError());
  }
  spec_.init_ops = std::move(names).value();
  return {};
}

Error Model::AutoComplete(TRITONBACKEND_Model* handle) {
  NEREID_KIT_ASSIGN(const BatchVerdict verdict, ChooseBatching(handle));
  const int64_t size = config_.max_batch_size();
  const bool changes_size = size == 0 && verdict.is_batched;
  if (!changes_size && !NeedsCompletion(config_, signature_)) {
    return {};
  }
  if (size > 0 && !CanBatchAsConfigured(signature_)) {
    return Error::Internal(StrCat("unable to autofill for '", name_,
                                  "', configuration specified max-batch ", size,
                                  " but model signature does not support batching"));
  }
  if (changes_size) {
    config_.SetMaxBatchSize(backend_.flags().default_max_batch_size);
  }
  NEREID_KIT_TRY(Complete(signature_, name_, &config_));
  NEREID_KIT_TRY(config_.Store(handle));
  // The server adds defaults to the stored configuration.
  NEREID_KIT_ASSIGN(config_, ModelConfig::Load(handle));
  return {};
}

Result<BatchVerdict> Model::ChooseBatching(TRITONBACKEND_Model* handle) {
  NEREID_KIT_ASSIGN(const bool is_given, backend::GivesMaxBatchSize(handle));
  NEREID_KIT_ASSIGN(const BatchHint hint, HintOf(config_, signature_, name_));
  BatchVerdict verdict;
  if (const int64_t size = config_.max_batch_size(); is_given || size != 0) {
    verdict = {.is_batched = size > 0,
               .reason = "configured",
               .text = StrCat("max_batch_size is ", size, " in the configuration")};
  } else if (backend_.flags().default_max_batch_size <= 0) {
    verdict = BatchVerdict::No("default_max_batch_size", "default-max-batch-size is 0");
  } else if (!CanBatch(signature_)) {
    verdict = BatchVerdict::No(backend::kFixedDimension, "not all first dimensions are variable");
  } else if (hint != BatchHint::kNone) {
    verdict = {.is_batched = hint == BatchHint::kBatched,
               .reason = "configured",
               .text = StrCat("dimensions in the configuration are ",
                              hint == BatchHint::kBatched ? "without" : "with", " the first one")};
  } else {
    NEREID_KIT_ASSIGN(verdict, TryOut());
    backend::LogInfo(StrCat("model '", name_, "' is ", verdict.is_batched ? "" : "not ",
                            "batched (", verdict.text,
                            "); max_batch_size in its configuration would decide otherwise"));
  }
  NEREID_KIT_TRY(backend::Explain(handle, "batching", verdict.ToJson()));
  return verdict;
}

Result<BatchVerdict> Model::TryOut() {
  if (const auto refusal = RefuseTrial(signature_)) {
    return *refusal;
  }
  NEREID_KIT_ASSIGN(const std::shared_ptr<Session> session, LoadSession(0));
  Bound bound;
  for (const auto& [name, info] : signature_.inputs) {
    bound.inputs.push_back(info);
  }
  std::vector<std::string> outputs;
  for (const auto& [name, info] : signature_.outputs) {
    bound.outputs.push_back(info);
    outputs.push_back(info.place);
  }
  for (const auto* list : {&bound.inputs, &bound.outputs}) {
    for (const TensorInfo& info : *list) {
      if (!session->Find(info.place)) {
        return BatchVerdict::No("does_not_run", StrCat("'", info.place, "' is not in the graph"));
      }
    }
  }
  if (session->MayKeep(graph_.OperationsOf(outputs))) {
    return BatchVerdict::No("does_not_run",
                            "the model has a state that it changes, so it is not tried out");
  }
  return TryBatches(signature_, *session->NewRequest(bound),
                    backend_.flags().default_max_batch_size);
}

Error Model::CheckConfig() const {
  if (!settings_.is_graph_def) {
    return CheckSignature(ports_, signature_, config_.max_batch_size(), name_);
  }
  NEREID_KIT_TRY(CheckNodes(ports_, graph_, name_));
  return CheckListed(ports_, graph_, name_);
}

std::set<std::string> Model::OperationsOf() const {
  std::vector<std::string> places;
  for (const backend::OutputPort& port : ports_.outputs) {
    places.push_back(settings_.is_graph_def ? port.name : signature_.outputs.at(port.name).place);
  }
  return graph_.OperationsOf(places);
}

Result<std::shared_ptr<Session>> Model::LoadSession(int index) {
  {
    const backend::MutexLock lock(mutex_);
    if (first_ != nullptr && (!settings_.share_count || index < *settings_.share_count)) {
      return first_;
    }
  }
  NEREID_KIT_ASSIGN(Runtime* const runtime, SharedRuntime());
  for (const std::string& library : settings_.libraries) {
    NEREID_KIT_TRY(runtime->LoadOperations(library));
  }
  // With a limit, sessions are not shared with other models either.
  const std::string group = settings_.share_count ? StrCat(reinterpret_cast<uintptr_t>(this), ".",
                                                           index / *settings_.share_count)
                                                  : std::string();
  auto session = backend_.sessions().Get(*runtime, spec_, group);
  if (!session.ok()) {
    return FailedToLoad(name_, session.TakeError());
  }
  const backend::MutexLock lock(mutex_);
  if (first_ == nullptr) {
    first_ = session.value();
  }
  return session;
}

Result<BoundSession> Model::SessionForInstance() {
  int index = 0;
  {
    const backend::MutexLock lock(mutex_);
    index = instances_++;
  }
  BoundSession result;
  NEREID_KIT_ASSIGN(result.session, LoadSession(index));
  NEREID_KIT_ASSIGN(result.bound, Bind(ports_, signature(), *result.session, name_));
  result.bound.keeps_inputs = result.session->MayKeep(operations_);
  return result;
}

}  // namespace nereid::tensorflow
