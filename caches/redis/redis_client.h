// SPDX-License-Identifier: Apache-2.0
// Sends commands to Redis over a pool of connections. While Redis is unreachable, commands fail at
// once except for one attempt per second, so that the server responds at its usual speed. The loss
// and the return of Redis are logged, but not every command in between.
#pragma once

#include <hiredis.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "backend_kit/mutex.h"
#include "redis_cache/redis_settings.h"
#include "redis_cache/tls.h"

namespace nereid::redis_cache {

// Calls freeReplyObject.
struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

// Why a command has no result.
struct Failure {
  std::string message;
  bool is_unreachable = false;  // there was no reply from Redis
};

// A reply that is not an error, or a failure.
using Outcome = std::variant<Reply, Failure>;

// A client. Thread-safe.
class RedisClient {
 public:
  // Connects once to validate the settings; otherwise returns the reason.
  static std::variant<std::unique_ptr<RedisClient>, std::string> Create(RedisSettings settings);
  RedisClient(const RedisClient&) = delete;
  RedisClient& operator=(const RedisClient&) = delete;

  Outcome Run(const std::vector<std::string_view>& command);

 private:
  // Calls redisFree.
  struct FreeConnection {
    void operator()(redisContext* connection) const { redisFree(connection); }
  };
  using Connection = std::unique_ptr<redisContext, FreeConnection>;
  // A place in the pool, with a connection or with permission to make one.
  class Lease;

  RedisClient(RedisSettings settings, std::unique_ptr<Tls> tls)
      : settings_(std::move(settings)), tls_(std::move(tls)) {}

  std::variant<Connection, Failure> Connect() const;
  Outcome RunOn(Lease& lease, const std::vector<std::string_view>& command);
  static Outcome RunOnce(redisContext& connection, const std::vector<std::string_view>& command);
  // Whether a command may be attempted now.
  bool MayTry();
  void NoteResult(const Outcome& outcome);

  const RedisSettings settings_;
  const std::unique_ptr<Tls> tls_;       // null: plain TCP
  std::atomic<int64_t> retry_at_ns_{0};  // 0: Redis is assumed to be reachable
  backend::Mutex mutex_;
  backend::CondVar returned_;
  std::vector<Connection> idle_ NEREID_KIT_GUARDED_BY(mutex_);
  size_t leased_ NEREID_KIT_GUARDED_BY(mutex_) = 0;
};

}  // namespace nereid::redis_cache
