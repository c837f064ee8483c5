// SPDX-License-Identifier: Apache-2.0
// A response cache in a shared library, libtritoncache_<name>.so, made for Triton or for Nereid.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/shared_library.h"
#include "base/status.h"
#include "cache_host/packed_response.h"
#include "core/response_cache.h"
#include "triton/core/tritoncache.h"

namespace nereid::cache_host {

// The cache to open, and its settings.
struct CacheLibraryOptions {
  std::string directory;  // contains a folder for each cache
  std::string name;
  std::map<std::string, std::string> settings = {};  // passed to the library as a JSON object
  std::string json = {};  // that object, instead of `settings`; may be empty
};

// A cache. Thread-safe, as its library is by contract.
class CacheLibrary final : public core::ResponseCache {
 public:
  // Opens <directory>/<name>/libtritoncache_<name>.so and makes its cache.
  static base::Result<std::unique_ptr<CacheLibrary>> Load(CacheLibraryOptions options);
  // Frees the cache; the library stays mapped until the process ends.
  ~CacheLibrary() override;
  CacheLibrary(const CacheLibrary&) = delete;
  CacheLibrary& operator=(const CacheLibrary&) = delete;

  base::Status Lookup(const core::CacheKey& key, core::Response& response) override;
  base::Status Insert(const core::CacheKey& key, const core::Response& response) override;
  base::TaskPool* threads() override { return threads_ ? &*threads_ : nullptr; }
  const core::CacheSecret* secret() const override { return secret_ ? &*secret_ : nullptr; }

 private:
  // The functions that a cache library exports.
  struct EntryPoints {
    using InitializeFunction = TRITONSERVER_Error*(TRITONCACHE_Cache**, const char*);
    using FinalizeFunction = TRITONSERVER_Error*(TRITONCACHE_Cache*);
    using EntryFunction = TRITONSERVER_Error*(TRITONCACHE_Cache*, const char*,
                                              TRITONCACHE_CacheEntry*, TRITONCACHE_Allocator*);
    using TraitsFunction = uint32_t();

    InitializeFunction* initialize = nullptr;
    FinalizeFunction* finalize = nullptr;
    EntryFunction* insert = nullptr;
    EntryFunction* lookup = nullptr;
    TraitsFunction* traits = nullptr;  // optional
  };

  CacheLibrary(std::string name, std::unique_ptr<base::SharedLibrary> library)
      : name_(std::move(name)), library_(std::move(library)) {}

  base::Status FindEntryPoints();
  // Sets threads_, or secret_ for a cache whose keys never leave the process.
  void ReadTraits();
  // How entries are validated.
  Integrity integrity() const { return secret_ ? Integrity::kTrusted : Integrity::kChecksum; }

  const std::string name_;
  const std::unique_ptr<base::SharedLibrary> library_;
  EntryPoints entry_points_;                 // constant once loaded
  std::optional<core::CacheSecret> secret_;  // constant once loaded
  std::optional<base::TaskPool> threads_;    // constant once loaded
  TRITONCACHE_Cache* cache_ = nullptr;       // constant once loaded
};

}  // namespace nereid::cache_host
