// SPDX-License-Identifier: Apache-2.0
// Brings objects to this machine: several at once, large ones in several parts at once, each part
// straight into its place in the file. What is there when an attempt ends early is there for the
// next one, also of another process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "object_store/bucket.h"
#include "object_store/object.h"

namespace nereid::object_store {

// One object to be fetched, and the file that it becomes.
struct Download {
  Object object;
  // Where the object will be, whole and read-only; it is checked before it gets this name.
  // Meanwhile there are <path>.part, which is locked by the process that works on it, and
  // <path>.done, a byte for each part.
  std::string path;
};

// How much is fetched at the same time, over all objects of one FetchAll.
struct DownloadOptions {
  size_t connections = 8;         // at once
  uint64_t part_bytes = 8 << 20;  // what one request fetches; in whole MiB
};

// Returns when all are there or one has failed, which cancels the others. Waits for other processes
// that fetch the same file.
base::Status FetchAll(Bucket& bucket, const std::vector<Download>& downloads,
                      const DownloadOptions& options);

// Whether there is a file of this size.
bool IsThere(const std::string& path, uint64_t size);

}  // namespace nereid::object_store
