// SPDX-License-Identifier: Apache-2.0
// Error texts: core/src/filesystem/implementations/s3.h of Triton.
#include "s3/client.h"

#include <algorithm>
#include <ctime>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/sleep.h"
#include "s3/list_page.h"

namespace nereid::s3 {
namespace {

// A thousand objects with the longest keys stay far below.
constexpr size_t kMaxPageBytes = 32 << 20;
constexpr size_t kMaxObjects = 2'000'000;

// Waits between half of `longest` and all of it: clients that met the same fault at the same time
// do not come back at the same time.
void Pause(std::chrono::milliseconds longest) {
  thread_local std::minstd_rand random{std::random_device{}()};
  std::uniform_int_distribution<int64_t> spread(longest.count() / 2, longest.count());
  base::SleepFor(std::chrono::milliseconds(spread(random)));
}

std::string_view WithoutQuotes(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    return text.substr(1, text.size() - 2);
  }
  return text;
}

std::string EndpointFor(const Location& location, const std::string& region) {
  if (!location.endpoint.empty()) return location.endpoint;
  return fmt::format("https://s3.{}.amazonaws.com{}", region,
                     region.starts_with("cn-") ? ".cn" : "");
}

// The Host header of requests to an endpoint, as libcurl writes it.
std::string HostOf(const std::string& endpoint) {
  const std::string host = endpoint.substr(endpoint.find("://") + 3);
  const std::string_view usual = endpoint.starts_with("https://") ? ":443" : ":80";
  return host.ends_with(usual) ? host.substr(0, host.size() - usual.size()) : host;
}

// Objects that are encrypted with keys of the user have ETags that say nothing about their bytes.
bool HasOtherEtag(const HttpReply& reply) {
  const auto encryption = reply.headers.find("x-amz-server-side-encryption");
  return (encryption != reply.headers.end() && encryption->second.starts_with("aws:kms")) ||
         reply.headers.contains("x-amz-server-side-encryption-customer-algorithm");
}

}  // namespace

Client::Client(Transport& transport, Location location, Account account, RetryPolicy policy)
    : transport_(transport),
      location_(std::move(location)),
      account_(std::move(account)),
      policy_(policy),
      region_(account_.region) {}

std::string Client::region() const {
  base::MutexLock lock(mutex_);
  return region_;
}

HttpRequest Client::Sign(const std::string& key, const std::string& query,
                         std::map<std::string, std::string> headers) const {
  const std::string region = this->region();
  const std::string endpoint = EndpointFor(location_, region);
  UnsignedRequest request;
  request.host = HostOf(endpoint);
  // The bucket in the path, as Triton has it: every server knows that form.
  request.path = "/" + PercentEncode(location_.bucket, false) + "/" + PercentEncode(key, true);
  request.query = query;
  request.headers = std::move(headers);
  HttpRequest signed_request;
  signed_request.url = endpoint + request.path + (query.empty() ? "" : "?" + query);
  signed_request.headers = SignedHeaders(request, account_.credentials, region, std::time(nullptr));
  return signed_request;
}

bool Client::LearnRegion(const HttpReply& reply) {
  if (!location_.endpoint.empty() || reply.status / 100 == 2) return false;
  const auto header = reply.headers.find("x-amz-bucket-region");
  const std::string region =
      header != reply.headers.end() ? header->second : ParseErrorBody(reply.body).region;
  base::MutexLock lock(mutex_);
  if (region.empty() || region == region_ || region.find_first_of("./:@") != region.npos) {
    return false;
  }
  region_ = region;
  return true;
}

Client::Failure Client::Explain(const HttpReply& reply) const {
  if (!reply.failure.empty()) return {"", reply.failure, !reply.is_final};
  const ErrorBody body = ParseErrorBody(reply.body);
  Failure failure;
  failure.name = body.code;
  failure.message =
      body.message.empty() ? fmt::format("HTTP status {}", reply.status) : body.message;
  failure.may_pass = reply.status >= 500 || reply.status == 429 || reply.status == 408 ||
                     body.code == "SlowDown" || body.code == "RequestTimeout";
  return failure;
}

base::Status Client::ListFailed(const std::string& prefix, const Failure& failure) const {
  return base::InternalError(fmt::format(
      "Could not list contents of directory at s3://{}/{} due to exception: {}, error message: {} "
      "(bucket '{}' at {})",
      location_.bucket, prefix, failure.name, failure.message, location_.bucket,
      EndpointFor(location_, region())));
}

base::Status Client::ReadFailed(const Object& object, const Failure& failure) const {
  return base::InternalError(
      fmt::format("Failed to get object at s3://{}/{} due to exception: {}, error message: {}",
                  location_.bucket, object.key, failure.name, failure.message));
}

