// SPDX-License-Identifier: Apache-2.0
#include "redis_cache/redis_client.h"

#include <pthread.h>
#include <sys/time.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "cache_kit/entry.h"

namespace nereid::redis_cache {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSearchInterval{1000};
// The longest wait of an attempt to reach Redis again, so that it can end when the server does.
constexpr milliseconds kSearchPatience{1000};

// `patience`, where 0 is for ever, but not more than `most`.
milliseconds AtMost(milliseconds patience, milliseconds most) {
  return patience.count() == 0 ? most : std::min(patience, most);
}

timeval ToTimeval(milliseconds time) {
  return {.tv_sec = static_cast<time_t>(time.count() / 1000),
          .tv_usec = static_cast<suseconds_t>(time.count() % 1000 * 1000)};
}

Failure Unreachable(std::string message) { return {std::move(message), true}; }

const Failure* FailureOf(const Outcome& outcome) { return std::get_if<Failure>(&outcome); }

}  // namespace

class RedisClient::Lease {
 public:
  // Waits for a free place as long as the settings permit.
  static std::optional<Lease> Take(RedisClient& client) {
    const milliseconds most = client.settings_.wait_timeout;
    const auto deadline = backend::CondVar::Clock::now() + most;
    const size_t places = client.settings_.pool_size;
    const backend::MutexLock lock(client.mutex_);
    while (client.leased_ >= places) {
      if (most.count() == 0) {
        client.returned_.Wait(client.mutex_);
      } else if (!client.returned_.WaitUntil(client.mutex_, deadline) && client.leased_ >= places) {
        return std::nullopt;
      }
    }
    ++client.leased_;
    Lease lease(client);
    if (!client.idle_.empty()) {
      lease.connection = std::move(client.idle_.back());
      client.idle_.pop_back();
    }
    return lease;
  }
  Lease(Lease&& other) noexcept
      : connection(std::move(other.connection)), client_(std::exchange(other.client_, nullptr)) {}
  Lease& operator=(Lease&&) = delete;
  ~Lease() {
    if (client_ == nullptr) return;
    {
      const backend::MutexLock lock(client_->mutex_);
      --client_->leased_;
      if (connection != nullptr) client_->idle_.push_back(std::move(connection));
    }
    client_->returned_.NotifyOne();
  }

  Connection connection;  // null if not connected yet, or no longer

 private:
  explicit Lease(RedisClient& client) : client_(&client) {}

  RedisClient* client_;
};

std::variant<std::unique_ptr<RedisClient>, std::string> RedisClient::Create(
    RedisSettings settings) {
  std::unique_ptr<Tls> tls;
  if (settings.tls.is_enabled) {
    TlsResult made = MakeTls(settings.tls);
    if (made.tls == nullptr) return made.error;
    tls = std::move(made.tls);
  }
  std::unique_ptr<RedisClient> client(new RedisClient(std::move(settings), std::move(tls)));
  auto connected = client->Connect(client->patience());
  if (const auto* failure = std::get_if<Failure>(&connected)) return failure->message;
  auto& connection = std::get<Connection>(connected);
  const Outcome pong = RunOnce(*connection, {"PING"});
  if (const Failure* failure = FailureOf(pong)) return failure->message;
  {
    const backend::MutexLock lock(client->mutex_);
    client->idle_.push_back(std::move(connection));
  }
  return client;
}

RedisClient::~RedisClient() {
  std::thread searcher;
  {
    const backend::MutexLock lock(mutex_);
    is_ending_ = true;
    ending_.NotifyAll();
    searcher = std::move(searcher_);
  }
  if (searcher.joinable()) searcher.join();
}

std::variant<RedisClient::Connection, Failure> RedisClient::Connect(Patience patience) const {
  const auto failed = [this](std::string_view why) {
    return Unreachable(backend::StrCat("failed to connect to Redis (", settings_.host, ":",
                                       settings_.port, "): ", why));
  };
  Connection connection(patience.connect.count() == 0
                            ? redisConnect(settings_.host.c_str(), settings_.port)
                            : redisConnectWithTimeout(settings_.host.c_str(), settings_.port,
                                                      ToTimeval(patience.connect)));
  if (connection == nullptr) return failed("out of memory");
  if (connection->err != 0) return failed(connection->errstr);
  if (patience.reply.count() > 0 &&
      redisSetTimeout(connection.get(), ToTimeval(patience.reply)) != REDIS_OK) {
    return failed(connection->errstr);
  }
  // The connection is usable even if keep-alive cannot be enabled.
  (void)redisEnableKeepAlive(connection.get());
  if (tls_ != nullptr) {
    if (const std::string why = tls_->Secure(*connection); !why.empty()) return failed(why);
  }
  const auto run = [&](const std::vector<std::string_view>& command) -> std::optional<Failure> {
    Outcome outcome = RunOnce(*connection, command);
    if (auto* failure = std::get_if<Failure>(&outcome)) return std::move(*failure);
    return std::nullopt;
  };
  if (!settings_.password.empty()) {
    auto refused = settings_.user.empty() ? run({"AUTH", settings_.password})
                                          : run({"AUTH", settings_.user, settings_.password});
    if (refused) return *std::move(refused);
  }
  if (settings_.database != 0) {
    if (auto refused = run({"SELECT", std::to_string(settings_.database)})) {
      return *std::move(refused);
    }
  }
  return connection;
}

