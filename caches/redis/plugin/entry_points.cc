// SPDX-License-Identifier: Apache-2.0
// libtritoncache_redis.so: stores responses in Redis, where several servers share them and they
// survive restarts. An entry is one binary value; Redis limits the number of entries and their
// lifetime (maxmemory, maxmemory-policy).
#include "cache_kit/entry.h"
#include "redis_cache/redis_client.h"
#include "redis_cache/value.h"

namespace {

using nereid::backend::EntryPoint;
using nereid::backend::StrCat;
using nereid::cache::Error;
using nereid::redis_cache::Failure;
using nereid::redis_cache::MakeValue;
using nereid::redis_cache::Outcome;
using nereid::redis_cache::ReadSettings;
using nereid::redis_cache::ReadValueSizes;
using nereid::redis_cache::RedisClient;
using nereid::redis_cache::RedisSettings;
using nereid::redis_cache::Reply;
using nereid::redis_cache::ValueHeaderSize;

RedisClient* FromHandle(TRITONCACHE_Cache* cache) { return reinterpret_cast<RedisClient*>(cache); }

Error ToError(const Failure& failure, const char* what, const char* key) {
  const std::string text = StrCat("Failed to ", what, " key: ", key, ". ", failure.message);
  return failure.is_unreachable ? Error::Unavailable(text) : Error::Internal(text);
}

}  // namespace

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONCACHE_CacheInitialize(TRITONCACHE_Cache** cache,
                                                                  const char* config) {
  return EntryPoint([&]() -> Error {
    if (cache == nullptr) return Error::InvalidArgument("cache was nullptr");
    if (config == nullptr) return Error::InvalidArgument("cache config was nullptr");
    NEREID_KIT_TRY(nereid::cache::CheckApiVersion());
    auto settings = ReadSettings(config);
    if (const auto* error = std::get_if<std::string>(&settings)) {
      return Error::InvalidArgument(*error);
    }
    auto client = RedisClient::Create(std::get<RedisSettings>(std::move(settings)));
    if (const auto* error = std::get_if<std::string>(&client)) {
      return Error::Internal(StrCat("Failed to initialize RedisCache: ", *error));
    }
    *cache = reinterpret_cast<TRITONCACHE_Cache*>(
        std::get<std::unique_ptr<RedisClient>>(client).release());
    return {};
  });
}

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONCACHE_CacheFinalize(TRITONCACHE_Cache* cache) {
  return EntryPoint([&]() -> Error {
    if (cache == nullptr) return Error::InvalidArgument("cache was nullptr");
    delete FromHandle(cache);
    return {};
  });
}

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONCACHE_CacheLookup(TRITONCACHE_Cache* cache,
                                                              const char* key,
                                                              TRITONCACHE_CacheEntry* entry,
                                                              TRITONCACHE_Allocator* allocator) {
  return EntryPoint([&]() -> Error {
    NEREID_KIT_TRY(nereid::cache::CheckArguments(cache, key, entry, allocator));
    const Outcome outcome = FromHandle(cache)->Run({"GET", key});
    if (const auto* failure = std::get_if<Failure>(&outcome)) {
      return ToError(*failure, "retrieve", key);
    }
    redisReply& reply = *std::get<Reply>(outcome);
    if (reply.type == REDIS_REPLY_NIL) {
      return {TRITONSERVER_ERROR_NOT_FOUND, StrCat("key [", key, "] does not exist")};
    }
    if (reply.type != REDIS_REPLY_STRING) return Error::Internal("unexpected reply from Redis");
    auto* const bytes = reinterpret_cast<std::byte*>(reply.str);
    const auto sizes = ReadValueSizes({bytes, static_cast<size_t>(reply.len)});
    if (!sizes) {
      nereid::cache::Log(
          TRITONSERVER_LOG_WARN, __FILE__, __LINE__,
          StrCat("the value under key [", key, "] in Redis is not an entry of this cache"));
      return Error::Internal("encountered incomplete cache result");
    }
    return nereid::cache::CopyToServer(entry, allocator, *sizes,
                                       bytes + ValueHeaderSize(sizes->size()));
  });
}

NEREID_KIT_EXPORT TRITONSERVER_Error* TRITONCACHE_CacheInsert(TRITONCACHE_Cache* cache,
                                                              const char* key,
                                                              TRITONCACHE_CacheEntry* entry,
                                                              TRITONCACHE_Allocator* allocator) {
  return EntryPoint([&]() -> Error {
    NEREID_KIT_TRY(nereid::cache::CheckArguments(cache, key, entry, allocator));
    NEREID_KIT_ASSIGN(const std::vector<size_t> sizes, nereid::cache::BufferSizes(entry));
    auto value = MakeValue(sizes);
    if (!value) return Error::Internal("the response is too large for Redis");
    NEREID_KIT_TRY(nereid::cache::CopyFromServer(
        entry, allocator, sizes,
        reinterpret_cast<std::byte*>(value->data()) + ValueHeaderSize(sizes.size())));
    // Replaces an existing value, because it may be damaged.
    const Outcome outcome = FromHandle(cache)->Run({"SET", key, *value});
    if (const auto* failure = std::get_if<Failure>(&outcome)) {
      return ToError(*failure, "insert", key);
    }
    return {};
  });
}
