// SPDX-License-Identifier: Apache-2.0
// Repositories in S3 and compatible stores.
#pragma once

#include <memory>

#include "object_store/object_store.h"
#include "repository/store.h"
#include "s3/credentials.h"

namespace nereid::s3 {

// The settings of the cache and the requests, and the environment that contains the keys.
struct S3StoreOptions {
  // The default directory of the cache is in the folder that TRITON_AWS_MOUNT_DIRECTORY names, as
  // for Triton, or else in the folder for temporary files. The default file of certificates is that
  // of AWS_CA_BUNDLE.
  object_store::ObjectStoreOptions store;
  Environment environment = object_store::ProcessEnvironment();
};

// Makes a store for paths that begin with "s3://".
std::unique_ptr<repository::Store> MakeS3Store();
std::unique_ptr<repository::Store> MakeS3Store(S3StoreOptions options);

}  // namespace nereid::s3