Outcome RedisClient::RunOnce(redisContext& connection,
                             const std::vector<std::string_view>& command) {
  std::vector<const char*> words;
  std::vector<size_t> sizes;
  for (const std::string_view word : command) {
    words.push_back(word.data());
    sizes.push_back(word.size());
  }
  Reply reply(static_cast<redisReply*>(
      redisCommandArgv(&connection, static_cast<int>(words.size()), words.data(), sizes.data())));
  if (reply == nullptr) {
    return Unreachable(connection.err != 0 ? connection.errstr : "no reply from Redis");
  }
  if (reply->type == REDIS_REPLY_ERROR) return Failure{std::string(reply->str, reply->len), false};
  return reply;
}

Outcome RedisClient::RunOn(Lease& lease, const std::vector<std::string_view>& command) {
  if (lease.connection != nullptr) {
    Outcome outcome = RunOnce(*lease.connection, command);
    const Failure* const failure = FailureOf(outcome);
    if (failure == nullptr || !failure->is_unreachable) return outcome;
    const bool was_closed = lease.connection->err == REDIS_ERR_EOF;
    lease.connection.reset();
    // Redis closes idle connections, and all of them when it restarts, so one new connection is
    // worth trying. After a timeout it is not, because the next command would only wait again.
    if (!was_closed) return outcome;
  }
  auto connected = Connect(patience());
  if (auto* failure = std::get_if<Failure>(&connected)) return std::move(*failure);
  lease.connection = std::move(std::get<Connection>(connected));
  Outcome outcome = RunOnce(*lease.connection, command);
  const Failure* const failure = FailureOf(outcome);
  if (failure != nullptr && failure->is_unreachable) lease.connection.reset();
  return outcome;
}

void RedisClient::NoteLoss(const std::string& why) {
  if (is_lost_.exchange(true)) return;
  cache::Log(
      TRITONSERVER_LOG_WARN, __FILE__, __LINE__,
      "response cache: Redis cannot be reached; requests run without the cache until it can: " +
          why);
  const backend::MutexLock lock(mutex_);
  if (is_ending_) return;
  if (searcher_.joinable()) searcher_.join();  // it found Redis, which was the last thing it did
  try {
    searcher_ = std::thread([this] { Search(); });
  } catch (const std::system_error&) {
    is_lost_.store(false);  // the next command makes the attempt
  }
}

bool RedisClient::IsThere() const {
  const auto connected = Connect({AtMost(settings_.connect_timeout, kSearchPatience),
                                  AtMost(settings_.socket_timeout, kSearchPatience)});
  if (const auto* failure = std::get_if<Failure>(&connected)) return !failure->is_unreachable;
  const Outcome pong = RunOnce(*std::get<Connection>(connected), {"PING"});
  const Failure* const failure = FailureOf(pong);
  return failure == nullptr || !failure->is_unreachable;
}

void RedisClient::Search() {
  pthread_setname_np(pthread_self(), "redis-search");
  do {
    const backend::MutexLock lock(mutex_);
    const auto next = backend::CondVar::Clock::now() + kSearchInterval;
    while (!is_ending_ && ending_.WaitUntil(mutex_, next)) continue;
    if (is_ending_) return;
  } while (!IsThere());
  cache::Log(TRITONSERVER_LOG_INFO, __FILE__, __LINE__,
             "response cache: Redis can be reached again");
  is_lost_.store(false);
}

Outcome RedisClient::Run(const std::vector<std::string_view>& command) {
  const auto lost = [] { return Unreachable("Redis could not be reached a moment ago"); };
  if (is_lost_.load()) return lost();
  std::optional<Lease> lease = Lease::Take(*this);
  // If all connections are in use, Redis may still be reachable.
  if (!lease) return Unreachable("no connection to Redis was free in time");
  // Those that waited for the connection must not all find out for themselves.
  if (is_lost_.load()) return lost();
  Outcome outcome = RunOn(*lease, command);
  const Failure* const failure = FailureOf(outcome);
  if (failure != nullptr && failure->is_unreachable) NoteLoss(failure->message);
  return outcome;
}

}  // namespace nereid::redis_cache
