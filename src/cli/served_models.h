// SPDX-License-Identifier: Apache-2.0
// The repository that `nereid serve` makes of files that lie in none: a temporary folder with links
// to them and with a configuration for each. The server reads it like any other repository, and
// backends complete the configurations.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/temporary_folder.h"
#include "cli/model_file.h"
#include "config/model_config.h"
#include "repository/routed_store.h"

namespace nereid::cli {

// What the command line says about a model whose file does not say it.
struct ModelSettings {
  std::optional<int32_t> max_batch_size;
  std::vector<config::ModelInput> inputs;  // with all dimensions, also that of the batch
  std::vector<config::ModelOutput> outputs;
  std::optional<config::ModelConfig> config;  // from a file; the others above replace parts of it
};

// Reads a tensor written as NAME:TYPE:DIMS, such as pixels:FP32:-1,3,224,224. A name may contain
// colons.
base::Result<config::ModelInput> ParseTensor(std::string_view text);

// Returns the configuration of a kFile in a repository, for its backend to complete.
base::Result<config::ModelConfig> MakeModelConfig(const ModelFile& model,
                                                  const ModelSettings& settings);

// Owns the temporary folder. Confined to one thread, except for the store, which is thread-safe and
// independent of it.
class ServedModels {
 public:
  // REQUIRES: CheckNames(models).ok(). The settings are those of each kFile.
  static base::Result<std::unique_ptr<ServedModels>> Create(std::vector<ModelFile> models,
                                                            const ModelSettings& settings);
  // Removes the folder, and nothing to which it links.
  ~ServedModels();
  ServedModels(const ServedModels&) = delete;
  ServedModels& operator=(const ServedModels&) = delete;

  const std::vector<ModelFile>& models() const { return *models_; }
  // The repositories for the server: the folder, if it has any model, and those of the command
  // line.
  std::vector<std::string> repositories() const;
  // The store in which the server reads the folder. In it, a model has only the files that belong
  // to it, though its backend sees the whole folder from which it comes: otherwise, any change
  // beside the model would be a change of the model, and a home directory would be searched for
  // changes as a whole.
  repository::StoreKind store() const;
  // Returns the model of this name if it is one of the command line's, else null.
  const ModelFile* Find(std::string_view name) const;
  // Whether the command line says what inputs models have.
  bool says_inputs() const { return says_inputs_; }
  // Replaces paths in the folder by those from which the files come.
  std::string WithOwnPaths(std::string text) const;

 private:
  ServedModels(base::TemporaryFolder folder, std::vector<ModelFile> models, bool says_inputs)
      : folder_(std::move(folder)),
        models_(std::make_shared<const std::vector<ModelFile>>(std::move(models))),
        says_inputs_(says_inputs) {}
  base::Status Add(const ModelFile& model, const ModelSettings& settings) const;

  const base::TemporaryFolder folder_;
  const std::shared_ptr<const std::vector<ModelFile>> models_;  // shared with the store
  const bool says_inputs_;
};

}  // namespace nereid::cli
