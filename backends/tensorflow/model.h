// SPDX-License-Identifier: Apache-2.0
// A model of the backend: its configuration, what its file says, and the session that its instances
// share.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend_kit/batch_rule.h"
#include "backend_kit/config.h"
#include "backend_kit/mutex.h"
#include "backend_kit/ports.h"
#include "tensorflow_backend/model_file.h"
#include "tensorflow_backend/program.h"
#include "tensorflow_backend/sessions.h"
#include "tensorflow_backend/settings.h"

namespace nereid::tensorflow {

// What all models of the backend share. Thread-safe.
class Backend {
 public:
  static backend::Result<std::unique_ptr<Backend>> Create(TRITONBACKEND_Backend* handle);

  const CommandLine& flags() const { return flags_; }
  Sessions& sessions() { return sessions_; }

 private:
  explicit Backend(const CommandLine& flags) : flags_(flags) {}

  const CommandLine flags_;
  Sessions sessions_;
};

// A session with what the configuration takes of it. Immutable.
struct BoundSession {
  std::shared_ptr<Session> session;
  Bound bound;
};

// A model. Thread-safe: instances may be initialised concurrently.
class Model {
 public:
  // Reads the configuration and the file, completes the configuration if the server permits, and
  // checks that both fit. `backend` outlives the model.
  static backend::Result<std::unique_ptr<Model>> Create(TRITONBACKEND_Model* handle,
                                                        Backend& backend);

  // Returns the session for one more instance, loading it if nobody has it yet.
  backend::Result<BoundSession> SessionForInstance();

  const backend::ModelConfig& config() const { return config_; }
  const backend::Ports& ports() const { return ports_; }

 private:
  Model(TRITONBACKEND_Model* handle, Backend& backend, std::string name,
        backend::ModelConfig config, Settings settings)
      : handle_(handle),
        backend_(backend),
        name_(std::move(name)),
        config_(std::move(config)),
        settings_(std::move(settings)) {}

  const Signature* signature() const { return settings_.is_graph_def ? nullptr : &file_.signature; }

  backend::Error AutoComplete(TRITONBACKEND_Model* handle);
  backend::Result<backend::BatchVerdict> ChooseBatching(TRITONBACKEND_Model* handle);
  // Tries batches of all tensors of the signature.
  backend::Result<backend::BatchVerdict> TryOut();
  backend::Error CheckConfig() const;

  // Returns TensorFlow with the operations that the model brings.
  backend::Result<Runtime*> OpenRuntime() const;
  // Returns the session for instance number `index`, or for no instance. At most `share_count`
  // instances share one.
  backend::Result<std::shared_ptr<Session>> LoadSession(Runtime& runtime, int index,
                                                        std::optional<int> share_count);
  // What the outputs depend on.
  std::set<std::string> OperationsOf() const;

  // Notes that the model uses the session, and reports the memory of all that it uses.
  void ReportMemory(const std::shared_ptr<Session>& session) NEREID_KIT_REQUIRES(mutex_);

  TRITONBACKEND_Model* const handle_;
  Backend& backend_;
  const std::string name_;
  backend::ModelConfig config_;  // constant after Create, like the following
  const Settings settings_;
  ModelFile file_;  // its graph only while the model is created
  std::set<std::string> operations_;
  uint64_t weight_bytes_ = 0;  // of one session
  backend::Ports ports_;

  backend::Mutex mutex_;
  int instances_ NEREID_KIT_GUARDED_BY(mutex_) = 0;
  // Kept while the model is, so that its instances come and go without loading.
  std::shared_ptr<Session> first_ NEREID_KIT_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<Session>> sessions_ NEREID_KIT_GUARDED_BY(mutex_);
};

}  // namespace nereid::tensorflow
