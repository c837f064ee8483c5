// SPDX-License-Identifier: Apache-2.0
// Downloads objects: several at once, large ones in several parts at once, each part straight into
// its place in the file. When an attempt ends early, the next one continues from it, also in
// another process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "object_store/bucket.h"
#include "object_store/object.h"

namespace nereid::object_store {

// One object to download, and its file.
struct Download {
  Object object;
  // The final path of the object, complete and read-only; the content is checked before the file
  // gets this name. Before that there are <path>.part, which is locked by the process that writes
  // it, and <path>.done with a byte for each block.
  std::string path;
};

// The limits of one FetchAll, over all its objects.
struct DownloadOptions {
  size_t connections = 8;         // concurrent requests
  uint64_t part_bytes = 8 << 20;  // the size of one request, in whole MiB
};

// Returns when all are downloaded or one has failed, which cancels the others. Waits for other
// processes that download the same file.
base::Status FetchAll(Bucket& bucket, const std::vector<Download>& downloads,
                      const DownloadOptions& options);

// Whether there is a file of this size.
bool IsThere(const std::string& path, uint64_t size);

}  // namespace nereid::object_store
