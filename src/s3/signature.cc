// SPDX-License-Identifier: Apache-2.0
#include "s3/signature.h"

#include <fmt/format.h>

#include "base/text_encodings.h"
#include "object_store/digest.h"

namespace nereid::s3 {

using object_store::HmacSha256;
using object_store::Sha256Hex;

std::map<std::string, std::string> SignedHeaders(const UnsignedRequest& request,
                                                 const Credentials& credentials,
                                                 const std::string& region, std::time_t now) {
  std::map<std::string, std::string> headers = request.headers;
  if (credentials.key_id.empty()) return headers;
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char time[32];
  std::strftime(time, sizeof time, "%Y%m%dT%H%M%SZ", &utc);
  const std::string day(time, 8);
  const std::string body = Sha256Hex(request.body);
  headers["host"] = request.host;
  headers["x-amz-date"] = time;
  headers["x-amz-content-sha256"] = body;
  if (!credentials.session_token.empty()) {
    headers["x-amz-security-token"] = credentials.session_token;
  }
  std::string canonical;
  std::string names;
  for (const auto& [name, value] : headers) {
    canonical += name + ":" + value + "\n";
    names += (names.empty() ? "" : ";") + name;
  }
  const std::string text = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, request.path,
                                       request.query, canonical, names, body);
  const std::string scope = fmt::format("{}/{}/s3/aws4_request", day, region);
  const std::string to_sign =
      fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", time, scope, Sha256Hex(text));
  std::string key = HmacSha256("AWS4" + credentials.secret, day);
  for (const std::string& part : {region, std::string("s3"), std::string("aws4_request")}) {
    key = HmacSha256(key, part);
  }
  headers["authorization"] =
      fmt::format("AWS4-HMAC-SHA256 Credential={}/{},SignedHeaders={},Signature={}",
                  credentials.key_id, scope, names, base::ToHex(HmacSha256(key, to_sign)));
  return headers;
}

}  // namespace nereid::s3
