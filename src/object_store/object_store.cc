// SPDX-License-Identifier: Apache-2.0
// The error texts follow Triton's core/src/filesystem/implementations/s3.h.
#include "object_store/object_store.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "repository/local_store.h"

namespace nereid::object_store {
namespace {

constexpr size_t kMaxBuckets = 64;

// Moves to the parent of a location; returns false at the bucket.
bool GoUp(Location& location) {
  if (location.key.empty()) return false;
  const size_t slash = location.key.rfind('/');
  location.key = slash == std::string::npos ? "" : location.key.substr(0, slash);
  return true;
}

std::string LastComponent(const Location& location) {
  const std::string& text = location.key.empty() ? location.bucket_name : location.key;
  return text.substr(text.rfind('/') + 1);
}

}  // namespace

ObjectStore::ObjectStore(std::unique_ptr<Provider> provider, ObjectStoreOptions options)
    : provider_(std::move(provider)),
      options_(std::move(options)),
      client_(options_.http),
      cache_(options_.cache),
      forgets_at_(options_.max_known) {}

base::Result<std::shared_ptr<Bucket>> ObjectStore::BucketFor(const std::string& path) const {
  NEREID_ASSIGN_OR_RETURN(Provider::Access access, provider_->Open(path, client_));
  base::MutexLock lock(mutex_);
  if (const auto found = buckets_.find(access.identity); found != buckets_.end()) {
    return found->second;
  }
  if (buckets_.size() > kMaxBuckets) buckets_.clear();  // keys that changed many times
  return buckets_[access.identity] =
             std::make_shared<Bucket>(client_, std::move(access.protocol), options_.retry);
}

// Listings overlap: a repository is listed as a whole, and each folder in it once more when it is
// loaded by name. Whatever was uploaded before a listing began is in it, so the one that began last
// is the newest, however long each took. What is known of a folder itself is always from a later
// listing than what is known of the folders above it: a listing that succeeds replaces what older
// ones said about folders below it, and one that is older than a listing of the same folder or
// above is not remembered. So the closest is the newest. Failures above a folder say nothing of it.
const ObjectStore::Known* ObjectStore::FindKnown(const Location& location) const {
  Location at = location;
  do {
    const auto found = known_.find(at.ToString());
    if (found != known_.end()) return &found->second;
  } while (GoUp(at));
  return nullptr;
}

bool ObjectStore::IsOutdated(const Location& location, uint64_t number) const {
  const auto own = known_.find(location.ToString());
  if (own != known_.end() && own->second.number > number) return true;
  for (Location at = location; GoUp(at);) {
    const auto above = known_.find(at.ToString());
    if (above != known_.end() && above->second.listing_number > number) return true;
  }
  return false;
}

std::vector<const Listing*> ObjectStore::ListingsOf(const Location& location) const {
  std::vector<std::pair<uint64_t, const Listing*>> found;
  const auto add = [&found](const Known& known) {
    if (known.listing) found.emplace_back(known.listing_number, known.listing.get());
  };
  Location at = location;
  do {
    const auto known = known_.find(at.ToString());
    if (known != known_.end()) add(known->second);
  } while (GoUp(at));
  const std::string below = location.ToString() + "/";
  for (auto it = known_.lower_bound(below); it != known_.end() && it->first.starts_with(below);
       ++it) {
    add(it->second);
  }
  std::sort(found.begin(), found.end());
  std::vector<const Listing*> listings;
  for (const auto& [number, listing] : found) listings.push_back(listing);
  return listings;
}

void ObjectStore::DropBelow(const Location& location, uint64_t number) const {
  const std::string below = location.ToString() + "/";
  for (auto it = known_.lower_bound(below); it != known_.end() && it->first.starts_with(below);) {
    it = it->second.number < number ? known_.erase(it) : std::next(it);
  }
}

// Only what says no more than the listings above it may be forgotten. Otherwise the next listing of
// the folder would be compared with an older one, and a change that is undone would be no change.
bool ObjectStore::IsMissing(const Known& known) const {
  Location at = known.location;
  do {
    const auto found = known_.find(at.ToString());
    if (found == known_.end() || !found->second.listing) continue;
    if (found->second.listing->Find(known.location.key) != nullptr) return false;
  } while (GoUp(at));
  return true;
}

void ObjectStore::ForgetMissing() const {
  for (auto it = known_.begin(); it != known_.end();) {
    it = IsMissing(it->second) ? known_.erase(it) : std::next(it);
  }
  forgets_at_ = std::max(options_.max_known, 2 * known_.size());
}

base::Result<std::shared_ptr<Listing>> ObjectStore::Request(const std::string& path,
                                                            const Location& location) const {
  NEREID_ASSIGN_OR_RETURN(const std::shared_ptr<Bucket> bucket, BucketFor(path));
  NEREID_ASSIGN_OR_RETURN(std::vector<Object> objects, bucket->List(location.Prefix()));
  auto listing = std::make_shared<Listing>(location.Prefix(), std::move(objects));
  for (const std::string& key : listing->refused()) {
    NEREID_LOG(kWarning, "object '{}' of bucket '{}' is ignored: its key is no path of a file", key,
               location.bucket_name);
  }
  return listing;
}

ObjectStore::Known ObjectStore::Remember(const Location& location, uint64_t number,
                                         base::Result<std::shared_ptr<Listing>> listed) const {
  base::MutexLock lock(mutex_);
  if (!IsOutdated(location, number)) {
    if (known_.size() >= forgets_at_) ForgetMissing();
    // Under the lock, because a listing is to be compared with all that anybody has seen before it.
    if (listed.ok()) {
      (*listed)->Date(ListingsOf(location));
      DropBelow(location, number);
    }
    Known& known = known_[location.ToString()];
    known.location = location;
    known.status = listed.status();
    known.when = std::chrono::steady_clock::now();
    known.number = number;
    if (listed.ok()) {
      known.listing = *std::move(listed);
      known.listing_number = number;
    }
  }
  return *FindKnown(location);
}

ObjectStore::Known ObjectStore::Fetch(const std::string& path, const Location& location) const {
  uint64_t number = 0;
  {
    base::MutexLock lock(mutex_);
    number = ++listings_;
  }
  return Remember(location, number, Request(path, location));
}

base::Result<ObjectStore::View> ObjectStore::Look(const std::string& path, Kind kind) const {
  View view;
  NEREID_ASSIGN_OR_RETURN(view.location, provider_->Parse(path));
  bool is_known = false;
  {
    base::MutexLock lock(mutex_);
    if (const Known* const known = FindKnown(view.location)) {
      view.known = *known;
      is_known = true;
    }
  }
  if (!is_known) {
    Location to_list = view.location;
    if (kind == Kind::kAny) GoUp(to_list);
    view.known = Fetch(path, to_list);
  }
  NEREID_RETURN_IF_ERROR(view.known.status);
  view.node = view.known.listing->Find(view.location.key);
  return view;
}

void ObjectStore::Refresh(const std::string& folder) const {
  const auto location = provider_->Parse(folder);
  if (!location.ok()) return;
  const Known known = Fetch(folder, *location);
  if (!known.status.ok()) NEREID_LOG(kError, "{}", known.status.message());
}

base::Status ObjectStore::CheckRepository(const std::string& repository) const {
  NEREID_ASSIGN_OR_RETURN(const Location location, provider_->Parse(repository));
  const Known known = Fetch(repository, location);
  if (!known.status.ok()) {
    return known.status.WithPrefix(provider_->CannotOpen());
  }
  if (known.listing->Find(location.key) == nullptr) {
    return base::InvalidArgumentError("repository path is not a valid directory");
  }
  return base::OkStatus();
}

bool ObjectStore::IsOldRoot(const Location& location) const {
  base::MutexLock lock(mutex_);
  const auto own = known_.find(location.ToString());
  if (own == known_.end()) return false;
  if (std::chrono::steady_clock::now() - own->second.when <= options_.root_stays) return false;
  for (Location at = location; GoUp(at);) {
    if (known_.contains(at.ToString())) return false;
  }
  return true;
}

base::Result<std::vector<repository::Entry>> ObjectStore::List(const std::string& folder) const {
  NEREID_ASSIGN_OR_RETURN(const Location location, provider_->Parse(folder));
  // A root that is listed without a refresh must not be out of date for long.
  if (IsOldRoot(location)) Fetch(folder, location);
  NEREID_ASSIGN_OR_RETURN(const View view, Look(folder, Kind::kFolder));
  if (view.node == nullptr || !view.node->is_folder) {
    return base::InternalError("failed to open directory " + folder);
  }
  return view.node->children;
}

bool ObjectStore::Exists(const std::string& path) const {
  const auto view = Look(path, Kind::kAny);
  return view.ok() && view->node != nullptr;
}

bool ObjectStore::IsFolder(const std::string& path) const {
  const auto view = Look(path, Kind::kFolder);
  return view.ok() && view->node != nullptr && view->node->is_folder;
}

base::Result<int64_t> ObjectStore::ModifiedNs(const std::string& path) const {
  NEREID_ASSIGN_OR_RETURN(const View view, Look(path, Kind::kAny));
  if (view.node == nullptr) return base::InternalError("failed to stat file " + path);
  return view.node->modified_ns;
}

base::Result<std::string> ObjectStore::Read(const std::string& path, size_t max_bytes) const {
  NEREID_ASSIGN_OR_RETURN(const View view, Look(path, Kind::kAny));
  if (view.node == nullptr || view.node->is_folder) {
    return base::InternalError("File does not exist at " + path);
  }
  if (view.node->object.size > max_bytes) {
    return base::InternalError(fmt::format(
        "failed to open text file for read {}: it is larger than {} bytes", path, max_bytes));
  }
  NEREID_ASSIGN_OR_RETURN(const std::shared_ptr<Bucket> bucket, BucketFor(path));
  NEREID_ASSIGN_OR_RETURN(const std::string copy,
                          cache_.OpenFile(*bucket, view.location.ToString(), view.node->object));
  return repository::LocalStore().Read(copy, max_bytes);
}

base::Result<repository::LocalFolder> ObjectStore::Localize(const std::string& folder) const {
  NEREID_ASSIGN_OR_RETURN(const View view, Look(folder, Kind::kFolder));
  if (view.node == nullptr) {
    return base::InternalError("directory or file does not exist at " + folder);
  }
  const std::string& key = view.location.key;
  const size_t start = key.empty() ? 0 : key.size() + 1;
  FolderContents contents;
  contents.origin = view.location.ToString();
  contents.name = LastComponent(view.location);
  for (const Object* object : view.known.listing->FilesUnder(key)) {
    contents.files.push_back({object->key.substr(start), *object});
  }
  for (const std::string& empty : view.known.listing->EmptyFoldersUnder(key)) {
    contents.folders.push_back(empty.substr(start));
  }
  NEREID_ASSIGN_OR_RETURN(const std::shared_ptr<Bucket> bucket, BucketFor(folder));
  return cache_.Open(*bucket, contents);
}

base::Result<std::optional<repository::SmallFile>> ObjectStore::ReadNow(
    const std::string& path, size_t max_bytes, const std::stop_token& stop) const {
  NEREID_ASSIGN_OR_RETURN(const Location location, provider_->Parse(path));
  NEREID_ASSIGN_OR_RETURN(const std::shared_ptr<Bucket> bucket, BucketFor(path));
  return bucket->ReadNow(location.key, max_bytes, stop);
}

base::Result<bool> ObjectStore::Replace(const std::string& path, const std::string& text,
                                        const std::optional<repository::SmallFile>& before) const {
  NEREID_ASSIGN_OR_RETURN(const Location location, provider_->Parse(path));
  NEREID_ASSIGN_OR_RETURN(const std::shared_ptr<Bucket> bucket, BucketFor(path));
  return bucket->Write(location.key, text, before ? before->mark : std::string());
}

}  // namespace nereid::object_store
