// SPDX-License-Identifier: Apache-2.0
#include "s3/credentials.h"

#include <rapidjson/document.h>

#include <cstdlib>

#include "base/log.h"
#include "base/trim.h"
#include "repository/local_store.h"

namespace nereid::s3 {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr const char* kDefaultRegion = "us-east-1";

constexpr std::string_view kBlanks = " \t\r";

// The entry of an account, before its profile is looked up.
struct Entry {
  Account account;
  std::string profile;
};

// Finds an account in the variables and files of an environment.
class Finder {
 public:
  explicit Finder(const Environment& environment) : environment_(environment) {}

  base::Result<Entry> FromFile(const std::string& file, std::string_view path) const {
    NEREID_ASSIGN_OR_RETURN(const std::string text,
                            repository::LocalStore().Read(file, kMaxFileBytes));
    rapidjson::Document document;
    document.Parse(text.c_str(), text.size());
    if (document.HasParseError() || !document.IsObject()) {
      return base::InvalidArgumentError("failed to parse the cloud credentials in " + file);
    }
    const auto accounts = document.FindMember("s3");
    const rapidjson::Value* best = nullptr;
    std::string_view best_name;
    if (accounts != document.MemberEnd() && accounts->value.IsObject()) {
      for (const auto& account : accounts->value.GetObject()) {
        const std::string_view name(account.name.GetString(), account.name.GetStringLength());
        if (!account.value.IsObject() || !path.starts_with(name)) continue;
        if (best != nullptr && name.size() < best_name.size()) continue;
        best = &account.value;
        best_name = name;
      }
    }
    if (best == nullptr) {
      return base::NotFoundError("Cannot match credential for path  " + std::string(path));
    }
    const auto text_of = [best](const char* name) -> std::string {
      const auto member = best->FindMember(name);
      if (member == best->MemberEnd() || !member->value.IsString()) return {};
      return {member->value.GetString(), member->value.GetStringLength()};
    };
    return Entry{
        {{text_of("key_id"), text_of("secret_key"), text_of("session_token")}, text_of("region")},
        text_of("profile")};
  }

  Entry FromVariables() const {
    return {
        {{Value("AWS_ACCESS_KEY_ID"), Value("AWS_SECRET_ACCESS_KEY"), Value("AWS_SESSION_TOKEN")},
         ""},
        Value("AWS_PROFILE")};
  }

  // Fills in what the entry does not set.
  Account Complete(Entry entry) const {
    Account account = std::move(entry.account);
    const std::string profile = entry.profile.empty() ? "default" : entry.profile;
    const auto settings = ProfileSettings(profile);
    const auto setting = [&settings](const char* name) {
      const auto found = settings.find(name);
      return found == settings.end() ? std::string() : found->second;
    };
    Credentials& keys = account.credentials;
    if (keys.key_id.empty() || keys.secret.empty()) {
      keys = {setting("aws_access_key_id"), setting("aws_secret_access_key"),
              setting("aws_session_token")};
      if (keys.secret.empty()) keys = {};
    }
    for (const std::string& region : {Value("AWS_DEFAULT_REGION"), Value("AWS_REGION"),
                                      setting("region"), std::string(kDefaultRegion)}) {
      if (account.region.empty()) account.region = region;
    }
    return account;
  }

 private:
  std::string Value(const char* name) const { return environment_(name).value_or(""); }

  std::map<std::string, std::string> ProfileSettings(const std::string& profile) const {
    std::map<std::string, std::string> settings;
    const std::string home = Value("HOME");
    for (const auto& [variable, file] :
         {std::pair("AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials"),
          std::pair("AWS_CONFIG_FILE", "/.aws/config")}) {
      const std::string path = environment_(variable).value_or(home + file);
      const repository::LocalStore files;
      if (path.empty() || !files.Exists(path)) continue;
      const auto text = files.Read(path, kMaxFileBytes);
      if (!text.ok()) {
        NEREID_LOG(kWarning, "cannot read profiles: {}", text.status().message());
        continue;
      }
      Profiles profiles = ParseProfiles(*text);
      settings.merge(profiles[profile]);
    }
    return settings;
  }

  const Environment& environment_;
};

}  // namespace

Environment ProcessEnvironment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* const value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

base::Result<Account> FindAccount(std::string_view path, const Environment& environment) {
  const Finder finder(environment);
  const auto file = environment("TRITON_CLOUD_CREDENTIAL_PATH");
  if (!file) return finder.Complete(finder.FromVariables());
  NEREID_ASSIGN_OR_RETURN(Entry entry, finder.FromFile(*file, path));
  return finder.Complete(std::move(entry));
}

Profiles ParseProfiles(std::string_view text) {
  Profiles profiles;
  std::string section;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view whole = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view line = base::Trim(whole, kBlanks);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      std::string_view name = base::Trim(line.substr(1, line.find(']') - 1), kBlanks);
      constexpr std::string_view kProfile = "profile ";
      if (name.starts_with(kProfile)) name = base::Trim(name.substr(kProfile.size()), kBlanks);
      section = name;
      continue;
    }
    // Indented lines belong to nested settings, of which none matters here.
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos || whole.front() == ' ' || whole.front() == '\t') continue;
    profiles[section].emplace(base::Trim(line.substr(0, equals), kBlanks),
                              base::Trim(line.substr(equals + 1), kBlanks));
  }
  return profiles;
}

}  // namespace nereid::s3
