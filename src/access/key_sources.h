// SPDX-License-Identifier: Apache-2.0
// The files and URLs of issuers' key sets, read again when they change.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "access/rules.h"
#include "access/token_keys.h"
#include "base/clock.h"
#include "http_client/http_client.h"

namespace nereid::access {

// The largest file of keys in bytes.
inline constexpr size_t kMaxKeyFile = size_t{16} << 20;

// A state of a file; equal states mean that the file need not be read again.
using FileStamp = std::array<uint64_t, 4>;
// All zero if there is no such file.
FileStamp StampOf(const std::string& path);
// At most `most` bytes; the error names the file.
base::Result<std::string> ReadSmallFile(const std::string& path, size_t most);

// Thread-compatible.
class KeySources {
 public:
  using Keys = std::shared_ptr<const TokenKeys>;

  // Reads the changed files, and asks the URLs that are due; `asks_urls` false leaves URLs for
  // later. Forgets what no rule needs. A source that cannot be read keeps the keys that it had, and
  // the log says why. Returns whether any keys have changed.
  bool Refresh(const Rules& rules, base::TimePoint now, bool asks_urls);
  // Makes URLs due that were not asked just now: a token named a key that is not there.
  void Expedite(base::TimePoint now);
  // Stops a request to a URL that is under way. Any thread.
  void Cancel() { stop_.request_stop(); }

  // Null if they could not be read yet.
  Keys Find(const std::string& location) const;

 private:
  static constexpr std::chrono::seconds kAskEvery{300};
  static constexpr std::chrono::seconds kRetryAfter{10};

  struct Source {
    Keys keys;
    std::string text;   // of the keys
    std::string error;  // that was logged last
    FileStamp stamp{};
    base::TimePoint asked_at{};
    base::TimePoint due{};
  };
  bool RefreshOne(const std::string& location, Source& source, base::TimePoint now);
  base::Result<std::string> Ask(const std::string& url);

  std::map<std::string, Source> sources_;
  http_client::HttpClient http_;
  std::stop_source stop_;
};

}  // namespace nereid::access
