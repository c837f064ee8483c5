// SPDX-License-Identifier: Apache-2.0
// Repositories in Azure Storage.
#pragma once

#include <memory>

#include "object_store/environment.h"
#include "object_store/object_store.h"
#include "repository/store.h"

namespace nereid::azure {

// The settings of the cache and the requests, and the environment that names the account.
struct AzureStoreOptions {
  // The default directory of the cache is in the folder that TRITON_AZURE_MOUNT_DIRECTORY names, as
  // for Triton, or else in the folder for temporary files. The default file of certificates is that
  // of SSL_CERT_FILE.
  object_store::ObjectStoreOptions store;
  object_store::Environment environment = object_store::ProcessEnvironment();
};

// Makes a store for paths that begin with "as://" or "azure://".
std::unique_ptr<repository::Store> MakeAzureStore();
std::unique_ptr<repository::Store> MakeAzureStore(AzureStoreOptions options);

}  // namespace nereid::azure
