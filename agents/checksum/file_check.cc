// SPDX-License-Identifier: Apache-2.0
#include "checksum_agent/file_check.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace nereid::checksum_agent {
namespace {

namespace fs = std::filesystem;
using backend::Error;
using backend::Result;
using backend::StrCat;

// Deleter for std::FILE.
struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
// Deleter for OpenSSL's digest context.
struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

// Whether the path as written stays in the model's folder. Links in the folder may lead anywhere:
// only users who can put files there can put links there.
bool StaysInside(const fs::path& path) {
  int depth = 0;
  for (const fs::path& component : path) {
    if (component == "..") {
      if (--depth < 0) return false;
    } else if (component != "." && !component.empty()) {
      ++depth;
    }
  }
  return path.is_relative() && path.native().find('\0') == std::string::npos;
}

Error CannotRead(std::string_view file, const char* reason) {
  return Error::InvalidArgument(StrCat("failed to open text file for read ", file, ": ", reason));
}

// Returns the MD5 of a file in hexadecimal digits. Reads in pieces, because models are large.
Result<std::string> Md5(const std::string& path, std::string_view name) {
  std::error_code error;
  // Reading a pipe could block forever.
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) {
    return CannotRead(name, "not a regular file");
  }
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rbe"));
  if (file == nullptr) return CannotRead(name, std::strerror(errno));
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  if (context == nullptr || EVP_DigestInit_ex(context.get(), EVP_md5(), nullptr) != 1) {
    return Error::Internal("MD5 is not available");
  }
  std::array<unsigned char, 65536> piece;
  while (const size_t count = std::fread(piece.data(), 1, piece.size(), file.get())) {
    EVP_DigestUpdate(context.get(), piece.data(), count);
  }
  if (std::ferror(file.get())) return CannotRead(name, std::strerror(errno));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  EVP_DigestFinal_ex(context.get(), digest.data(), &size);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

}  // namespace

Error CheckFile(const std::string& model_folder, std::string_view key, std::string_view expected) {
  const size_t colon = key.find(':');
  if (colon == std::string_view::npos) {
    return Error::InvalidArgument(StrCat("failed to parse key: ", key));
  }
  std::string algorithm(key.substr(0, colon));
  std::transform(algorithm.begin(), algorithm.end(), algorithm.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  });
  if (algorithm != "MD5") {
    return {TRITONSERVER_ERROR_UNSUPPORTED,
            StrCat("Unsupported checksum algorithm: ", key.substr(0, colon))};
  }
  const std::string file(key.substr(colon + 1));
  if (!StaysInside(file)) {
    return Error::InvalidArgument(StrCat("file path '", file, "' is outside model directory"));
  }
  NEREID_KIT_ASSIGN(const std::string found, Md5(model_folder + "/" + file, file));
  if (found == expected) return {};
  return Error::InvalidArgument(
      StrCat("Mismatched MD5 hash for file ", file, ", expect: ", expected, ", got: ", found));
}

}  // namespace nereid::checksum_agent
