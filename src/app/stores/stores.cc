// SPDX-License-Identifier: Apache-2.0
#include "stores/stores.h"

#include "azure/azure_store.h"
#include "gcs/gcs_store.h"
#include "s3/s3_store.h"

namespace nereid::stores {

std::vector<repository::StoreKind> AllStores() {
  return {
      {"s3://", [] { return s3::MakeS3Store(); }},
      {"gs://", [] { return gcs::MakeGcsStore(); }},
      {"as://", [] { return azure::MakeAzureStore(); }},
      {"azure://", [] { return azure::MakeAzureStore(); }},
  };
}

}  // namespace nereid::stores
