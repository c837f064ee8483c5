// SPDX-License-Identifier: Apache-2.0
// Repositories in Google Cloud Storage.
#pragma once

#include <memory>

#include "object_store/environment.h"
#include "object_store/object_store.h"
#include "repository/store.h"

namespace nereid::gcs {

// The settings of the cache and the requests, and the environment that names the account.
struct GcsStoreOptions {
  // The default directory of the cache is in the folder that TRITON_GCS_MOUNT_DIRECTORY names, as
  // for Triton, or else in the folder for temporary files. The default file of certificates is that
  // of SSL_CERT_FILE.
  object_store::ObjectStoreOptions store;
  object_store::Environment environment = object_store::ProcessEnvironment();
};

// Makes a store for paths that begin with "gs://".
std::unique_ptr<repository::Store> MakeGcsStore();
std::unique_ptr<repository::Store> MakeGcsStore(GcsStoreOptions options);

}  // namespace nereid::gcs
