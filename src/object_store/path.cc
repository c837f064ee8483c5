// SPDX-License-Identifier: Apache-2.0
#include "object_store/path.h"

#include <algorithm>

namespace nereid::object_store {

std::string_view TakeComponent(std::string_view& path) {
  const size_t end = std::min(path.find('/'), path.size());
  const std::string_view component = path.substr(0, end);
  path.remove_prefix(std::min(path.find_first_not_of('/', end), path.size()));
  return component;
}

std::string CleanKey(std::string_view path) {
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  std::string key;
  while (!path.empty()) {
    if (!key.empty()) key += '/';
    key += TakeComponent(path);
  }
  return key;
}

}  // namespace nereid::object_store
