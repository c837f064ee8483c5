// SPDX-License-Identifier: Apache-2.0
// The model in this process: its backend, and the one instance that executes for the server.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend_host/backend_libraries.h"
#include "backend_host/backend_model.h"
#include "backend_host/plugin_instance.h"
#include "base/mutex.h"
#include "base/status.h"
#include "isolation/channel.h"
#include "isolation/hosted_batch.h"

namespace nereid::isolation {

// What the server says in its greeting, and similar lists.
using Texts = std::map<std::string, std::string>;
// Reads keys and values that each end with a zero byte.
Texts ReadTexts(std::string_view text);

// Confined to the thread that takes the server's work, except CheckReady and Cancel.
class ModelHost {
 public:
  // Both outlive the host; backends that ask for their server get `server`.
  ModelHost(Texts greeting, Channel& channel, TRITONSERVER_Server& server);
  ~ModelHost();

  // Loads the model with this configuration (JSON). Returns the completed configuration and why it
  // was completed so, as texts after their lengths.
  base::Result<Message> Load(std::string_view config);
  // Makes the instance and initializes it.
  base::Status Initialize(const Texts& arguments);
  // Executes a batch. Returns what became of its requests.
  base::Result<Message> Execute(const Channel::Item& item);

  bool can_check_ready() const;
  base::Status CheckReady() const;
  void Cancel(uint64_t number);

 private:
  base::Status MakeModel();

  const Texts greeting_;
  Channel& channel_;
  std::unique_ptr<backend_host::BackendLibraries> libraries_;
  std::unique_ptr<backend_host::BackendModel> backend_model_;
  std::unique_ptr<core::Model> model_;
  std::unique_ptr<HostContext> context_;
  std::unique_ptr<backend_host::PluginInstance> instance_;
  std::vector<core::RequestPtr> requests_;  // of the batch in execution; keeps its memory
  base::Mutex batches_mutex_;
  // The batches that may have requests that are not gone.
  std::vector<std::shared_ptr<HostedBatch>> batches_ NEREID_GUARDED_BY(batches_mutex_);
};

}  // namespace nereid::isolation
