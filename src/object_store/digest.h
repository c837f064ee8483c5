// SPDX-License-Identifier: Apache-2.0
// Checksums and keyed hashes in the formats of object stores.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace nereid::object_store {

// Returns the digest in hexadecimal digits.
std::string Sha256Hex(std::string_view text);
// Returns HMAC-SHA256, 32 bytes.
std::string HmacSha256(std::string_view key, std::string_view text);
// Returns the text in base64 with padding.
std::string Base64(std::string_view bytes);
// Returns the bytes of base64 with padding; nothing for any other text.
std::optional<std::string> DecodeBase64(std::string_view text);
// Returns the signature RS256 (RSA with SHA-256, PKCS #1 v1.5) of the text. Fails if `pem` is not a
// private key, without quoting it.
base::Result<std::string> SignRs256(const std::string& pem, std::string_view text);
// Returns the MD5 of the first `size` bytes of an open file in hexadecimal digits; empty if it
// cannot be read.
std::string Md5OfFile(int fd, uint64_t size);

}  // namespace nereid::object_store
