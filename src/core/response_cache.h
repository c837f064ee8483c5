// SPDX-License-Identifier: Apache-2.0
// The storage of the responses of models that cache them. Implemented over cache libraries.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "base/task_pool.h"

namespace nereid::core {

class Response;

// The key of one request content to one model version: equal keys mean equal requests. Text with a
// terminating zero byte, of the same length for every key.
struct CacheKey {
  static constexpr size_t kSize = 72;
  std::array<char, kSize + 1> text{};

  const char* c_str() const { return text.data(); }
  std::string_view view() const { return {text.data(), kSize}; }
};

// The secrets for making keys that never leave this process: random and never disclosed. Immutable.
struct CacheSecret {
  std::array<unsigned char, 32> hash_key{};
  std::array<unsigned char, 32> digest_key{};
};

// A cache. Thread-safe.
class ResponseCache {
 public:
  virtual ~ResponseCache() = default;

  // Adds the cached outputs and parameters of `key` to `response`, which is new and belongs to the
  // current request. Returns NOT_FOUND if there are none. After any error the response must be
  // dropped.
  virtual base::Status Lookup(const CacheKey& key, Response& response) = 0;
  // Stores the outputs and parameters of `response`, which are in CPU memory. Returns
  // ALREADY_EXISTS, without a change, if the key is in use.
  virtual base::Status Insert(const CacheKey& key, const Response& response) = 0;

  // Returns the threads that call Lookup and Insert, because both may wait for another process or
  // machine, perhaps as long as that one hangs. Null if they wait for nothing but the CPU, so that
  // any thread may call them. Constant, and valid as long as the cache.
  virtual base::TaskPool* threads() { return nullptr; }
  // Returns the secret to make keys with. Null if keys may leave this process and therefore must be
  // the same in every process. Constant, and valid as long as the cache.
  virtual const CacheSecret* secret() const { return nullptr; }

  // The epoch of this server: a part of the keys of responses that depend on more than the request
  // and the model's own version, such as those of ensembles. 0 until the first BeginEpoch.
  uint64_t epoch() const { return epoch_.load(); }
  // Begins another epoch, because such responses are about to change. `number` is random, so that
  // no other server that shares the cache has the same.
  void BeginEpoch(uint64_t number) { epoch_.store(number); }

 private:
  std::atomic<uint64_t> epoch_{0};
};

}  // namespace nereid::core
