// SPDX-License-Identifier: Apache-2.0
// Advice for a user whose model file is missing.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "backend_kit/error.h"

namespace nereid::backend {

// Returns a sentence, with a space before it, about what is in the folder of `path` instead.
inline std::string FoundInstead(const std::filesystem::path& path) {
  constexpr size_t kMaxListed = 5;
  std::error_code error;
  std::vector<std::string> similar;
  std::vector<std::string> others;
  const std::filesystem::path folder = path.parent_path();
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::filesystem::path& found = entry->path();
    (found.extension() == path.extension() ? similar : others).push_back(found.filename().string());
  }
  if (error) return "";
  if (similar.empty() && others.empty()) return " That folder is empty.";
  std::vector<std::string>& names = similar.empty() ? others : similar;
  std::sort(names.begin(), names.end());
  std::string list;
  for (size_t i = 0; i < names.size() && i < kMaxListed; ++i) {
    list += StrCat(i == 0 ? "'" : ", '", names[i], "'");
  }
  if (names.size() > kMaxListed) list += ", ...";
  if (similar.empty()) return StrCat(" That folder has ", list, ".");
  return StrCat(" That folder has ", list, ": rename it to '", path.filename().string(),
                "', or name it in config.pbtxt as default_model_filename.");
}

}  // namespace nereid::backend
