// SPDX-License-Identifier: Apache-2.0
// What one kind of object store has of its own: how its places are written, how requests to it are
// signed and replies read. Everything else is shared by all of them (object_store.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "http_client/http_client.h"
#include "object_store/object.h"

namespace nereid::object_store {

// One reply to a request for a list.
struct ListPage {
  std::vector<Object> objects;
  std::string next;  // token of the next page; empty: this is the last one
};

// Why a request was not answered, or not as it must be.
struct Failure {
  std::string name;  // as the store calls it, such as NoSuchBucket; may be empty
  std::string message;
  bool may_pass = false;  // worth another try
};

// One bucket (or container) and the account to use for it. Thread-safe.
class Protocol {
 public:
  virtual ~Protocol() = default;

  // Requests, complete but for `on_body`. Made anew for every attempt, as signatures and tokens
  // age. An error, such as a token that cannot be had, is final.
  virtual base::Result<http_client::HttpRequest> ListRequest(const std::string& prefix,
                                                             const std::string& token) = 0;
  // For a range of the object, if it still has this ETag: otherwise the store answers with 412.
  virtual base::Result<http_client::HttpRequest> ReadRequest(const Object& object, Range range) = 0;

  virtual base::Result<ListPage> ParseList(std::string_view body) const = 0;
  // What a complete reply that is no success says.
  virtual Failure Explain(const http_client::HttpReply& reply) const = 0;
  // Takes from such a reply what makes the next request right, such as the region that the bucket
  // is in; whether there was something new, so that the request is worth repeating at once.
  virtual bool Learn(const http_client::HttpReply& /*reply*/) { return false; }
  // Whether Object::md5 is not that of the bytes, as the reply to a ReadRequest tells.
  virtual bool HasOtherMd5(const http_client::HttpReply& /*reply*/) const { return false; }

  // The bucket and where it is looked for, to begin a line of the log with.
  virtual std::string Describe() const = 0;
  // The errors that users see, in Triton's words.
  virtual base::Status ListError(const std::string& prefix, const Failure& failure) const = 0;
  virtual base::Status ReadError(const Object& object, const Failure& failure) const = 0;
};

// Where something lies. A value type.
struct Location {
  std::string bucket;       // the whole address of a bucket in one form for all ways to write it
  std::string bucket_name;  // its name alone
  std::string key;          // without slashes at its ends; empty: the whole bucket

  // The same in one form for all ways to write it.
  std::string ToString() const { return key.empty() ? bucket : bucket + "/" + key; }
  // The key, ready to have something appended: with a slash at its end unless it is empty.
  std::string Prefix() const { return key.empty() ? key : key + "/"; }
};

// One kind of object store. Thread-safe.
class Provider {
 public:
  virtual ~Provider() = default;

  // Reads a path as the user wrote it. An error when no bucket is named.
  virtual base::Result<Location> Parse(std::string_view path) const = 0;

  // A bucket opened with one account.
  struct Access {
    // Of place and account, without secrets: while it stays the same, so does the protocol.
    std::string identity;
    std::unique_ptr<Protocol> protocol;
  };
  // Finds the account for `path`, in files and variables as they are now. `client` is there for
  // stores that hand out tokens, and outlives the protocol.
  virtual base::Result<Access> Open(const std::string& path,
                                    http_client::HttpClient& client) const = 0;

  // What stands before the error of a repository that cannot be reached, in Triton's words.
  virtual std::string CannotOpen() const = 0;
};

}  // namespace nereid::object_store
