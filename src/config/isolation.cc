// SPDX-License-Identifier: Apache-2.0
#include "config/isolation.h"

#include <string>

namespace nereid::config {

base::Result<bool> IsIsolated(const ModelConfig& config, std::string_view otherwise) {
  const auto found = config.parameters.find("isolation");
  const std::string value(found == config.parameters.end() ? otherwise : found->second);
  if (value == "none") return false;
  if (value == "process") return true;
  return base::InvalidArgumentError("parameter 'isolation' of model '" + config.name +
                                    "' must be 'process' or 'none', not '" + value + "'");
}

}  // namespace nereid::config
