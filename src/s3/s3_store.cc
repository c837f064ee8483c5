// SPDX-License-Identifier: Apache-2.0
#include "s3/s3_store.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "object_store/digest.h"
#include "object_store/local_cache.h"
#include "object_store/provider.h"
#include "s3/location.h"
#include "s3/s3_protocol.h"

namespace nereid::s3 {
namespace {

// The part of an object store that is specific to S3.
class S3Provider final : public object_store::Provider {
 public:
  explicit S3Provider(Environment environment) : environment_(std::move(environment)) {}

  base::Result<object_store::Location> Parse(std::string_view path) const override {
    NEREID_ASSIGN_OR_RETURN(Location location, ParseLocation(path));
    object_store::Location neutral;
    neutral.key = std::exchange(location.key, "");
    neutral.bucket = location.ToString();
    neutral.bucket_name = std::move(location.bucket);
    return neutral;
  }

  base::Result<Access> Open(const std::string& path,
                            http_client::HttpClient& client) const override {
    NEREID_ASSIGN_OR_RETURN(Location location, ParseLocation(path));
    location.key.clear();
    NEREID_ASSIGN_OR_RETURN(Account account, FindAccount(path, environment_));
    const Credentials& keys = account.credentials;
    Access access;
    // A hash, so that the secret itself is in fewer places.
    access.identity = fmt::format("{} {} {} {} {}", location.ToString(), account.region,
                                  keys.key_id, NameOf(account.source),
                                  object_store::Sha256Hex(keys.secret + "\n" + keys.session_token));
    access.protocol = std::make_unique<S3Protocol>(std::move(location), std::move(account), client);
    return access;
  }

  std::string CannotOpen() const override {
    return "Unable to create S3 filesystem client. Check account credentials. ";
  }

 private:
  const Environment environment_;
};

}  // namespace

std::unique_ptr<repository::Store> MakeS3Store() { return MakeS3Store(S3StoreOptions()); }

std::unique_ptr<repository::Store> MakeS3Store(S3StoreOptions options) {
  std::string& cache = options.store.cache.directory;
  if (cache.empty()) {
    cache = object_store::LocalCache::DefaultDirectory(
        options.environment("TRITON_AWS_MOUNT_DIRECTORY").value_or(""), "s3");
  }
  std::string& ca_file = options.store.http.ca_file;
  if (ca_file.empty()) ca_file = options.environment("AWS_CA_BUNDLE").value_or("");
  return std::make_unique<object_store::ObjectStore>(
      std::make_unique<S3Provider>(std::move(options.environment)), std::move(options.store));
}

}  // namespace nereid::s3
