// SPDX-License-Identifier: Apache-2.0
// The models of SageMaker's multi-model mode: the platform unpacks archives below /opt/ml/models
// and names each with a hash; here they become models of the server. Each is linked into a folder
// that is one of the server's repositories, and loaded from there.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "service/service.h"

namespace nereid::cloud {

// Where the platform's models are, and where they are linked.
struct SagemakerModelOptions {
  std::string archives = "/opt/ml/models";  // where the platform unpacks
  std::string links;                        // a repository of the server that only this object uses
};

// The loaded models. Thread-safe.
class SagemakerModels {
 public:
  // `service` outlives this object.
  SagemakerModels(SagemakerModelOptions options, service::Service& service)
      : options_(std::move(options)), service_(service) {}

  // A loaded model by both of its names.
  struct Model {
    std::string name;    // the platform's: a hash
    std::string target;  // the server's name
    std::string url;     // the archive as a repository, as reported to the platform
  };

  // Loads the model at `url` as `target`. AlreadyExists if there is one of either name. Blocks.
  base::Status Load(const std::string& name, const std::string& url, const std::string& target);
  // Returns the result, or nothing if there is no model of that name. Blocks.
  std::optional<base::Status> Unload(const std::string& name);
  // Returns nothing if it is not loaded.
  std::optional<Model> Find(const std::string& name) const;
  // Returns the models that can serve.
  std::vector<Model> List() const;

 private:
  // A loaded model, and the links made for it.
  struct Entry {
    Model model;
    std::vector<std::string> links;
    bool is_settled = false;  // neither being loaded nor unloaded
  };
  struct Archive;

  base::Result<Archive> Open(const std::string& url) const;
  base::Status LoadArchive(const Archive& archive, Entry& entry);
  base::Status Link(const std::string& folder, const std::string& name, Entry& entry) const;
  void RemoveLinks(const Entry& entry) const;

  const SagemakerModelOptions options_;
  service::Service& service_;
  mutable base::Mutex mutex_;
  std::map<std::string, Entry> entries_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::cloud
