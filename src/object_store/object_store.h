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
  // What is remembered of folders that do not exist is forgotten where more folders than this are
  // remembered. Only a client that guesses names asks for so many.
  size_t max_known = 4096;
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
  // What the listings of a folder have said. They are numbered in the order in which they begin.
  struct Known {
    Location location;
    base::Status status;                     // of the last one
    std::shared_ptr<const Listing> listing;  // the last one that succeeded; null: none
    base::TimePoint when;                    // the last one ended
    uint64_t number = 0;                     // of the last one
    uint64_t listing_number = 0;             // of `listing`
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
  // Lists a folder and returns the newest that is then known of it, which is from this listing or
  // from one that began later. `path` determines the account.
  Known Fetch(const std::string& path, const Location& location) const;
  // Returns a listing that is not dated.
  base::Result<std::shared_ptr<Listing>> Request(const std::string& path,
                                                 const Location& location) const;
  Known Remember(const Location& location, uint64_t number,
                 base::Result<std::shared_ptr<Listing>> listed) const;
  bool IsOldRoot(const Location& location) const;
  // Returns the newest that is known of a node; null: nothing.
  const Known* FindKnown(const Location& location) const NEREID_REQUIRES(mutex_);
  // Whether a listing of this number is older than what is known.
  bool IsOutdated(const Location& location, uint64_t number) const NEREID_REQUIRES(mutex_);
  // Returns all listings that have nodes in common with one of `location`, the newest last.
  std::vector<const Listing*> ListingsOf(const Location& location) const NEREID_REQUIRES(mutex_);
  // Drops what is known of the folders below from listings that began before this number.
  void DropBelow(const Location& location, uint64_t number) const NEREID_REQUIRES(mutex_);
  void ForgetMissing() const NEREID_REQUIRES(mutex_);
  bool IsMissing(const Known& known) const NEREID_REQUIRES(mutex_);
  base::Result<std::shared_ptr<Bucket>> BucketFor(const std::string& path) const;

  const std::unique_ptr<Provider> provider_;
  const ObjectStoreOptions options_;
  mutable http_client::HttpClient client_;
  mutable LocalCache cache_;
  mutable base::Mutex mutex_;
  // The keys are Location::ToString of the folders.
  mutable std::map<std::string, Known> known_ NEREID_GUARDED_BY(mutex_);
  mutable size_t forgets_at_ NEREID_GUARDED_BY(mutex_);  // the number of folders
  mutable uint64_t listings_ NEREID_GUARDED_BY(mutex_) = 0;
  // The keys are Provider::Access::identity, so that changed keys of an account make a new bucket.
  mutable std::map<std::string, std::shared_ptr<Bucket>> buckets_ NEREID_GUARDED_BY(mutex_);
};

}  // namespace nereid::object_store
