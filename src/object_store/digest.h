// SPDX-License-Identifier: Apache-2.0
// Checksums and keyed hashes in the formats of object stores.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nereid::object_store {

// Returns the bytes as lower-case hexadecimal digits.
std::string Hex(std::string_view bytes);
// Returns the digest in hexadecimal digits.
std::string Sha256Hex(std::string_view text);
// Returns HMAC-SHA256, 32 bytes.
std::string HmacSha256(std::string_view key, std::string_view text);
// Returns the MD5 of the first `size` bytes of an open file in hexadecimal digits; empty if it
// cannot be read.
std::string Md5OfFile(int fd, uint64_t size);

}  // namespace nereid::object_store
