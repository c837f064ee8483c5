// SPDX-License-Identifier: Apache-2.0
#include "gcs/list_page.h"

#include <charconv>
#include <optional>
#include <utility>

#include <rapidjson/document.h>

#include "base/text_encodings.h"
#include "object_store/digest.h"
#include "object_store/token_request.h"

namespace nereid::gcs {
namespace {

// Returns the text of a member; empty if there is none.
std::string_view TextOf(const rapidjson::Value& object, const char* name) {
  const auto member = object.FindMember(name);
  if (member == object.MemberEnd() || !member->value.IsString()) return {};
  return {member->value.GetString(), member->value.GetStringLength()};
}

std::optional<uint64_t> Number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

base::Result<object_store::Object> ParseObject(const rapidjson::Value& item) {
  const base::Status incomplete =
      base::InternalError("the reply lists an object without name, generation, size or time");
  if (!item.IsObject()) return incomplete;
  object_store::Object object;
  object.key = TextOf(item, "name");
  object.etag = TextOf(item, "generation");
  const auto size = Number(TextOf(item, "size"));
  const auto time = object_store::ParseUtcTime(TextOf(item, "updated"));
  if (object.key.empty() || !Number(object.etag) || !size || !time) return incomplete;
  object.size = *size;
  object.modified_ns = *time;
  // Objects that were composed of others have none.
  const auto md5 = object_store::DecodeBase64(TextOf(item, "md5Hash"));
  if (md5 && md5->size() == 16) object.md5 = base::ToHex(*md5);
  return object;
}

}  // namespace

base::Result<object_store::ListPage> ParseListPage(std::string_view json) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.HasParseError() || !document.IsObject()) {
    return base::InternalError("the reply is not a list of objects");
  }
  object_store::ListPage page;
  page.next = TextOf(document, "nextPageToken");
  const auto items = document.FindMember("items");
  if (items == document.MemberEnd()) return page;  // of an empty list
  if (!items->value.IsArray()) return base::InternalError("the reply is not a list of objects");
  for (const auto& item : items->value.GetArray()) {
    NEREID_ASSIGN_OR_RETURN(object_store::Object object, ParseObject(item));
    page.objects.push_back(std::move(object));
  }
  return page;
}

}  // namespace nereid::gcs
