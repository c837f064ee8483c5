// SPDX-License-Identifier: Apache-2.0
// Sentences for users who laid out a model's folder in another way than it is read: what was found,
// what was expected, and where. Pure functions; `folder` is the model's folder as the user knows
// it.
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

// `text` and then the sentences of `advice`, which may be empty.
std::string WithAdvice(std::string_view text, std::string_view advice);

// Of a model without a version folder. `config` is what is known of its configuration.
std::string NoVersionAdvice(const std::string& folder, const std::vector<Entry>& entries,
                            const config::ModelConfig& config);

// Of a model whose version policy asks for none of the `versions` that there are.
std::string PolicyAdvice(const std::string& folder, const config::VersionPolicy& policy,
                         const std::set<int64_t>& versions);

// Of a model neither whose configuration nor whose files tell the backend. `contents` is what lies
// in the folder of `version`.
std::string NoBackendAdvice(const std::string& folder, const std::string& version,
                            const std::vector<Entry>& contents);

// Of a model without config.pbtxt: names the file that is probably meant to be it. Empty where
// there is none. `contents` is what lies in the folder of `version`.
std::string MisplacedConfigAdvice(const std::string& folder, const std::vector<Entry>& entries,
                                  const std::string& version, const std::vector<Entry>& contents);

}  // namespace nereid::repository
