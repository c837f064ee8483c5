// SPDX-License-Identifier: Apache-2.0
#include "access/key_sources.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

#include <fmt/format.h>

#include "base/log.h"

namespace nereid::access {
namespace {

constexpr size_t kMaxKeySet = size_t{256} << 10;

}  // namespace

FileStamp StampOf(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return {};
  return {static_cast<uint64_t>(info.st_ino) ^ static_cast<uint64_t>(info.st_dev) << 40,
          static_cast<uint64_t>(info.st_size), static_cast<uint64_t>(info.st_mtim.tv_sec),
          static_cast<uint64_t>(info.st_mtim.tv_nsec) + 1};
}

base::Result<std::string> ReadSmallFile(const std::string& path, size_t most) {
  std::ifstream in(path, std::ios::binary);
  const auto fail = [&path](std::string_view why) {
    return base::InvalidArgumentError(fmt::format("'{}': {}", path, why));
  };
  if (!in) return fail(std::strerror(errno));
  std::string text(most + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return fail("it cannot be read");
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.size() > most) return fail(fmt::format("it has more than {} bytes", most));
  return text;
}

base::Result<std::string> KeySources::Ask(const std::string& url) {
  std::string text;
  http_client::HttpRequest request;
  request.url = url;
  request.timeout = std::chrono::seconds(10);
  request.stop = stop_.get_token();
  request.on_body = [&text](const http_client::HttpReply&, std::string_view bytes) {
    text += bytes;
    return text.size() <= kMaxKeySet;
  };
  const http_client::HttpReply reply = http_.Send(request);
  if (reply.is_success()) return text;
  return base::UnavailableError(fmt::format(
      "'{}': {}", url,
      reply.failure.empty() ? fmt::format("HTTP status {}", reply.status) : reply.failure));
}

bool KeySources::RefreshOne(const std::string& location, Source& source, base::TimePoint now) {
  base::Result<std::string> text = std::string();
  if (IsUrl(location)) {
    source.asked_at = now;
    text = Ask(location);
    source.due = now + (text.ok() ? kAskEvery : kRetryAfter);
  } else {
    const FileStamp stamp = StampOf(location);
    if (stamp == source.stamp && source.keys != nullptr) return false;
    if (stamp == source.stamp && !source.error.empty()) return false;
    source.stamp = stamp;
    text = ReadSmallFile(location, kMaxKeySet);
  }
  base::Status error = text.status();
  if (error.ok() && source.keys != nullptr && *text == source.text) {
    source.error.clear();
    return false;
  }
  if (error.ok()) {
    base::Result<TokenKeys> keys = TokenKeys::Parse(*text);
    if (keys.ok()) {
      NEREID_LOG(kInfo, "read {} keys for tokens from '{}'", keys->size(), location);
      source.keys = std::make_shared<const TokenKeys>(*std::move(keys));
      source.text = *std::move(text);
      source.error.clear();
      return true;
    }
    error = keys.status().WithPrefix(fmt::format("'{}': ", location));
  }
  if (source.error != error.message()) {
    source.error = std::string(error.message());
    NEREID_LOG(kError, "the keys for tokens cannot be read{}: {}",
               source.keys == nullptr ? "" : ", the old ones stay in use", source.error);
  }
  return false;
}

bool KeySources::Refresh(const Rules& rules, base::TimePoint now, bool asks_urls) {
  std::set<std::string_view> needed;
  bool has_changed = false;
  for (const TokenRule& rule : rules.tokens) {
    needed.insert(rule.keys);
    Source& source = sources_[rule.keys];
    if (IsUrl(rule.keys) && (!asks_urls || now < source.due)) continue;
    has_changed |= RefreshOne(rule.keys, source, now);
  }
  std::erase_if(sources_, [&needed](const auto& each) { return !needed.contains(each.first); });
  return has_changed;
}

void KeySources::Expedite(base::TimePoint now) {
  for (auto& [location, source] : sources_) {
    if (now - source.asked_at >= kRetryAfter) source.due = now;
  }
}

KeySources::Keys KeySources::Find(const std::string& location) const {
  const auto found = sources_.find(location);
  return found == sources_.end() ? nullptr : found->second.keys;
}

}  // namespace nereid::access
