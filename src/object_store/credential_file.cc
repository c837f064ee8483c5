// SPDX-License-Identifier: Apache-2.0
#include "object_store/credential_file.h"

#include <rapidjson/document.h>

#include "repository/local_store.h"

namespace nereid::object_store {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;

std::string_view TextOf(const rapidjson::Value& value) {
  return {value.GetString(), value.GetStringLength()};
}

CredentialEntry ToEntry(const rapidjson::Value& value) {
  CredentialEntry entry;
  if (value.IsString()) {
    entry.text = TextOf(value);
    return entry;
  }
  for (const auto& field : value.GetObject()) {
    if (field.value.IsString()) entry.fields.emplace(TextOf(field.name), TextOf(field.value));
  }
  return entry;
}

}  // namespace

std::string CredentialEntry::Field(const std::string& name) const {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string() : found->second;
}

base::Result<std::string> ReadKeyFile(const std::string& path) {
  return repository::LocalStore().Read(path, kMaxFileBytes);
}

base::Result<std::optional<CredentialEntry>> FindCredentialEntry(const Environment& environment,
                                                                 const char* section,
                                                                 std::string_view path) {
  const std::optional<std::string> file = environment("TRITON_CLOUD_CREDENTIAL_PATH");
  if (!file) return std::optional<CredentialEntry>();
  NEREID_ASSIGN_OR_RETURN(const std::string text, ReadKeyFile(*file));
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(text.c_str(), text.size());
  if (document.HasParseError() || !document.IsObject()) {
    return base::InvalidArgumentError("failed to parse the cloud credentials in " + *file);
  }
  const auto accounts = document.FindMember(section);
  const rapidjson::Value* best = nullptr;
  size_t best_size = 0;
  if (accounts != document.MemberEnd() && accounts->value.IsObject()) {
    for (const auto& account : accounts->value.GetObject()) {
      const std::string_view name = TextOf(account.name);
      if (!account.value.IsObject() && !account.value.IsString()) continue;
      if (!path.starts_with(name) || (best != nullptr && name.size() < best_size)) continue;
      best = &account.value;
      best_size = name.size();
    }
  }
  if (best == nullptr) {
    return base::NotFoundError("Cannot match credential for path  " + std::string(path));
  }
  return std::optional<CredentialEntry>(ToEntry(*best));
}

}  // namespace nereid::object_store
