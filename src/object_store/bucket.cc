// SPDX-License-Identifier: Apache-2.0
#include "object_store/bucket.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"

namespace nereid::object_store {
namespace {

using http_client::HttpReply;
using http_client::HttpRequest;

// A thousand objects with the longest keys are far smaller.
constexpr size_t kMaxPageBytes = 32 << 20;
constexpr size_t kMaxObjects = 2'000'000;
// For a small object.
constexpr std::chrono::seconds kTimeoutNow{10};

std::string_view WithoutQuotes(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    return text.substr(1, text.size() - 2);
  }
  return text;
}

}  // namespace

Bucket::Bucket(http_client::HttpClient& client, std::unique_ptr<Protocol> protocol,
               http_client::RetryPolicy policy)
    : client_(client), protocol_(std::move(protocol)), policy_(policy) {}

Failure Bucket::Explain(const HttpReply& reply) const {
  if (!reply.failure.empty()) return {"", reply.failure, !reply.is_final};
  return protocol_->Explain(reply);
}

Bucket::Outcome Bucket::Ask(const MakeRequest& make, const uint64_t& progress,
                            const std::stop_token& stop) {
  http_client::Attempts attempts(policy_, stop);
  for (;;) {
    const uint64_t progress_before = progress;
    base::Result<HttpRequest> request = make();
    if (!request.ok()) {
      return {{}, Failure{"", std::string(request.status().message()), /*may_pass=*/false}};
    }
    request->stop = stop;
    HttpReply reply = client_.Send(*request);
    if (reply.is_success()) return {std::move(reply), {}};
    Failure failure = Explain(reply);
    if (progress > progress_before) attempts.Restart();
    const bool is_wiser = reply.status / 100 != 2 && protocol_->Learn(reply);
    if ((!failure.may_pass && !is_wiser) || !attempts.Next()) {
      return {std::move(reply), std::move(failure)};
    }
    if (is_wiser) continue;
    NEREID_LOG(kWarning, "{}: {}{}{}; trying again ({} of {})", protocol_->Describe(), failure.name,
               failure.name.empty() ? "" : ": ", failure.message, attempts.number(),
               policy_.attempts);
    attempts.Pause();
  }
}

base::Result<std::vector<Object>> Bucket::List(const std::string& prefix) {
  std::vector<Object> objects;
  std::string token;
  do {
    std::string body;
    const auto make = [&]() -> base::Result<HttpRequest> {
      body.clear();
      NEREID_ASSIGN_OR_RETURN(HttpRequest request, protocol_->ListRequest(prefix, token));
      request.on_body = [&body](const HttpReply&, std::string_view bytes) {
        body += bytes;
        return body.size() <= kMaxPageBytes;
      };
      return request;
    };
    const Outcome outcome = Ask(make, 0, {});
    if (outcome.failure) return protocol_->ListError(prefix, *outcome.failure);
    base::Result<ListPage> page = protocol_->ParseList(body);
    if (!page.ok()) {
      return protocol_->ListError(prefix, {"", std::string(page.status().message()), false});
    }
    for (Object& object : page->objects) {
      if (object.key.starts_with(prefix)) objects.push_back(std::move(object));
    }
    const char* const endless = !page->next.empty() && page->next == token ? "the list does not end"
                                : objects.size() > kMaxObjects ? "there are too many objects"
                                                               : nullptr;
    if (endless != nullptr) return protocol_->ListError(prefix, {"", endless, false});
    token = std::move(page->next);
  } while (!token.empty());
  std::sort(objects.begin(), objects.end(),
            [](const Object& a, const Object& b) { return a.key < b.key; });
  return objects;
}

