// SPDX-License-Identifier: Apache-2.0
// The class labels of a model's outputs, one per line of its label files.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "config/model_config.h"

namespace nereid::config {

// Immutable once loaded; shared by all requests of a model.
class Labels {
 public:
  Labels() = default;

  // Reads the label_filename of every output. An error when a file lies outside the model's folder,
  // cannot be read, or two outputs share a name.
  static base::Result<Labels> Load(const ModelConfig& config, const std::string& model_folder);

  // The label of class `index` of `output`; empty when there is none.
  std::string_view Find(std::string_view output, size_t index) const;
  // All labels of `output` in class order; empty when it has none.
  const std::vector<std::string>& Of(std::string_view output) const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> labels_;
};

}  // namespace nereid::config
