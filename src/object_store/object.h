// SPDX-License-Identifier: Apache-2.0
// Objects in an object store.
#pragma once

#include <cstdint>
#include <string>

namespace nereid::object_store {

// One object. A value type.
struct Object {
  std::string key;
  std::string etag;  // without quotes; changes with the contents
  uint64_t size = 0;
  int64_t modified_ns = 0;  // since 1970
  std::string md5 = {};     // of the contents in hexadecimal digits; empty: unknown
};

// A range of bytes of one object.
struct Range {
  uint64_t offset = 0;
  uint64_t size = 0;  // at least 1
};

}  // namespace nereid::object_store
