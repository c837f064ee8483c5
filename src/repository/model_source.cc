// SPDX-License-Identifier: Apache-2.0
#include "repository/model_source.h"

#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "config/versions.h"
#include "repository/advice.h"

namespace nereid::repository {

base::Result<std::set<int64_t>> VersionsToServe(const ModelSource& source) {
  config::VersionSelection selection =
      config::VersionsToLoad(source.config->version_policy, source.versions);
  for (const int64_t version : selection.missing) {
    NEREID_LOG(kError,
               "version {} is specified for model '{}', but the version directory is not present",
               version, source.name);
  }
  if (selection.versions.empty()) {
    const std::string text =
        fmt::format("at least one version must be available under the version policy of model '{}'",
                    source.name);
    return base::InvalidArgumentError(WithAdvice(
        text, source.versions.empty()
                  ? source.version_advice
                  : PolicyAdvice(source.shown_folder,
                                 source.config->version_policy.value_or(config::VersionPolicy()),
                                 source.versions)));
  }
  return std::move(selection.versions);
}

}  // namespace nereid::repository
