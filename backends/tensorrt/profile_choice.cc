// SPDX-License-Identifier: Apache-2.0
#include "tensorrt_backend/profile_choice.h"

#include <algorithm>
#include <set>

#include "backend_kit/handles.h"

namespace nereid::tensorrt {

using backend::Error;
using backend::ModelConfig;
using backend::Result;
using backend::StrCat;

namespace {

// "3" → 3. Fails for what is not a number.
Result<int> ParseProfile(const std::string& text) {
  if (text.empty()) {
    return Error::InvalidArgument("profile name must not be empty");
  }
  auto number = backend::ParseInt(text);
  if (!number.ok()) {
    number.TakeError().Ignore();
    return Error::InvalidArgument(StrCat("unable to parse '", text, "': it is not a number"));
  }
  return number;
}

}  // namespace

Result<std::vector<int>> ProfilesOf(const ModelConfig& config, int profile_count,
                                    const std::string& model) {
  std::set<int> profiles;
  for (const rapidjson::Value& group : backend::ArrayOf(config.json(), "instance_group")) {
    for (const rapidjson::Value& name : backend::ArrayOf(group, "profile")) {
      const std::string text = name.IsString() ? name.GetString() : "";
      NEREID_KIT_ASSIGN(const int profile, ParseProfile(text));
      if (profile < 0 || profile >= profile_count) {
        return Error::Internal(
            StrCat("unable to autofill for '", model, "', configuration specified invalid profile ",
                   text, " . Number of profiles supported by TensorRT engine: ", profile_count));
      }
      profiles.insert(profile);
    }
  }
  if (profiles.empty()) {
    profiles.insert(0);
  }
  return std::vector<int>(profiles.begin(), profiles.end());
}

Result<std::vector<ProfileChoice>> ProfilesOf(TRITONBACKEND_ModelInstance* handle,
                                              int profile_count, const std::string& owner) {
  uint32_t count = 0;
  NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceProfileCount(handle, &count));
  std::vector<ProfileChoice> chosen;
  for (uint32_t p = 0; p < count; ++p) {
    const char* name = nullptr;
    NEREID_KIT_TRY(TRITONBACKEND_ModelInstanceProfileName(handle, p, &name));
    NEREID_KIT_ASSIGN(const int index, ParseProfile(name));
    if (index < 0 || index >= std::max(profile_count, 1)) {
      return Error::InvalidArgument(
          StrCat("Can not set the specified optimization profile ", name, "[", index, "] for ",
                 owner, ". Expected optimization profile index range 0-", profile_count - 1));
    }
    const bool is_new = std::none_of(chosen.begin(), chosen.end(),
                                     [&](const auto& one) { return one.index == index; });
    if (is_new) {
      chosen.push_back({name, index});
    }
  }
  if (chosen.empty()) {
    chosen.push_back({"default", 0});
  }
  return chosen;
}

}  // namespace nereid::tensorrt
