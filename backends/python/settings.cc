// SPDX-License-Identifier: Apache-2.0
#include "python_backend/settings.h"

#include <cerrno>
#include <cstdlib>
#include <optional>

#include "backend_kit/config.h"

namespace nereid::python {
namespace {

using backend::Error;
using backend::Result;
using backend::StrCat;

struct Key {
  const char* name;
  int64_t min;
  const char* refusal;  // the error for smaller numbers, after the key's name
};

constexpr Key kStartTimeout = {"stub-timeout-seconds", 1,
                               " can't be smaller than or equal to zero."};
constexpr Key kWithoutEffect[] = {
    {"shm-growth-byte-size", 1, " can't be smaller than or equal to zero."},
    {"shm-default-byte-size", 1 << 20, " can't be smaller than 4 MiBs"},
    {"thread-pool-size", 1, " can't be less than 1."},
    {"shm_message_queue_size", 1, " can't be less than 1."}};
constexpr const char* kRegionPrefix = "shm-region-prefix-name";

Result<std::optional<int64_t>> Number(const rapidjson::Value& settings, const Key& key) {
  const rapidjson::Value* const value = backend::Find(settings, key.name);
  if (value == nullptr) return std::optional<int64_t>();
  const std::string text(backend::StringMember(settings, key.name));
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text.c_str(), &end, 10);
  if (end == text.c_str() || errno != 0) {
    return Error::InvalidArgument(StrCat(key.name, " must be a number, not '", text, "'"));
  }
  if (number < key.min) return Error::InvalidArgument(StrCat(key.name, key.refusal));
  return std::optional<int64_t>(number);
}

}  // namespace

Result<Settings> Settings::Parse(std::string_view json) {
  Settings settings;
  NEREID_KIT_ASSIGN(const rapidjson::Document document,
                    backend::ParseJson(json, "backend configuration"));
  const rapidjson::Value* const given = backend::Find(document, "cmdline");
  if (given == nullptr) return settings;
  std::string ignored;
  for (const Key& key : kWithoutEffect) {
    NEREID_KIT_ASSIGN(const std::optional<int64_t> value, Number(*given, key));
    if (value) ignored += StrCat(ignored.empty() ? "" : ", ", key.name);
  }
  if (backend::Find(*given, kRegionPrefix) != nullptr) {
    if (backend::StringMember(*given, kRegionPrefix).empty()) {
      return Error::InvalidArgument(StrCat(kRegionPrefix, " must at least contain one character."));
    }
    ignored += StrCat(ignored.empty() ? "" : ", ", kRegionPrefix);
  }
  if (!ignored.empty()) {
    backend::LogInfo(StrCat("python backend: these settings have no effect: ", ignored,
                            ". Shared memory has no name here and grows as needed."));
  }
  NEREID_KIT_ASSIGN(const std::optional<int64_t> timeout, Number(*given, kStartTimeout));
  if (timeout) settings.start_timeout = std::chrono::seconds(*timeout);
  const std::string_view checks = backend::StringMember(*given, "check-outputs");
  if (!checks.empty()) {
    NEREID_KIT_ASSIGN(settings.checks_outputs, backend::ParseBool(std::string(checks)));
  }
  settings.interpreter = backend::StringMember(*given, "python-runtime");
  settings.backend_directory = backend::StringMember(*given, "backend-directory");
  return settings;
}

}  // namespace nereid::python
