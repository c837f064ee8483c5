// SPDX-License-Identifier: Apache-2.0
// Checksums and signatures in the forms that S3 has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nereid::s3 {

// Bytes as lower-case hexadecimal digits.
std::string Hex(std::string_view bytes);
// The digest in hexadecimal digits.
std::string Sha256Hex(std::string_view text);
// HMAC-SHA256, 32 bytes.
std::string HmacSha256(std::string_view key, std::string_view text);
// The MD5 of the first `size` bytes of an open file in hexadecimal digits; empty when it cannot be
// read.
std::string Md5OfFile(int fd, uint64_t size);

}  // namespace nereid::s3
