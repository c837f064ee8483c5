// SPDX-License-Identifier: Apache-2.0
#include "azure/location.h"

#include "object_store/path.h"

namespace nereid::azure {
namespace {

constexpr std::string_view kScheme = "as://";
constexpr std::string_view kLongScheme = "azure://";

}  // namespace

std::string SpelledAsInTriton(std::string_view path) {
  if (!path.starts_with(kLongScheme)) return std::string(path);
  return std::string(kScheme).append(path.substr(kLongScheme.size()));
}

base::Result<Location> ParseLocation(std::string_view path) {
  // A question mark may be in a name; a signature is in none.
  const size_t query = path.find('?');
  if (query != path.npos && path.find("sig=", query) != path.npos) {
    return base::InvalidArgumentError(
        "Invalid azure storage path: " + std::string(path.substr(0, query)) +
        "?...: give a shared access signature in AZURE_STORAGE_SAS_TOKEN or as 'sas_token' in the "
        "file of TRITON_CLOUD_CREDENTIAL_PATH");
  }
  const std::string spelled = SpelledAsInTriton(path);
  std::string_view rest = spelled;
  if (rest.starts_with(kScheme)) rest.remove_prefix(kScheme.size());
  Location location;
  location.host = object_store::TakeComponent(rest);
  location.container = object_store::TakeComponent(rest);
  location.key = object_store::CleanKey(rest);
  if (location.host.empty() || location.container.empty()) {
    return base::InternalError("Invalid azure storage path: " + std::string(path));
  }
  // The host becomes part of an address.
  if (location.host.find_first_of("@#\\ ") != location.host.npos) {
    return base::InternalError("Invalid azure storage path: " + std::string(path));
  }
  return location;
}

std::string AccountOf(const std::string& host) { return host.substr(0, host.find('.')); }

}  // namespace nereid::azure
