// SPDX-License-Identifier: Apache-2.0
// Model repositories in object stores of any kind.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "http_client/http_client.h"
#include "http_client/retry.h"
#include "object_store/bucket.h"
#include "object_store/listing.h"
#include "object_store/local_cache.h"
#include "object_store/provider.h"
#include "repository/store.h"

namespace nereid::object_store {

// The settings that all kinds of object stores share: the cache, and the requests to the store.
struct ObjectStoreOptions {
  LocalCacheOptions cache;
  http_client::HttpClientOptions http;
  http_client::RetryPolicy retry;
  // The root of a repository is listed again when the last listing is older than this.
  std::chrono::milliseconds root_stays{10'000};
};

// A store that lists a whole repository at each refresh and serves all other calls from that
// listing, so a scan costs one request for each thousand objects. Files come from a cache on this
// machine. Thread-safe.
class ObjectStore final : public repository::Store {
 public:
  ObjectStore(std::unique_ptr<Provider> provider, ObjectStoreOptions options);

  base::Result<std::vector<repository::Entry>> List(const std::string& folder) const override;
  bool Exists(const std::string& path) const override;
  bool IsFolder(const std::string& path) const override;
  base::Result<std::string> Read(const std::string& path, size_t max_bytes) const override;
  base::Result<int64_t> ModifiedNs(const std::string& path) const override;
  base::Status CheckRepository(const std::string& repository) const override;
  void Refresh(const std::string& folder) const override;
  base::Result<repository::LocalFolder> Localize(const std::string& folder) const override;
  base::Result<std::optional<repository::SmallFile>> ReadNow(
      const std::string& path, size_t max_bytes, const std::stop_token& stop) const override;
  base::Result<bool> Replace(const std::string& path, const std::string& text,
                             const std::optional<repository::SmallFile>& before) const override;

 private:
  // The result of the last listing of a folder. Immutable.
  struct Known {
    base::Status status;
    std::shared_ptr<const Listing> listing;  // the last successful listing; null: none
    base::TimePoint when;
    uint64_t number = 0;  // the number of the refresh
  };
  // A node: its location and the newest listing that covers it.
  struct View {
    Location location;
    Known known;
    const Listing::Node* node = nullptr;
  };

  // Returns the node from the newest listing that covers it. If there is none, it lists the folder,
  // or for kAny the parent of what may be a file; fails if that fails.
  enum class Kind { kFolder, kAny };
  base::Result<View> Look(const std::string& path, Kind kind) const;
  // `path` determines the account.
  Known Fetch(const std::string& path, const Location& location) const;
  std::optional<Known> FindKnown(const Location& location) const;
  base::Result<std::shared_ptr<Bucket>> BucketFor(const std::string& path) const;

  const std::unique_ptr<Provider> provider_;
  const ObjectStoreOptions options_;
  mutable http_client::HttpClient client_;
  mutable LocalCache cache_;
  mutable base::Mutex mutex_;
  // The keys are Location::ToString of the folders.
  mutable std::map<std::string, Known> known_ NEREID_GUARDED_BY(mutex_);
  mutable uint64_t refreshes_ NEREID_GUARDED_BY(mutex_) = 0;
  // The keys are Provider::Access::identity, so that changed keys of an account make a new bucket.
  mutable std::map<std::string, std::shared_ptr<Bucket>> buckets_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::object_store
