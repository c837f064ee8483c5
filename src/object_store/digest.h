// SPDX-License-Identifier: Apache-2.0
// Checksums and keyed hashes, in the forms that object stores have them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nereid::object_store {

// Bytes as lower-case hexadecimal digits.
std::string Hex(std::string_view bytes);
// The digest in hexadecimal digits.
std::string Sha256Hex(std::string_view text);
// HMAC-SHA256, 32 bytes.
std::string HmacSha256(std::string_view key, std::string_view text);
// The MD5 of the first `size` bytes of an open file in hexadecimal digits; empty when it cannot be
// read.
std::string Md5OfFile(int fd, uint64_t size);

}  // namespace nereid::object_store
