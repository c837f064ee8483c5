// SPDX-License-Identifier: Apache-2.0
#include "azure/signature.h"

#include <fmt/format.h>

#include "object_store/digest.h"

namespace nereid::azure {

std::string Authorization(const UnsignedRequest& request, const std::string& account,
                          const std::string& key) {
  std::string text = request.method + "\n";
  for (const char* const name :
       {"content-encoding", "content-language", "content-length", "content-md5", "content-type",
        "date", "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"}) {
    const auto header = request.headers.find(name);
    if (header != request.headers.end()) text += header->second;
    text += '\n';
  }
  for (const auto& [name, value] : request.headers) {
    if (name.starts_with("x-ms-")) text += name + ":" + value + "\n";
  }
  text += "/" + account + request.path;
  for (const auto& [name, value] : request.query) text += "\n" + name + ":" + value;
  return fmt::format("SharedKey {}:{}", account,
                     object_store::Base64(object_store::HmacSha256(key, text)));
}

}  // namespace nereid::azure