Client::Answer Client::Ask(const std::function<HttpRequest()>& make, const uint64_t& progress) {
  int attempt = 1;
  std::chrono::milliseconds pause = policy_.first_pause;
  for (;;) {
    const uint64_t progress_before = progress;
    HttpReply reply = transport_.Get(make());
    if (reply.failure.empty() && reply.status / 100 == 2) return {std::move(reply), {}};
    Failure failure = Explain(reply);
    if (progress > progress_before) {
      attempt = 1;
      pause = policy_.first_pause;
    }
    const bool has_moved = LearnRegion(reply);
    if ((!failure.may_pass && !has_moved) || attempt >= policy_.attempts) {
      return {std::move(reply), std::move(failure)};
    }
    ++attempt;
    if (has_moved) continue;
    NEREID_LOG(kWarning, "S3 bucket '{}' at {}: {}{}{}; trying again ({} of {})", location_.bucket,
               EndpointFor(location_, region()), failure.name, failure.name.empty() ? "" : ": ",
               failure.message, attempt, policy_.attempts);
    Pause(pause);
    pause = std::min(pause * 2, policy_.longest_pause);
  }
}

base::Result<std::vector<Object>> Client::List(const std::string& prefix) {
  std::vector<Object> objects;
  std::string token;
  do {
    std::string query;  // sorted by name
    if (!token.empty()) query = "continuation-token=" + PercentEncode(token, false) + "&";
    query += "encoding-type=url&list-type=2&prefix=" + PercentEncode(prefix, false);
    std::string body;
    const auto make = [&] {
      body.clear();
      HttpRequest request = Sign("", query, {});
      request.on_body = [&body](const HttpReply&, std::string_view bytes) {
        body += bytes;
        return body.size() <= kMaxPageBytes;
      };
      return request;
    };
    const Answer answer = Ask(make, 0);
    if (answer.failure) return ListFailed(prefix, *answer.failure);
    base::Result<ListPage> page = ParseListPage(body);
    if (!page.ok()) return ListFailed(prefix, {"", std::string(page.status().message()), false});
    for (Object& object : page->objects) {
      if (object.key.starts_with(prefix)) objects.push_back(std::move(object));
    }
    const char* const endless = !page->next.empty() && page->next == token ? "the list does not end"
                                : objects.size() > kMaxObjects ? "there are too many objects"
                                                               : nullptr;
    if (endless != nullptr) return ListFailed(prefix, {"", endless, false});
    token = std::move(page->next);
  } while (!token.empty());
  std::sort(objects.begin(), objects.end(),
            [](const Object& a, const Object& b) { return a.key < b.key; });
  return objects;
}

base::Result<bool> Client::Read(const Object& object, Range range,
                                const std::function<base::Status(std::string_view)>& write) {
  uint64_t done = 0;
  base::Status refusal;  // why an answer was not wanted
  const auto take = [&](const HttpReply& head, std::string_view bytes) {
    refusal = CheckPart(object, {range.offset + done, range.size - done}, head, bytes.size());
    if (refusal.ok()) refusal = write(bytes);
    if (refusal.ok()) done += bytes.size();
    return refusal.ok();
  };
  const auto make = [&] {
    HttpRequest request = Sign(object.key, "",
                               {{"if-match", "\"" + object.etag + "\""},
                                {"range", fmt::format("bytes={}-{}", range.offset + done,
                                                      range.offset + range.size - 1)}});
    bool is_first = true;
    request.on_body = [&take, is_first](const HttpReply& head, std::string_view bytes) mutable {
      // Only at its beginning does a body begin where its head says.
      const HttpReply nothing;
      return take(std::exchange(is_first, false) ? head : nothing, bytes);
    };
    return request;
  };
  const Answer answer = Ask(make, done);
  if (!refusal.ok()) return refusal;
  if (done == range.size) return !HasOtherEtag(answer.reply);
  if (answer.reply.status == 412) return Changed(object);
  return ReadFailed(object, answer.failure.value_or(Failure{"", "the answer is too short", false}));
}

base::Status Client::CheckPart(const Object& object, Range range, const HttpReply& head,
                               size_t size) const {
  if (size > range.size) return ReadFailed(object, {"", "the answer is too long", false});
  if (head.status == 0) return base::OkStatus();
  const auto etag = head.headers.find("etag");
  if (etag != head.headers.end() && WithoutQuotes(etag->second) != object.etag) {
    return Changed(object);
  }
  // Whoever answers with the whole object instead of a part begins with other bytes.
  // Some servers answer a part with status 200, too.
  const auto part = head.headers.find("content-range");
  const bool begins_there = part == head.headers.end()
                                ? range.offset == 0
                                : part->second.starts_with(fmt::format("bytes {}-", range.offset));
  if (!begins_there) return ReadFailed(object, {"", "the answer is another part of it", false});
  return base::OkStatus();
}

base::Status Client::Changed(const Object& object) const {
  return ReadFailed(object, {"PreconditionFailed", "it was changed meanwhile", false});
}

}  // namespace nereid::s3
