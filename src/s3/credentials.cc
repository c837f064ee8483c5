// SPDX-License-Identifier: Apache-2.0
#include "s3/credentials.h"

#include "base/log.h"
#include "base/trim.h"
#include "object_store/credential_file.h"
#include "repository/local_store.h"

namespace nereid::s3 {
namespace {

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

  static Entry FromFile(const object_store::CredentialEntry& entry) {
    return {{{entry.Field("key_id"), entry.Field("secret_key"), entry.Field("session_token")},
             entry.Field("region"),
             {}},
            entry.Field("profile")};
  }

  Entry FromVariables() const {
    return {
        {{Value("AWS_ACCESS_KEY_ID"), Value("AWS_SECRET_ACCESS_KEY"), Value("AWS_SESSION_TOKEN")},
         "",
         {}},
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
    if (keys.key_id.empty()) {
      account.source = FindKeySource(environment_, account.region,
                                     {.role_arn = setting("role_arn"),
                                      .token_file = setting("web_identity_token_file"),
                                      .session_name = setting("role_session_name")});
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
      const auto text = object_store::ReadKeyFile(path);
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

base::Result<Account> FindAccount(std::string_view path, const Environment& environment) {
  const Finder finder(environment);
  NEREID_ASSIGN_OR_RETURN(const auto entry,
                          object_store::FindCredentialEntry(environment, "s3", path));
  return finder.Complete(entry ? Finder::FromFile(*entry) : finder.FromVariables());
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
