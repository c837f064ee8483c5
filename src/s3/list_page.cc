// SPDX-License-Identifier: Apache-2.0
#include "s3/list_page.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <pugixml.hpp>

#include "http_client/url.h"
#include "object_store/token_request.h"

namespace nereid::s3 {
namespace {

std::optional<uint64_t> Number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string_view WithoutQuotes(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    return text.substr(1, text.size() - 2);
  }
  return text;
}

// Whether the ETag is that of an object that was uploaded in one part.
bool IsMd5(std::string_view etag) {
  return etag.size() == 32 && etag.find_first_not_of("0123456789abcdef") == etag.npos;
}

// Decodes a key. Only in listings does a plus sign stand for a space.
std::string DecodeKey(std::string key) {
  std::replace(key.begin(), key.end(), '+', ' ');
  return http_client::PercentDecode(key);
}

}  // namespace

base::Result<object_store::ListPage> ParseListPage(std::string_view xml) {
  pugi::xml_document document;
  if (!document.load_buffer(xml.data(), xml.size())) {
    return base::InternalError("the reply is not XML");
  }
  const pugi::xml_node list = document.child("ListBucketResult");
  if (!list) return base::InternalError("the reply is not a list of objects");
  object_store::ListPage page;
  const bool is_encoded = std::string_view(list.child_value("EncodingType")) == "url";
  for (const pugi::xml_node node : list.children("Contents")) {
    object_store::Object object;
    const char* const key = node.child_value("Key");
    object.key = is_encoded ? DecodeKey(key) : std::string(key);
    object.etag = WithoutQuotes(node.child_value("ETag"));
    const auto size = Number(node.child_value("Size"));
    const auto time = object_store::ParseUtcTime(node.child_value("LastModified"));
    if (object.key.empty() || !size || !time) {
      return base::InternalError("the reply lists an object without key, size or time");
    }
    object.size = *size;
    if (IsMd5(object.etag)) object.md5 = object.etag;
    object.modified_ns = *time;
    page.objects.push_back(std::move(object));
  }
  if (std::string_view(list.child_value("IsTruncated")) == "true") {
    page.next = list.child_value("NextContinuationToken");
    if (page.next.empty())
      return base::InternalError("the reply does not say where the list goes on");
  }
  return page;
}

ErrorBody ParseErrorBody(std::string_view xml) {
  pugi::xml_document document;
  if (xml.empty() || !document.load_buffer(xml.data(), xml.size())) return {};
  const pugi::xml_node error = document.child("Error");
  return {error.child_value("Code"), error.child_value("Message"), error.child_value("Region")};
}

}  // namespace nereid::s3
