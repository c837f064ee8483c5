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

// The labels of one model. Immutable once loaded; shared by all its requests.
class Labels {
 public:
  Labels() = default;

  // Reads the label_filename of every output. Fails if a file lies outside the model's folder or
  // cannot be read, or if two outputs share a name.
  static base::Result<Labels> Load(const ModelConfig& config, const std::string& model_folder);

  // Returns all labels of `output` in class order; empty if it has none.
  const std::vector<std::string>& Of(std::string_view output) const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> labels_;
};

}  // namespace nereid::config
