// SPDX-License-Identifier: Apache-2.0
// Error texts follow Triton's core/src/cache_manager.cc.
#include "cache_host/cache_library.h"

#include <unistd.h>

#include <filesystem>

#include "abi_objects/error.h"
#include "abi_objects/message.h"
#include "base/log.h"
#include "cache_host/cache_entry.h"
#include "cache_host/packed_response.h"
#include "config/paths.h"
#include "nereid/cache_traits.h"

namespace nereid::cache_host {

using abi_objects::CallPlugin;

namespace {

// As many calls may wait at a time: enough for 16,000 look-ups a second if each takes 1 ms.
constexpr size_t kMaxThreads = 16;
constexpr std::chrono::seconds kIdleTime{10};

base::Result<std::string> FindLibrary(const CacheLibraryOptions& options) {
  if (options.directory.empty()) {
    return base::InvalidArgumentError("cache directory can not be empty");
  }
  const std::string file = "libtritoncache_" + options.name + ".so";
  const std::string path =
      config::JoinPath(config::JoinPath(options.directory, options.name), file);
  std::error_code error;
  if (options.name.find('/') == std::string::npos &&
      std::filesystem::is_regular_file(path, error)) {
    const std::filesystem::path absolute = std::filesystem::absolute(path, error);
    return error ? path : absolute.lexically_normal().string();
  }
  return base::InvalidArgumentError("unable to find '" + file +
                                    "' for cache. Searched: " + options.directory);
}

}  // namespace

base::Result<std::unique_ptr<CacheLibrary>> CacheLibrary::Load(CacheLibraryOptions options) {
  NEREID_ASSIGN_OR_RETURN(const std::string path, FindLibrary(options));
  // The configuration is not logged, because it may contain a password.
  NEREID_LOG(kInfo, "Creating response cache '{}' from {}", options.name, path);
  NEREID_ASSIGN_OR_RETURN(std::unique_ptr<base::SharedLibrary> file,
                          base::SharedLibrary::Open(path));
  std::unique_ptr<CacheLibrary> library(new CacheLibrary(options.name, std::move(file)));
  NEREID_RETURN_IF_ERROR(library->FindEntryPoints());
  library->ReadTraits();
  TRITONCACHE_Cache* cache = nullptr;
  const std::string config =
      options.json.empty() ? abi_objects::ObjectJson(options.settings) : options.json;
  NEREID_RETURN_IF_ERROR(CallPlugin(library->entry_points_.initialize, &cache, config.c_str()));
  if (cache == nullptr) return base::InternalError("Failed to initialize cache implementation");
  library->cache_ = cache;
  return library;
}

CacheLibrary::~CacheLibrary() {
  threads_.reset();  // they call the library
  if (cache_ == nullptr) return;
  const base::Status status = CallPlugin(entry_points_.finalize, cache_);
  if (!status.ok()) NEREID_LOG(kError, "failed finalizing cache: {}", status.ToString());
}

base::Status CacheLibrary::FindEntryPoints() {
  const auto find = [this]<typename Function>(Function*& function, const char* name) {
    function = library_->Find<Function>(name);
    if (function != nullptr) return base::OkStatus();
    return base::NotFoundError("unable to find required entrypoint '" + std::string(name) +
                               "' in shared library: " + library_->path());
  };
  NEREID_RETURN_IF_ERROR(find(entry_points_.initialize, "TRITONCACHE_CacheInitialize"));
  NEREID_RETURN_IF_ERROR(find(entry_points_.finalize, "TRITONCACHE_CacheFinalize"));
  NEREID_RETURN_IF_ERROR(find(entry_points_.lookup, "TRITONCACHE_CacheLookup"));
  entry_points_.traits = library_->Find<EntryPoints::TraitsFunction>("NEREIDCACHE_Traits");
  return find(entry_points_.insert, "TRITONCACHE_CacheInsert");
}

void CacheLibrary::ReadTraits() {
  const uint32_t traits = entry_points_.traits == nullptr ? 0 : entry_points_.traits();
  if (!(traits & NEREIDCACHE_TRAIT_IN_PROCESS)) {
    threads_.emplace("cache", kMaxThreads, kIdleTime);
    return;
  }
  core::CacheSecret secret;
  // Without good random numbers, keys are made as for caches that are shared.
  if (getentropy(secret.hash_key.data(), secret.hash_key.size()) != 0) return;
  if (getentropy(secret.digest_key.data(), secret.digest_key.size()) != 0) return;
  secret_ = secret;
}

base::Status CacheLibrary::Lookup(const core::CacheKey& key, core::Response& response) {
  CacheEntry entry;
  ResponseUnpacker unpacker(key, response, integrity());
  base::Status status = CallPlugin(entry_points_.lookup, cache_, key.c_str(), ToHandle(&entry),
                                   ToHandle(static_cast<CacheAllocator*>(&unpacker)));
  if (!unpacker.defect().ok()) {
    NEREID_LOG(kWarning, "what response cache '{}' has under key [{}] is not used: {}", name_,
               key.view(), unpacker.defect().message());
    return unpacker.defect();
  }
  if (status.ok() && !unpacker.is_done()) {
    return base::InternalError("response cache '" + name_ + "' found an entry but copied nothing");
  }
  return status;
}

base::Status CacheLibrary::Insert(const core::CacheKey& key, const core::Response& response) {
  NEREID_ASSIGN_OR_RETURN(const size_t byte_size, PackedSize(key, response));
  CacheEntry entry;
  entry.buffers.push_back({.base = nullptr, .byte_size = byte_size, .where = {}});
  ResponsePacker packer(key, response, byte_size, integrity());
  return CallPlugin(entry_points_.insert, cache_, key.c_str(), ToHandle(&entry),
                    ToHandle(static_cast<CacheAllocator*>(&packer)));
}

}  // namespace nereid::cache_host