base::Result<bool> Bucket::Read(const Object& object, Range range,
                                const std::function<base::Status(std::string_view)>& write,
                                const std::stop_token& stop) {
  uint64_t done = 0;
  base::Status refusal;  // why a reply was refused
  const auto take = [&](const HttpReply& head, std::string_view bytes) {
    refusal = CheckPart(object, {range.offset + done, range.size - done}, head, bytes.size());
    if (refusal.ok()) refusal = write(bytes);
    if (refusal.ok()) done += bytes.size();
    return refusal.ok();
  };
  const auto make = [&]() -> base::Result<HttpRequest> {
    NEREID_ASSIGN_OR_RETURN(
        HttpRequest request,
        protocol_->ReadRequest(object, {range.offset + done, range.size - done}));
    bool is_first = true;
    request.on_body = [&take, is_first](const HttpReply& head, std::string_view bytes) mutable {
      // The head describes only the first bytes of the body.
      const HttpReply nothing;
      return take(std::exchange(is_first, false) ? head : nothing, bytes);
    };
    return request;
  };
  const Outcome outcome = Ask(make, done, stop);
  if (!refusal.ok()) return refusal;
  if (done == range.size) return !protocol_->HasOtherMd5(outcome.reply);
  if (outcome.reply.status == 412) return Changed(object);
  return protocol_->ReadError(
      object, outcome.failure.value_or(Failure{"", "the reply is too short", false}));
}

base::Result<std::optional<repository::SmallFile>> Bucket::ReadNow(const std::string& key,
                                                                   size_t max_bytes,
                                                                   const std::stop_token& stop) {
  const Object object{.key = key};
  for (bool is_first = true;; is_first = false) {
    std::string text;
    bool is_too_long = false;
    base::Result<HttpRequest> request = protocol_->CurrentRequest(key);
    if (!request.ok()) {
      return protocol_->ReadError(object, {"", std::string(request.status().message()), false});
    }
    request->stop = stop;
    request->timeout = kTimeoutNow;
    request->on_body = [&](const HttpReply&, std::string_view bytes) {
      text += bytes;
      is_too_long = text.size() > max_bytes;
      return !is_too_long;
    };
    const HttpReply reply = client_.Send(*request);
    if (reply.is_success()) {
      const auto etag = reply.headers.find(protocol_->EtagHeader());
      return std::optional<repository::SmallFile>(
          {std::move(text),
           etag == reply.headers.end() ? std::string() : std::string(WithoutQuotes(etag->second))});
    }
    if (is_too_long) {
      return protocol_->ReadError(
          object, {"", fmt::format("it is larger than {} bytes", max_bytes), false});
    }
    if (reply.status == 404) return std::optional<repository::SmallFile>();
    if (is_first && reply.status / 100 != 2 && protocol_->Learn(reply)) continue;
    return protocol_->ReadError(object, Explain(reply));
  }
}

base::Result<bool> Bucket::Write(const std::string& key, const std::string& text,
                                 const std::string& etag) {
  const auto make = [&] { return protocol_->WriteRequest(key, text, etag); };
  const Outcome outcome = Ask(make, 0, {});
  if (!outcome.failure) return true;
  if (outcome.reply.status == 409 || outcome.reply.status == 412) return false;
  return protocol_->WriteError(key, *outcome.failure);
}

base::Status Bucket::CheckPart(const Object& object, Range range, const HttpReply& head,
                               size_t size) const {
  if (size > range.size) {
    return protocol_->ReadError(object, {"", "the reply is too long", false});
  }
  if (head.status == 0) return base::OkStatus();
  const auto etag = head.headers.find(protocol_->EtagHeader());
  if (etag != head.headers.end() && WithoutQuotes(etag->second) != object.etag) {
    return Changed(object);
  }
  // A server that sends the whole object instead of a part begins with other bytes. Some servers
  // send a part with status 200.
  const auto part = head.headers.find("content-range");
  const bool begins_there = part == head.headers.end()
                                ? range.offset == 0
                                : part->second.starts_with(fmt::format("bytes {}-", range.offset));
  if (begins_there) return base::OkStatus();
  return protocol_->ReadError(object, {"", "the reply is another part of the object", false});
}

base::Status Bucket::Changed(const Object& object) const {
  return protocol_->ReadError(object, {"PreconditionFailed", "it was changed meanwhile", false});
}

base::Status Protocol::WriteError(const std::string& key, const Failure& failure) const {
  return base::InternalError(fmt::format("Failed to write object {}: {}{}{} ({})", key,
                                         failure.name, failure.name.empty() ? "" : ": ",
                                         failure.message, Describe()));
}

}  // namespace nereid::object_store
