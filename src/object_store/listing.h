// SPDX-License-Identifier: Apache-2.0
// The objects under a prefix of a bucket at one moment, seen as files and folders.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "object_store/object.h"
#include "repository/store.h"

namespace nereid::object_store {

// A tree of files and folders. Thread-compatible; immutable once it is dated, and thread-safe then.
class Listing {
 public:
  // `objects` have keys that begin with `prefix` (empty, or with a slash at its end). Keys that
  // cannot be paths of files are left out: with "..", ".", nothing between slashes, zero bytes, or
  // parts that are too long for a file name. If a key is both a file and a folder, it is a folder.
  Listing(std::string prefix, std::vector<Object> objects);
  // Makes a listing and dates it by an earlier one, or by none (null).
  Listing(std::string prefix, std::vector<Object> objects, const Listing* before);

  // Stores report times in seconds, and do not report removals. Earlier listings of the same,
  // larger or smaller prefixes make up for that: each node is compared with the last of `before`
  // that covers it, and where it differs, it counts as changed after everything in all of them.
  // Called at most once.
  void Date(const std::vector<const Listing*>& before);

  // A file or a folder. A folder counts as changed when an entry was added or removed; times are
  // nanoseconds since 1970.
  struct Node {
    bool is_folder = false;
    int64_t modified_ns = 0;
    Object object;                            // of a file
    std::vector<repository::Entry> children;  // of a folder, sorted by name
  };
  // Finds by whole key, without a slash at its end; returns null if there is no such node.
  const Node* Find(std::string_view key) const;
  // Returns every file whose path begins with `folder` and a slash, by whole key, sorted.
  std::vector<const Object*> FilesUnder(const std::string& folder) const;
  // Returns the empty folders below `folder`, by whole key, sorted.
  std::vector<std::string> EmptyFoldersUnder(const std::string& folder) const;

  // Some of the keys that were left out.
  const std::vector<std::string>& refused() const { return refused_; }
  const std::string& prefix() const { return prefix_; }

 private:
  void Add(Object object);
  // Dates the nodes that `before` covers.
  void Compare(const Listing& before, int64_t change_ns);

  const std::string prefix_;
  std::map<std::string, Node, std::less<>> nodes_;
  int64_t newest_ns_ = 0;  // no node here, or in a listing before this one, has a later time
  std::vector<std::string> refused_;
};

}  // namespace nereid::object_store
