// SPDX-License-Identifier: Apache-2.0
// Where the answers of models that cache their responses are kept. Implemented over cache
// libraries.
#pragma once

#include <array>
#include <string_view>

#include "base/status.h"

namespace nereid::core {

class Response;

// Stands for one question to one model version: equal keys, equal questions. Text that ends with a
// zero byte, of the same length for every key.
struct CacheKey {
  static constexpr size_t kSize = 72;
  std::array<char, kSize + 1> text{};

  const char* c_str() const { return text.data(); }
  std::string_view view() const { return {text.data(), kSize}; }
};

// What keys are made with that never leave this process: random, never shown to anybody. Immutable.
struct CacheSecret {
  std::array<unsigned char, 32> hash_key{};
  std::array<unsigned char, 32> digest_key{};
};

// Thread-safe. May block for as long as its library does (a network round trip at worst).
class ResponseCache {
 public:
  virtual ~ResponseCache() = default;

  // Adds the outputs and parameters kept under `key` to `response`, which is fresh and belongs to
  // the request that asks. NOT_FOUND when there is nothing; after any error the response is to be
  // dropped.
  virtual base::Status Lookup(const CacheKey& key, Response& response) = 0;
  // Keeps the outputs and parameters of `response`, which lie in CPU memory. ALREADY_EXISTS when
  // there is something under the key and it was left as it is.
  virtual base::Status Insert(const CacheKey& key, const Response& response) = 0;

  // Null when keys may leave this process, and so must be the same wherever the same is asked;
  // otherwise what to make them with. Lives and stays as it is as long as the cache.
  virtual const CacheSecret* secret() const { return nullptr; }
};

}  // namespace nereid::core
