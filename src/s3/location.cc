// SPDX-License-Identifier: Apache-2.0
#include "s3/location.h"

#include <algorithm>

#include "object_store/path.h"

namespace nereid::s3 {
namespace {

constexpr std::string_view kScheme = "s3://";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Whether the text is host:port rather than the name of a bucket, which cannot contain a colon.
bool HasPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) return false;
  const std::string_view port = text.substr(colon + 1);
  return std::all_of(port.begin(), port.end(), IsDigit);
}

}  // namespace

std::string Location::ToString() const {
  std::string text(kScheme);
  if (!endpoint.empty()) text += endpoint + "/";
  text += bucket;
  if (!key.empty()) text += "/" + key;
  return text;
}

base::Result<Location> ParseLocation(std::string_view path) {
  std::string_view rest = path;
  if (rest.starts_with(kScheme)) rest.remove_prefix(kScheme.size());
  rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
  Location location;
  std::string_view protocol;
  for (const std::string_view known : {"https://", "http://"}) {
    if (!rest.starts_with(known)) continue;
    protocol = known;
    rest.remove_prefix(known.size());
    rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
    break;
  }
  if (!protocol.empty() || HasPort(rest.substr(0, rest.find('/')))) {
    location.endpoint = protocol.empty() ? "http://" : protocol;
    location.endpoint += object_store::TakeComponent(rest);
  }
  location.bucket = object_store::TakeComponent(rest);
  if (location.bucket.empty()) {
    return base::InternalError("No bucket name found in path: " + std::string(path));
  }
  location.key = object_store::CleanKey(rest);
  return location;
}

}  // namespace nereid::s3
