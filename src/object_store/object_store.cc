// SPDX-License-Identifier: Apache-2.0
// The error texts follow Triton's core/src/filesystem/implementations/s3.h.
#include "object_store/object_store.h"

#include <optional>

#include <fmt/format.h>

#include "base/log.h"
#include "repository/local_store.h"

namespace nereid::object_store {
namespace {

// The number of folders that are remembered. Only a client that guesses names would ask for more.
constexpr size_t kMaxKnown = 4096;
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
      cache_(options_.cache) {}

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

std::optional<ObjectStore::Known> ObjectStore::FindKnown(const Location& location) const {
  std::optional<Known> newest;
  Location at = location;
  base::MutexLock lock(mutex_);
  do {
    const auto found = known_.find(at.ToString());
    if (found != known_.end() && (!newest || found->second.number > newest->number)) {
      newest = found->second;
    }
  } while (GoUp(at));
  return newest;
}

ObjectStore::Known ObjectStore::Fetch(const std::string& path, const Location& location) const {
  const std::optional<Known> before = FindKnown(location);
  Known known;
  if (before) known.listing = before->listing;
  const auto bucket = BucketFor(path);
  if (bucket.ok()) {
    auto objects = (*bucket)->List(location.Prefix());
    if (objects.ok()) {
      known.listing = std::make_shared<const Listing>(location.Prefix(), std::move(*objects),
                                                      known.listing.get());
    } else {
      known.status = objects.status();
    }
  } else {
    known.status = bucket.status();
  }
  known.when = std::chrono::steady_clock::now();
  if (known.status.ok()) {
    for (const std::string& key : known.listing->refused()) {
      NEREID_LOG(kWarning, "object '{}' of bucket '{}' is ignored: its key is no path of a file",
                 key, location.bucket_name);
    }
  }
  const std::string name = location.ToString();
  base::MutexLock lock(mutex_);
  known.number = ++refreshes_;
  // Older knowledge of folders within it is outdated.
  if (known.status.ok()) {
    for (auto it = known_.lower_bound(name + "/");
         it != known_.end() && it->first.starts_with(name + "/");) {
      it = known_.erase(it);
    }
  }
  if (known_.size() >= kMaxKnown) {
    known_.erase(std::min_element(known_.begin(), known_.end(), [](const auto& a, const auto& b) {
      return a.second.number < b.second.number;
    }));
  }
  known_[name] = known;
  return known;
}

base::Result<ObjectStore::View> ObjectStore::Look(const std::string& path, Kind kind) const {
  View view;
  NEREID_ASSIGN_OR_RETURN(view.location, provider_->Parse(path));
  std::optional<Known> known = FindKnown(view.location);
  Location to_list = view.location;
  if (!known && kind == Kind::kAny) GoUp(to_list);
  view.known = known ? std::move(*known) : Fetch(path, to_list);
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

base::Result<std::vector<repository::Entry>> ObjectStore::List(const std::string& folder) const {
  NEREID_ASSIGN_OR_RETURN(const Location location, provider_->Parse(folder));
  {
    // A root that is listed without a refresh must not be out of date for long.
    base::MutexLock lock(mutex_);
    const auto found = known_.find(location.ToString());
    if (found != known_.end() &&
        std::chrono::steady_clock::now() - found->second.when > options_.root_stays) {
      found->second.number = 0;
    }
  }
  base::Result<View> view = Look(folder, Kind::kFolder);
  if (view.ok() && view->known.number == 0) {
    static_cast<void>(Fetch(folder, location));
    view = Look(folder, Kind::kFolder);
  }
  NEREID_RETURN_IF_ERROR(view.status());
  if (view->node == nullptr || !view->node->is_folder) {
    return base::InternalError("failed to open directory " + folder);
  }
  return view->node->children;
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
