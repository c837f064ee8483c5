// SPDX-License-Identifier: Apache-2.0
// Sends commands to Redis over a pool of connections. While Redis is unreachable, commands fail at
// once, so that the server responds at its usual speed, and a thread tries to reach Redis once a
// second. The loss and the return of Redis are logged, but not every command in between.
#pragma once

#include <hiredis.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
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
  ~RedisClient();
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

  // How long to wait for a connection to be made, and then for each reply; 0: for ever.
  struct Patience {
    std::chrono::milliseconds connect;
    std::chrono::milliseconds reply;
  };
  Patience patience() const { return {settings_.connect_timeout, settings_.socket_timeout}; }

  std::variant<Connection, Failure> Connect(Patience patience) const;
  Outcome RunOn(Lease& lease, const std::vector<std::string_view>& command);
  static Outcome RunOnce(redisContext& connection, const std::vector<std::string_view>& command);
  // Called when Redis did not reply; starts the search for it, unless that is under way.
  void NoteLoss(const std::string& why);
  // Tries to reach Redis until it can be reached or this is destroyed.
  void Search();
  // Whether Redis replies to a new connection, be it with an error.
  bool IsThere() const;

  const RedisSettings settings_;
  const std::unique_ptr<Tls> tls_;  // null: plain TCP
  std::atomic<bool> is_lost_{false};
  backend::Mutex mutex_;
  backend::CondVar returned_;
  std::vector<Connection> idle_ NEREID_KIT_GUARDED_BY(mutex_);
  size_t leased_ NEREID_KIT_GUARDED_BY(mutex_) = 0;
  backend::CondVar ending_;
  bool is_ending_ NEREID_KIT_GUARDED_BY(mutex_) = false;
  std::thread searcher_ NEREID_KIT_GUARDED_BY(mutex_);  // one that found Redis stays to be joined
};

}  // namespace nereid::redis_cache
