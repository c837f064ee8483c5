// SPDX-License-Identifier: Apache-2.0
// Hints for users whose model folder differs from the expected layout: what was found, what was
// expected, and where. Pure functions; `folder` is the model's folder as the user knows it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/model_config.h"
#include "repository/store.h"

namespace nereid::repository {

// Returns `text` followed by the sentences of `advice`, which may be empty.
std::string WithAdvice(std::string_view text, std::string_view advice);

// Advice for a model without a version folder. `config` is what is known of its configuration.
std::string NoVersionAdvice(const std::string& folder, const std::vector<Entry>& entries,
                            const config::ModelConfig& config);

// Advice for a model whose version policy selects none of the available `versions`.
std::string PolicyAdvice(const std::string& folder, const config::VersionPolicy& policy,
                         const std::set<int64_t>& versions);

// Advice for a model whose backend follows neither from its configuration nor from its files.
// `contents` are the entries of the folder of `version`.
std::string NoBackendAdvice(const std::string& folder, const std::string& version,
                            const std::vector<Entry>& contents);

// Advice for a model without config.pbtxt: names the file that is probably meant to be it. Empty if
// there is none. `contents` are the entries of the folder of `version`.
std::string MisplacedConfigAdvice(const std::string& folder, const std::vector<Entry>& entries,
                                  const std::string& version, const std::vector<Entry>& contents);

}  // namespace nereid::repository
