// SPDX-License-Identifier: Apache-2.0
// Why a secret makes a fast hash good enough. GHASH, the hash inside AES-GCM, is a polynomial over
// the data evaluated at a secret point: for two different inputs of at most n blocks of 16 bytes,
// chosen without knowledge of the point, it gives the same 128 bits for at most n + 1 of 2^128
// points. That is 2^-112 for inputs of 1 MB, so that 2^30 entries and as many requests of an
// attacker collide by chance with less than 2^-52. The attacker must not learn anything computed
// from the point except "no hit", each of which rules out no more than those n + 1 points. Hence
// the 128 bits are never the key. They go, after a second secret, into the SHA-256 that is the key,
// so that keys, which appear in log lines and in cache libraries, reveal nothing about them. The
// tag of AES-GCM is GHASH and a mask that is the same every time here, because the nonce is; a
// repeated nonce reveals GHASH to an observer of tags, but no tag leaves this file. Each process
// makes a new secret and keeps it.
#include "schedule/cache_key.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "config/print.h"
#include "core/model.h"

namespace nereid::schedule {
namespace {

// Precedes the hash, so that stores that outlive a release never mix the meanings of two releases.
constexpr std::string_view kPrefix = "nereid2:";
constexpr size_t kDigestBytes = 32;
// For smaller inputs SHA-256 is as fast as two hashes.
constexpr size_t kHashedFrom = 1024;
static_assert(kPrefix.size() + 2 * kDigestBytes == core::CacheKey::kSize);

// A reusable SHA-256. Small pieces are gathered, because a call into the library costs more than
// hashing them. Every piece of variable length follows its length, so that no two requests have the
// same bytes.
class Digest {
 public:
  // Returns false if the library is out of memory.
  bool Start() {
    if (algorithm_ == nullptr) algorithm_.reset(EVP_MD_fetch(nullptr, "SHA256", nullptr));
    if (context_ == nullptr) context_.reset(EVP_MD_CTX_new());
    filled_ = 0;
    is_good_ = algorithm_ != nullptr && context_ != nullptr &&
               EVP_DigestInit_ex2(context_.get(), algorithm_.get(), nullptr) == 1;
    return is_good_;
  }
  void AddBytes(const void* data, size_t size) {
    if (size == 0) return;
    if (size > buffer_.size() - filled_) {
      Flush();
      if (size > buffer_.size()) return Update(data, size);
    }
    std::memcpy(buffer_.data() + filled_, data, size);
    filled_ += size;
  }
  void AddNumber(uint64_t number) { AddBytes(&number, sizeof number); }
  void AddText(std::string_view text) {
    AddNumber(text.size());
    AddBytes(text.data(), text.size());
  }
  std::optional<std::array<unsigned char, kDigestBytes>> Finish() {
    Flush();
    std::array<unsigned char, kDigestBytes> digest;
    if (!is_good_ || EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) != 1) {
      return std::nullopt;
    }
    return digest;
  }

 private:
  struct Free {
    void operator()(EVP_MD* algorithm) const { EVP_MD_free(algorithm); }
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };

  void Flush() {
    Update(buffer_.data(), filled_);
    filled_ = 0;
  }
  void Update(const void* data, size_t size) {
    is_good_ = is_good_ && EVP_DigestUpdate(context_.get(), data, size) == 1;
  }

  std::unique_ptr<EVP_MD, Free> algorithm_;
  std::unique_ptr<EVP_MD_CTX, Free> context_;
  std::array<unsigned char, 512> buffer_;
  size_t filled_ = 0;
  bool is_good_ = false;
};

// A reusable GHASH, by way of the tags of AES-256-GCM without any plaintext.
class KeyedHash {
 public:
  static constexpr size_t kBytes = 16;
  using Tag = std::array<unsigned char, kBytes>;

  // Returns false if the library has no such cipher or is out of memory.
  bool Start(const core::CacheSecret& secret) {
    if (context_ == nullptr) context_.reset(EVP_CIPHER_CTX_new());
    if (context_ == nullptr) return false;
    static constexpr unsigned char kNonce[12] = {};
    if (!has_key_ || key_ != secret.hash_key) {
      const std::unique_ptr<EVP_CIPHER, Free> cipher(
          EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr));
      key_ = secret.hash_key;
      has_key_ = cipher != nullptr && EVP_EncryptInit_ex2(context_.get(), cipher.get(), key_.data(),
                                                          kNonce, nullptr) == 1;
      return has_key_;
    }
    return EVP_EncryptInit_ex2(context_.get(), nullptr, nullptr, kNonce, nullptr) == 1;
  }
  bool Add(const std::byte* data, size_t size) {
    constexpr size_t kMax = size_t{1} << 30;  // the library counts in int
    for (; size > 0; data += std::min(size, kMax), size -= std::min(size, kMax)) {
      int none = 0;
      if (EVP_EncryptUpdate(context_.get(), nullptr, &none,
                            reinterpret_cast<const unsigned char*>(data),
                            static_cast<int>(std::min(size, kMax))) != 1) {
        return false;
      }
    }
    return true;
  }
  bool Finish(Tag& tag) {
    int none = 0;
    return EVP_EncryptFinal_ex(context_.get(), tag.data(), &none) == 1 &&
           EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, kBytes, tag.data()) == 1;
  }

 private:
  struct Free {
    void operator()(EVP_CIPHER* cipher) const { EVP_CIPHER_free(cipher); }
    void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
  };

  std::unique_ptr<EVP_CIPHER_CTX, Free> context_;
  std::array<unsigned char, 32> key_{};
  bool has_key_ = false;
};

