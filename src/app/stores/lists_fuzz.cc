// SPDX-License-Identifier: Apache-2.0
// Fuzzes what the servers of object stores send: lists and errors of each kind, and replies with
// tokens. Each list is accepted or refused with a reason, and what is accepted can be listed.
#include <string_view>
#include <utility>

#include "azure/list_page.h"
#include "base/check.h"
#include "fuzz/fuzz.h"
#include "gcs/account.h"
#include "gcs/list_page.h"
#include "object_store/listing.h"
#include "object_store/token_request.h"
#include "s3/list_page.h"

namespace {

using nereid::base::Result;
using nereid::object_store::Listing;
using nereid::object_store::ListPage;

void Use(Result<ListPage> page) {
  if (!page.ok()) {
    NEREID_CHECK(!page.status().message().empty());
    return;
  }
  const Listing before("", page->objects, nullptr);
  const Listing listing("", std::move(page->objects), &before);
  for (const nereid::object_store::Object* const object : listing.FilesUnder("")) {
    NEREID_CHECK(("/" + object->key + "/").find("/../") == std::string::npos);
    NEREID_CHECK(!object->key.starts_with("/"));
  }
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  return {
      R"({"nextPageToken": "n", "items": [{"name": "m/../1/a", "generation": "17", "size": "11",
"md5Hash": "XrY7u+Ae7tCTyyK7j1rNww==", "updated": "2026-01-31T12:34:56.250Z"}]})",
      R"(<EnumerationResults><Blobs><Blob><Name Encoded="true">m%2F1/a</Name><Properties>
<Last-Modified>Sat, 31 Jan 2026 12:34:56 GMT</Last-Modified><Etag>0x8DE</Etag>
<Content-Length>3</Content-Length><Content-MD5>XrY7u+Ae7tCTyyK7j1rNww==</Content-MD5></Properties>
<Metadata><hdi_isfolder>true</hdi_isfolder></Metadata></Blob></Blobs><NextMarker>2</NextMarker>
</EnumerationResults>)",
      R"(<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>
<NextContinuationToken>a</NextContinuationToken><Contents><Key>m/1/a%20b</Key>
<LastModified>2026-01-31T12:34:56.250Z</LastModified><ETag>"5eb63bbbe01eeed093cb22bb8f5acdc3"</ETag>
<Size>11</Size></Contents></ListBucketResult>)",
      R"({"access_token": "T", "expires_in": "3599", "error": {"errors": [{"reason": "r"}]}})",
      R"({"type": "external_account", "audience": "a", "subject_token_type": "t",
"credential_source": {"url": "http://h", "headers": {"a": "b"}, "format": {"type": "json",
"subject_token_field_name": "f"}}})",
      "<Error><Code>NoSuchBucket</Code><Message>Not there\nRequestId</Message></Error>",
  };
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Use(nereid::gcs::ParseListPage(text));
  Use(nereid::azure::ParseListPage(text));
  Use(nereid::s3::ParseListPage(text));
  nereid::azure::ParseErrorBody(text);
  nereid::s3::ParseErrorBody(text);
  static_cast<void>(nereid::gcs::ParseAccount(text));
  const auto token = nereid::object_store::ParseBearerToken(text, "the server");
  NEREID_CHECK(!token.ok() || nereid::object_store::CanBeHeader(token->value));
  return 0;
}
