// SPDX-License-Identifier: Apache-2.0
#include "azure/list_page.h"

#include <charconv>
#include <optional>
#include <pugixml.hpp>
#include <utility>

#include <strings.h>

#include "azure/http_date.h"
#include "base/text_encodings.h"
#include "http_client/url.h"
#include "object_store/digest.h"

namespace nereid::azure {
namespace {

std::optional<uint64_t> Number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string WithoutQuotes(std::string text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    return text.substr(1, text.size() - 2);
  }
  return text;
}

// Accounts with a hierarchical namespace list folders among the blobs.
bool IsFolder(const pugi::xml_node& blob, const pugi::xml_node& properties) {
  if (std::string_view(properties.child_value("ResourceType")) == "directory") return true;
  for (const pugi::xml_node entry : blob.child("Metadata").children()) {
    if (::strcasecmp(entry.name(), "hdi_isfolder") == 0) {
      return ::strcasecmp(entry.child_value(), "true") == 0;
    }
  }
  return false;
}

base::Result<object_store::Object> ParseBlob(const pugi::xml_node& blob) {
  const pugi::xml_node name = blob.child("Name");
  const pugi::xml_node properties = blob.child("Properties");
  object_store::Object object;
  object.key = name.child_value();
  // Characters that XML does not have.
  if (name.attribute("Encoded").as_bool()) object.key = http_client::PercentDecode(object.key);
  object.etag = WithoutQuotes(properties.child_value("Etag"));
  const auto size = Number(properties.child_value("Content-Length"));
  const auto time = ParseHttpDate(properties.child_value("Last-Modified"));
  if (object.key.empty() || object.etag.empty() || !size || !time) {
    return base::InternalError("the reply lists a blob without name, etag, size or time");
  }
  if (object.etag.find_first_of("\"\r\n") != object.etag.npos) {
    return base::InternalError("the reply lists a blob with an etag that cannot be");
  }
  object.size = *size;
  object.modified_ns = *time;
  const auto md5 = object_store::DecodeBase64(properties.child_value("Content-MD5"));
  if (md5 && md5->size() == 16) object.md5 = base::ToHex(*md5);
  if (IsFolder(blob, properties) && !object.key.ends_with('/')) object.key += '/';
  return object;
}

}  // namespace

base::Result<object_store::ListPage> ParseListPage(std::string_view xml) {
  pugi::xml_document document;
  // With white space: a name may begin with a blank.
  if (!document.load_buffer(xml.data(), xml.size(),
                            pugi::parse_default | pugi::parse_ws_pcdata_single)) {
    return base::InternalError("the reply is not XML");
  }
  const pugi::xml_node results = document.child("EnumerationResults");
  if (!results) return base::InternalError("the reply is not a list of blobs");
  object_store::ListPage page;
  for (const pugi::xml_node blob : results.child("Blobs").children("Blob")) {
    NEREID_ASSIGN_OR_RETURN(object_store::Object object, ParseBlob(blob));
    page.objects.push_back(std::move(object));
  }
  page.next = results.child_value("NextMarker");
  return page;
}

ErrorBody ParseErrorBody(std::string_view xml) {
  pugi::xml_document document;
  if (xml.empty() || !document.load_buffer(xml.data(), xml.size())) return {};
  const pugi::xml_node error = document.child("Error");
  const std::string message = error.child_value("Message");
  return {error.child_value("Code"), message.substr(0, message.find_first_of("\r\n"))};
}

}  // namespace nereid::azure
