// SPDX-License-Identifier: Apache-2.0
#include "tensorflow_backend/model.h"

#include "backend_kit/completion.h"
#include "backend_kit/location.h"
#include "backend_kit/memory_use.h"
#include "tensorflow_backend/batch_trial.h"
#include "tensorflow_backend/binding.h"
#include "tensorflow_backend/completion.h"

namespace nereid::tensorflow {

using backend::BatchVerdict;
using backend::Error;
using backend::ModelConfig;
using backend::Ports;
using backend::Result;
using backend::StrCat;

Result<std::unique_ptr<Model>> Model::Create(TRITONBACKEND_Model* handle, Backend& backend) {
  NEREID_KIT_ASSIGN(const backend::ModelLocation location, backend::Locate(handle));
  NEREID_KIT_ASSIGN(ModelConfig config, ModelConfig::Load(handle));
  NEREID_KIT_ASSIGN(Settings settings,
                    Settings::FromConfig(config, backend.flags(), location.name));
  std::unique_ptr<Model> model(
      new Model(handle, backend, location.name, std::move(config), std::move(settings)));
  const ModelPlace place{.folder = location.folder, .version_folder = location.version_folder};
  NEREID_KIT_ASSIGN(model->file_, ModelFile::Read(place, model->settings_, model->name_));
  model->weight_bytes_ = model->file_.graph.weight_bytes;
  bool auto_complete = false;
  NEREID_KIT_TRY(TRITONBACKEND_ModelAutoCompleteConfig(handle, &auto_complete));
  if (auto_complete && !model->settings_.is_graph_def) {
    NEREID_KIT_TRY(model->AutoComplete(handle));
  }
  NEREID_KIT_ASSIGN(model->ports_, Ports::FromConfig(model->config_));
  OpenScalars(model->ports_, model->config_.max_batch_size(), &model->file_.signature);
  NEREID_KIT_TRY(model->CheckConfig());
  model->operations_ = model->OperationsOf();
  model->file_.graph = {};
  return model;
}

Error Model::AutoComplete(TRITONBACKEND_Model* handle) {
  NEREID_KIT_ASSIGN(const BatchVerdict verdict, ChooseBatching(handle));
  const int64_t size = config_.max_batch_size();
  if (const auto unbatched = FindUnbatched(file_.signature); size > 0 && unbatched) {
    return Error::Internal(StrCat("unable to autofill for '", name_,
                                  "', configuration specified max-batch ", size,
                                  " but model signature does not support batching: the first "
                                  "dimension of '",
                                  *unbatched, "' is not variable"));
  }
  if (size == 0 && verdict.is_batched) {
    config_.SetMaxBatchSize(backend_.flags().default_max_batch_size);
  }
  NEREID_KIT_TRY(Complete(file_.signature, name_, &config_));
  NEREID_KIT_TRY(config_.Store(handle));
  // The server adds defaults to the stored configuration.
  NEREID_KIT_ASSIGN(config_, ModelConfig::Load(handle));
  return {};
}

Result<BatchVerdict> Model::ChooseBatching(TRITONBACKEND_Model* handle) {
  NEREID_KIT_ASSIGN(const bool is_given, backend::GivesMaxBatchSize(handle));
  NEREID_KIT_ASSIGN(const BatchHint hint, HintOf(config_, file_.signature, name_));
  BatchVerdict verdict;
  if (const int64_t size = config_.max_batch_size(); is_given || size != 0) {
    verdict = {.is_batched = size > 0,
               .reason = "configured",
               .text = StrCat("max_batch_size is ", size, " in the configuration")};
  } else if (backend_.flags().default_max_batch_size <= 0) {
    verdict = BatchVerdict::No("default_max_batch_size", "default-max-batch-size is 0");
  } else if (!CanBatch(file_.signature)) {
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
  if (const auto refusal = RefuseTrial(file_.signature)) {
    return *refusal;
  }
  Bound bound;
  for (const auto& [name, info] : file_.signature.inputs) {
    bound.inputs.push_back(info);
  }
  std::vector<std::string> outputs;
  for (const auto& [name, info] : file_.signature.outputs) {
    bound.outputs.push_back(info);
    outputs.push_back(info.place);
  }
  NEREID_KIT_ASSIGN(Runtime* const runtime, OpenRuntime());
  if (runtime->MayChangeState(file_.graph.OperationsOf(outputs))) {
    return BatchVerdict::No("does_not_run",
                            "the model has a state that it changes, so it is not tried out");
  }
  NEREID_KIT_ASSIGN(const std::shared_ptr<Session> session,
                    LoadSession(*runtime, 0, settings_.share_count));
  for (const auto* list : {&bound.inputs, &bound.outputs}) {
    for (const TensorInfo& info : *list) {
      if (!session->Find(info.place)) {
        return BatchVerdict::No("does_not_run", StrCat("'", info.place, "' is not in the graph"));
      }
    }
  }
  return TryBatches(file_.signature, *session->NewRequest(bound),
                    backend_.flags().default_max_batch_size);
}

Error Model::CheckConfig() const {
  if (!settings_.is_graph_def) {
    return CheckSignature(ports_, file_.signature, config_.max_batch_size(), name_);
  }
  NEREID_KIT_TRY(CheckNodes(ports_, file_.graph, name_));
  return CheckListed(ports_, file_.graph, name_);
}

std::set<std::string> Model::OperationsOf() const {
  std::vector<std::string> places;
  for (const backend::OutputPort& port : ports_.outputs) {
    places.push_back(settings_.is_graph_def ? port.name
                                            : file_.signature.outputs.at(port.name).place);
  }
  return file_.graph.OperationsOf(places);
}

Result<Runtime*> Model::OpenRuntime() const {
  NEREID_KIT_ASSIGN(Runtime* const runtime, SharedRuntime());
  for (const std::string& library : settings_.libraries) {
    NEREID_KIT_TRY(runtime->LoadOperations(library));
  }
  return runtime;
}

Result<std::shared_ptr<Session>> Model::LoadSession(Runtime& runtime, int index,
                                                    std::optional<int> share_count) {
  {
    const backend::MutexLock lock(mutex_);
    if (first_ != nullptr && (!share_count || index < *share_count)) {
      return first_;
    }
  }
  // With a limit, sessions are not shared with other models either.
  const std::string group =
      share_count ? StrCat(reinterpret_cast<uintptr_t>(this), ".", index / *share_count)
                  : std::string();
  auto session = backend_.sessions().Get(runtime, file_.spec, group);
  if (!session.ok()) {
    return FailedToLoad(name_, session.TakeError());
  }
  const backend::MutexLock lock(mutex_);
  if (first_ == nullptr) {
    first_ = session.value();
  }
  ReportMemory(session.value());
  return session;
}

void Model::ReportMemory(const std::shared_ptr<Session>& session) {
  std::erase_if(sessions_, [&](const std::weak_ptr<Session>& known) {
    const auto alive = known.lock();
    return alive == nullptr || alive == session;
  });
  sessions_.push_back(session);
  const backend::MemoryUse use{.bytes = weight_bytes_ * sessions_.size()};
  backend::LogIfError(backend::ReportMemoryUse(handle_, {&use, 1}), "memory of the model");
}

Result<BoundSession> Model::SessionForInstance() {
  int index = 0;
  {
    const backend::MutexLock lock(mutex_);
    index = instances_++;
  }
  NEREID_KIT_ASSIGN(Runtime* const runtime, OpenRuntime());
  const bool changes_state = runtime->MayChangeState(operations_);
  // A session keeps what its runs change, so sequences on different instances would change it for
  // each other.
  const bool is_own =
      changes_state && backend::Find(config_.json(), "sequence_batching") != nullptr;
  const std::optional<int> share_count =
      settings_.share_count || !is_own ? settings_.share_count : 1;
  BoundSession result;
  NEREID_KIT_ASSIGN(result.session, LoadSession(*runtime, index, share_count));
  NEREID_KIT_ASSIGN(result.bound, Bind(ports_, signature(), *result.session, name_));
  result.bound.changes_state = changes_state;
  result.bound.changes_in_place =
      changes_state && (operations_.contains("Variable") || operations_.contains("VariableV2"));
  return result;
}

}  // namespace nereid::tensorflow