// Returns what stands for the bytes of `input` in a key of this process; nothing if it cannot be
// made.
std::optional<KeyedHash::Tag> HashInput(const core::RequestInput& input,
                                        const core::CacheSecret& secret) {
  thread_local KeyedHash hash;
  if (!hash.Start(secret)) return std::nullopt;
  for (size_t i = 0; i < input.chunk_count(); ++i) {
    if (!hash.Add(input.chunk(i).data, input.chunk(i).size)) return std::nullopt;
  }
  KeyedHash::Tag tag;
  if (!hash.Finish(tag)) return std::nullopt;
  return tag;
}

bool AddInput(Digest& digest, const core::RequestInput& input, const core::CacheSecret* secret) {
  if (input.model_index == core::kServerInput) return false;
  digest.AddText(input.name);
  digest.AddNumber(static_cast<uint64_t>(input.type));
  digest.AddNumber(input.shape.rank());
  for (const int64_t dim : input.shape.dims()) digest.AddNumber(static_cast<uint64_t>(dim));
  digest.AddNumber(input.byte_size);
  for (size_t i = 0; i < input.chunk_count(); ++i) {
    if (input.chunk(i).where.type == memory::MemoryType::kGpu) return false;
  }
  if (secret != nullptr && input.byte_size >= kHashedFrom) {
    if (const auto tag = HashInput(input, *secret)) {
      digest.AddNumber(1);
      digest.AddBytes(tag->data(), tag->size());
      return true;
    }
    digest.AddNumber(0);
  }
  for (size_t i = 0; i < input.chunk_count(); ++i) {
    digest.AddBytes(input.chunk(i).data, input.chunk(i).size);
  }
  return true;
}

// Requesting no output means all of them, and is equivalent to naming them all. Both lists are in
// the order of names.
void AddOutputs(Digest& digest, const core::Request& request) {
  if (request.outputs.empty()) {
    digest.AddNumber(request.model->outputs_by_name().size());
    for (const uint32_t index : request.model->outputs_by_name()) digest.AddNumber(index);
    return;
  }
  digest.AddNumber(request.outputs.size());
  for (const core::RequestedOutput& output : request.outputs) digest.AddNumber(output.model_index);
}

void AddParameters(Digest& digest, const core::Request& request) {
  digest.AddNumber(request.parameters.size());
  for (const core::Parameter& parameter : request.parameters) {
    digest.AddText(parameter.name);
    digest.AddNumber(parameter.value.index());
    std::visit(
        [&digest](const auto& value) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string_view>) {
            digest.AddText(value);
          } else {
            digest.AddBytes(&value, sizeof value);
          }
        },
        parameter.value);
  }
}

void AddSequence(Digest& digest, const core::Request& request) {
  digest.AddNumber(request.flags);
  digest.AddNumber(request.correlation_id.index());
  if (const auto* text = std::get_if<std::string_view>(&request.correlation_id)) {
    digest.AddText(*text);
  } else {
    digest.AddNumber(std::get<uint64_t>(request.correlation_id));
  }
}

}  // namespace

std::string ModelFingerprint(int64_t latest_file_ns, const config::ModelConfig& config) {
  // Servers with more or fewer instances give the same responses.
  config::ModelConfig relevant = config;
  relevant.instance_group.clear();
  const std::string bytes = config::SerializeToProto(relevant);
  Digest digest;
  digest.Start();
  digest.AddNumber(static_cast<uint64_t>(latest_file_ns));
  digest.AddText(bytes);
  // Without memory for a digest, what it would stand for.
  const auto finished = digest.Finish();
  if (!finished) return fmt::format("{} {}", latest_file_ns, bytes);
  return {reinterpret_cast<const char*>(finished->data()), finished->size()};
}

std::optional<core::CacheKey> MakeCacheKey(const core::Request& request,
                                           const core::CacheSecret* secret, uint64_t epoch) {
  thread_local Digest digest;
  if (!digest.Start()) return std::nullopt;
  if (secret != nullptr) digest.AddBytes(secret->digest_key.data(), secret->digest_key.size());
  digest.AddText(request.model->id_text());
  digest.AddNumber(static_cast<uint64_t>(request.model->version()));
  digest.AddText(request.model->fingerprint());
  digest.AddNumber(epoch);
  AddOutputs(digest, request);
  AddParameters(digest, request);
  AddSequence(digest, request);
  digest.AddNumber(request.inputs.size());
  for (const core::RequestInput& input : request.inputs) {
    if (!AddInput(digest, input, secret)) return std::nullopt;
  }
  const auto bytes = digest.Finish();
  if (!bytes) return std::nullopt;
  static constexpr char kHex[] = "0123456789abcdef";
  core::CacheKey key;
  char* to = std::copy(kPrefix.begin(), kPrefix.end(), key.text.begin());
  for (const unsigned char byte : *bytes) {
    *to++ = kHex[byte >> 4];
    *to++ = kHex[byte & 15];
  }
  return key;
}

}  // namespace nereid::schedule
