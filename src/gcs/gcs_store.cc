// SPDX-License-Identifier: Apache-2.0
#include "gcs/gcs_store.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "gcs/account.h"
#include "gcs/gcs_protocol.h"
#include "object_store/endpoint.h"
#include "object_store/local_cache.h"
#include "object_store/path.h"
#include "object_store/provider.h"

namespace nereid::gcs {
namespace {

constexpr std::string_view kScheme = "gs://";
constexpr const char* kEndpoint = "https://storage.googleapis.com";

// The part of an object store that is specific to Google.
class GcsProvider final : public object_store::Provider {
 public:
  explicit GcsProvider(object_store::Environment environment)
      : environment_(std::move(environment)) {}

  base::Result<object_store::Location> Parse(std::string_view path) const override {
    std::string_view rest = path;
    if (rest.starts_with(kScheme)) rest.remove_prefix(kScheme.size());
    object_store::Location location;
    location.bucket_name = object_store::TakeComponent(rest);
    if (location.bucket_name.empty()) {
      return base::InternalError("No bucket name found in path: " + std::string(path));
    }
    location.key = object_store::CleanKey(rest);
    // The buckets of an emulator are others than those of the same names at Google.
    const std::string emulator = Emulator();
    location.bucket = fmt::format("{}{}{}{}", kScheme, emulator, emulator.empty() ? "" : "/",
                                  location.bucket_name);
    return location;
  }

  base::Result<Access> Open(const std::string& path,
                            http_client::HttpClient& client) const override {
    NEREID_ASSIGN_OR_RETURN(const object_store::Location location, Parse(path));
    const std::string emulator = Emulator();
    Account account{Anonymous{}, "", "anonymous"};
    // An emulator elsewhere gets no token without encryption: it would be anybody's on the way.
    if (emulator.empty() || object_store::IsConfidential(emulator)) {
      NEREID_ASSIGN_OR_RETURN(account, FindAccount(path, environment_, !emulator.empty()));
    }
    Access access;
    access.identity = fmt::format("{} {}", location.bucket, account.identity);
    access.protocol = std::make_unique<GcsProtocol>(emulator.empty() ? kEndpoint : emulator,
                                                    location.bucket_name, account, client);
    return access;
  }

  std::string CannotOpen() const override {
    return "Unable to create GCS client. Check account credentials. ";
  }

 private:
  // The address of an emulator, which may be written without a scheme; empty: there is none.
  std::string Emulator() const {
    std::string address = object_store::FirstOf(
        environment_, {"STORAGE_EMULATOR_HOST", "CLOUD_STORAGE_EMULATOR_ENDPOINT"});
    while (address.ends_with('/')) address.pop_back();
    if (!address.empty() && address.find("://") == address.npos) address = "http://" + address;
    return address;
  }

  const object_store::Environment environment_;
};

}  // namespace

std::unique_ptr<repository::Store> MakeGcsStore() { return MakeGcsStore(GcsStoreOptions()); }

std::unique_ptr<repository::Store> MakeGcsStore(GcsStoreOptions options) {
  std::string& cache = options.store.cache.directory;
  if (cache.empty()) {
    cache = object_store::LocalCache::DefaultDirectory(
        options.environment("TRITON_GCS_MOUNT_DIRECTORY").value_or(""), "gs");
  }
  std::string& ca_file = options.store.http.ca_file;
  if (ca_file.empty()) ca_file = options.environment("SSL_CERT_FILE").value_or("");
  return std::make_unique<object_store::ObjectStore>(
      std::make_unique<GcsProvider>(std::move(options.environment)), std::move(options.store));
}

}  // namespace nereid::gcs
