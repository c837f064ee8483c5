// SPDX-License-Identifier: Apache-2.0
// What differs between kinds of object stores: how locations are written, how requests are signed
// and replies read. Everything else is shared by all of them (object_store.h).
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

// One reply to a list request.
struct ListPage {
  std::vector<Object> objects;
  std::string next;  // token of the next page; empty: this is the last one
};

// Why a request failed.
struct Failure {
  std::string name;  // the store's name for it, such as NoSuchBucket; may be empty
  std::string message;
  bool may_pass = false;  // worth a retry
};

// The protocol for one bucket (or container) and account. Thread-safe.
class Protocol {
 public:
  virtual ~Protocol() = default;

  // ListRequest and ReadRequest return requests that lack only `on_body`. They are called for every
  // attempt, because signatures and tokens expire. An error, such as a token that is unavailable,
  // is final.
  virtual base::Result<http_client::HttpRequest> ListRequest(const std::string& prefix,
                                                             const std::string& token) = 0;
  // Requests a range of the object if it still has this ETag; otherwise the store replies with 412.
  // (Object::etag is whatever identifies the contents in this kind of store.)
  virtual base::Result<http_client::HttpRequest> ReadRequest(const Object& object, Range range) = 0;

  // Requests a whole object as it is at this moment. The reply has EtagHeader.
  virtual base::Result<http_client::HttpRequest> CurrentRequest(const std::string& key) = 0;
  // Replaces the object if it still has this ETag, or makes it if there is none and `etag` is
  // empty; otherwise a store that can tell replies with 409 or 412.
  virtual base::Result<http_client::HttpRequest> WriteRequest(const std::string& key,
                                                              const std::string& text,
                                                              const std::string& etag) = 0;

  virtual base::Result<ListPage> ParseList(std::string_view body) const = 0;
  // Explains a complete reply that is not a success.
  virtual Failure Explain(const http_client::HttpReply& reply) const = 0;
  // Learns from such a reply what corrects the next request, such as the region of the bucket.
  // Returns whether there was anything new, so that a repeated request may succeed at once.
  virtual bool Learn(const http_client::HttpReply& /*reply*/) { return false; }
  // The header of a reply to a ReadRequest or CurrentRequest that has Object::etag, perhaps in
  // quotes.
  virtual std::string EtagHeader() const { return "etag"; }
  // Whether Object::md5 is not the MD5 of the bytes, according to the reply to a ReadRequest.
  virtual bool HasOtherMd5(const http_client::HttpReply& /*reply*/) const { return false; }

  // Names the bucket and its endpoint at the beginning of log lines.
  virtual std::string Describe() const = 0;
  // The errors that users see, in Triton's words.
  virtual base::Status ListError(const std::string& prefix, const Failure& failure) const = 0;
  virtual base::Status ReadError(const Object& object, const Failure& failure) const = 0;
  // Triton writes nothing; this error is ours.
  base::Status WriteError(const std::string& key, const Failure& failure) const;
};

// A location in a store. A value type.
struct Location {
  std::string bucket;       // the canonical address of the bucket
  std::string bucket_name;  // only its name
  std::string key;          // without slashes at its ends; empty: the whole bucket

  // Returns the canonical spelling.
  std::string ToString() const { return key.empty() ? bucket : bucket + "/" + key; }
  // Returns the key as a prefix for more: with a slash at its end unless it is empty.
  std::string Prefix() const { return key.empty() ? key : key + "/"; }
};

// One kind of object store. Thread-safe.
class Provider {
 public:
  virtual ~Provider() = default;

  // Parses a path as the user wrote it. Fails if no bucket is named.
  virtual base::Result<Location> Parse(std::string_view path) const = 0;

  // A bucket opened with one account.
  struct Access {
    // Identifies location and account, without secrets: the protocol is reused while this stays the
    // same.
    std::string identity;
    std::unique_ptr<Protocol> protocol;
  };
  // Finds the account for `path`, from the current files and variables. `client` is for stores that
  // issue tokens, and outlives the protocol.
  virtual base::Result<Access> Open(const std::string& path,
                                    http_client::HttpClient& client) const = 0;

  // The prefix of the error for a repository that cannot be reached, in Triton's words.
  virtual std::string CannotOpen() const = 0;
};

}  // namespace nereid::object_store
