// SPDX-License-Identifier: Apache-2.0
#include "azure/signature.h"

#include <gtest/gtest.h>

#include "object_store/digest.h"

namespace nereid::azure {
namespace {

// The key that emulators have, which is in Microsoft's documentation.
std::string Key() {
  return *object_store::DecodeBase64(
      "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==");
}

// The expected values are those of Microsoft's library for Python (azure-storage-blob).
TEST(ASignature, IsThatOfMicrosoftsLibraryForAList) {
  EXPECT_EQ(Authorization({.path = "/mycontainer",
                           .query = {{"comp", "list"},
                                     {"include", "metadata"},
                                     {"prefix", "a b/c&"},
                                     {"restype", "container"}},
                           .headers = {{"x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT"},
                                       {"x-ms-version", "2021-12-02"}}},
                          "myaccount", Key()),
            "SharedKey myaccount:f1HSuM6HrFghcLvhW3zI2pqjT0xryONYqfLlOOkJZNQ=");
}

TEST(ASignature, IsThatOfMicrosoftsLibraryForAPartOfABlobOfAnEmulator) {
  EXPECT_EQ(Authorization({.path = "/devstoreaccount1/models/m%20~1%252F/1/%C3%BCn.bin",
                           .headers = {{"if-match", "\"0x8D\""},
                                       {"x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT"},
                                       {"x-ms-range", "bytes=0-9"},
                                       {"x-ms-version", "2021-12-02"}}},
                          "devstoreaccount1", Key()),
            "SharedKey devstoreaccount1:2TsnjFN+T+J/5vBk7vDfuxBcNlYY1qplrQgIowK5rOo=");
}

}  // namespace
}  // namespace nereid::azure
