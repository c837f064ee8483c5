// SPDX-License-Identifier: Apache-2.0
// Small JSON documents, such as files with keys and replies with tokens, as a table of texts.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"

namespace nereid::object_store {

// The strings, numbers and truth values of a document by their paths: "error.errors.0.reason".
using FlatJson = std::map<std::string, std::string>;

// Fails unless `json` is an object. Values nested in more than 8 others are left out; of members
// with the same name the first counts. The error does not quote the text, which may have secrets.
base::Result<FlatJson> ParseFlatJson(std::string_view json);

// Returns a value, empty if there is none.
std::string ValueOf(const FlatJson& json, const std::string& path);

}  // namespace nereid::object_store
