// SPDX-License-Identifier: Apache-2.0
// One model of a repository as the rules of a check see it, and where they report to.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "check/finding.h"
#include "config/errors.h"
#include "config/model_config.h"
#include "config/text_diagnosis.h"
#include "config/validate.h"
#include "repository/store.h"

namespace nereid::check {

// What a check assumes about the server that will load the repository.
struct CheckOptions {
  std::vector<std::string> repositories;
  bool disable_auto_complete = false;  // --disable-auto-complete-config
  bool has_namespaces = false;         // --model-namespacing
  std::string model_config_name;       // --model-config-name
  std::string backend_directory;       // empty: any backend may be installed
  std::string agent_directory;         // empty: any repository agent may be installed
  config::GpuSupport gpus;
  unsigned cpus = 0;  // 0: not known
};

// A model: its folder, its configuration as written, and as the server completes it.
struct ModelView {
  std::string name;
  std::string name_space;
  std::string repository;
  std::string folder;
  std::vector<repository::Entry> entries;  // of the folder
  std::string config_path;                 // of the file that is read, or would be
  bool has_config = false;
  std::string text;
  config::TextPlaces places;
  // Why the configuration could not be read, parsed, and completed from the names of the files.
  base::Status read_status;
  base::Status parse_status;
  base::Status complete_status;
  // The results of these steps, each nothing if it failed; `config` also has the server's defaults.
  std::optional<config::ModelConfig> written;
  std::optional<config::ModelConfig> completed;
  std::optional<config::ModelConfig> config;
  std::map<int64_t, std::vector<repository::Entry>> versions;  // with the contents of the folders
  std::set<int64_t> served;
  std::string inspected;  // the folder whose files tell the framework; empty if there is none
  std::vector<repository::Entry> inspected_contents;
  // The folders above that cannot be listed, and why. Their contents are not known, rather than
  // none.
  std::map<std::string, base::Status> unreadable;
  // Whether the configuration is what the server will serve: the backend adds nothing from the
  // model file.
  bool is_complete = true;

  std::string VersionFolder(int64_t version) const;
  // Whether the field itself is in the configuration's text.
  bool Has(std::string_view field) const { return places.Has(field); }
};

// Collects the findings about one model. Thread-compatible.
class Findings {
 public:
  Findings(const ModelView& model, std::vector<Finding>& findings)
      : model_(model), findings_(findings) {}

  // What is wrong, besides the place. An empty suggestion means that of the kind.
  struct What {
    std::string text;
    std::string found = {};
    std::string expected = {};
    std::string suggestion = {};
  };

  // Reports a mistake at a field of the configuration, or at the nearest field around it.
  void AtField(std::string_view code, std::string_view field, What what);
  // Reports a mistake of a whole file or folder.
  void AtPath(std::string_view code, std::string path, What what);
  void AtLine(std::string_view code, int line, int column, std::string field, What what);
  // Reports the errors that the server's own validation finds.
  void Append(const config::ErrorList& errors);

  bool has_errors() const { return has_errors_; }

 private:
  void Add(Finding finding, What what);

  const ModelView& model_;
  std::vector<Finding>& findings_;
  bool has_errors_ = false;
};

}  // namespace nereid::check
