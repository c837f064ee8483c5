// SPDX-License-Identifier: Apache-2.0
#include "azure/azure_store.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "azure/account.h"
#include "azure/azure_protocol.h"
#include "azure/location.h"
#include "object_store/local_cache.h"
#include "object_store/provider.h"

namespace nereid::azure {
namespace {

// The part of an object store that is specific to Azure.
class AzureProvider final : public object_store::Provider {
 public:
  explicit AzureProvider(object_store::Environment environment)
      : environment_(std::move(environment)) {}

  base::Result<object_store::Location> Parse(std::string_view path) const override {
    NEREID_ASSIGN_OR_RETURN(Location location, ParseLocation(path));
    object_store::Location neutral;
    neutral.bucket = fmt::format("as://{}/{}", location.host, location.container);
    neutral.bucket_name = std::move(location.container);
    neutral.key = std::move(location.key);
    return neutral;
  }

  base::Result<Access> Open(const std::string& path,
                            http_client::HttpClient& client) const override {
    NEREID_ASSIGN_OR_RETURN(const Location location, ParseLocation(path));
    NEREID_ASSIGN_OR_RETURN(Account account,
                            FindAccount(SpelledAsInTriton(path), location, environment_));
    Access access;
    access.identity = fmt::format("{} {}", location.container, account.identity);
    access.protocol =
        std::make_unique<AzureProtocol>(location.container, std::move(account), client);
    return access;
  }

  std::string CannotOpen() const override {
    return "Unable to create Azure filesystem client. Check account credentials. ";
  }

 private:
  const object_store::Environment environment_;
};

}  // namespace

std::unique_ptr<repository::Store> MakeAzureStore() { return MakeAzureStore(AzureStoreOptions()); }

std::unique_ptr<repository::Store> MakeAzureStore(AzureStoreOptions options) {
  std::string& cache = options.store.cache.directory;
  if (cache.empty()) {
    cache = object_store::LocalCache::DefaultDirectory(
        options.environment("TRITON_AZURE_MOUNT_DIRECTORY").value_or(""), "as");
  }
  std::string& ca_file = options.store.http.ca_file;
  if (ca_file.empty()) ca_file = options.environment("SSL_CERT_FILE").value_or("");
  return std::make_unique<object_store::ObjectStore>(
      std::make_unique<AzureProvider>(std::move(options.environment)), std::move(options.store));
}

}  // namespace nereid::azure
