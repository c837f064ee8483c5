// SPDX-License-Identifier: Apache-2.0
// The two questions that a model repository asks S3: what is there, and what is in it. Failures
// that may pass are tried again after growing pauses.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "s3/credentials.h"
#include "s3/location.h"
#include "s3/transport.h"

namespace nereid::s3 {

struct Object {
  std::string key;
  std::string etag;  // without quotes
  uint64_t size = 0;
  int64_t modified_ns = 0;  // since 1970
};

// Some bytes of one object.
struct Range {
  uint64_t offset = 0;
  uint64_t size = 0;  // at least 1
};

struct RetryPolicy {
  int attempts = 5;  // without any byte of progress between them
  std::chrono::milliseconds first_pause{100};
  std::chrono::milliseconds longest_pause{2000};
};

// A bucket with the account to use for it. Thread-safe.
class Client {
 public:
  // `transport` outlives it. `location` is the place in whose name errors are told.
  Client(Transport& transport, Location location, Account account, RetryPolicy policy = {});

  // Every object whose key begins with `prefix`, sorted. Errors have the texts of Triton and name
  // the bucket and where it was looked for.
  base::Result<std::vector<Object>> List(const std::string& prefix);
  // Hands the bytes of a range of the object to `write`, in their order, each once; an error of
  // `write` ends it. An error when the object is not the one with this ETag and size any more. The
  // answer is whether an ETag that looks like an MD5 is one, which depends on the encryption.
  base::Result<bool> Read(const Object& object, Range range,
                          const std::function<base::Status(std::string_view)>& write);

 private:
  // A question whose answer was not 2xx, or incomplete.
  struct Failure {
    std::string name;  // as S3 calls it, such as NoSuchBucket; may be empty
    std::string message;
    bool may_pass = false;  // worth another try
  };

  HttpRequest Sign(const std::string& key, const std::string& query,
                   std::map<std::string, std::string> headers) const;
  Failure Explain(const HttpReply& reply) const;
  base::Status ListFailed(const std::string& prefix, const Failure& failure) const;
  base::Status ReadFailed(const Object& object, const Failure& failure) const;
  base::Status Changed(const Object& object) const;
  // Whether `size` bytes, the first behind `head` (none: later ones), can be those of `range`.
  base::Status CheckPart(const Object& object, Range range, const HttpReply& head,
                         size_t size) const;
  // Asks until there is an answer or no hope; the last one, and why it is none. Hope lasts as long
  // as `progress` grows between attempts.
  struct Answer {
    HttpReply reply;
    std::optional<Failure> failure;
  };
  Answer Ask(const std::function<HttpRequest()>& make, const uint64_t& progress);
  // Takes the region from an answer that knows it better; whether there was one.
  bool LearnRegion(const HttpReply& reply);
  std::string region() const;

  Transport& transport_;
  const Location location_;
  const Account account_;
  const RetryPolicy policy_;
  mutable base::Mutex mutex_;
  std::string region_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::s3
