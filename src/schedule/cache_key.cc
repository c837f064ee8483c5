// SPDX-License-Identifier: Apache-2.0
#include "schedule/cache_key.h"

#include <openssl/evp.h>

#include <array>
#include <cstring>
#include <memory>
#include <string_view>
#include <variant>

#include "core/model.h"

namespace nereid::schedule {
namespace {

// Goes before the hash, so that stores that outlive a release never mix what two releases mean.
constexpr std::string_view kPrefix = "nereid1:";
constexpr size_t kDigestBytes = 32;
static_assert(kPrefix.size() + 2 * kDigestBytes == core::CacheKey::kSize);

// SHA-256 that is used again and again. Small pieces are gathered, as a call into the library costs
// more than they do. Every piece of variable length goes in behind its length, so that no two
// questions spell the same bytes.
class Digest {
 public:
  // False when the library is out of memory.
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

bool AddInput(Digest& digest, const core::RequestInput& input) {
  if (input.model_index == core::kServerInput) return false;
  digest.AddText(input.name);
  digest.AddNumber(static_cast<uint64_t>(input.type));
  digest.AddNumber(input.shape.rank());
  for (const int64_t dim : input.shape.dims()) digest.AddNumber(static_cast<uint64_t>(dim));
  digest.AddNumber(input.byte_size);
  for (size_t i = 0; i < input.chunk_count(); ++i) {
    const core::DataChunk& chunk = input.chunk(i);
    if (chunk.where.type == memory::MemoryType::kGpu) return false;
    digest.AddBytes(chunk.data, chunk.size);
  }
  return true;
}

// Asking for no output means all of them, and is the same question as naming them all. Both lists are
// in the order of names.
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

std::optional<core::CacheKey> MakeCacheKey(const core::Request& request) {
  thread_local Digest digest;
  if (!digest.Start()) return std::nullopt;
  digest.AddText(request.model->name());
  digest.AddNumber(static_cast<uint64_t>(request.model->version()));
  digest.AddText(request.model->fingerprint());
  AddOutputs(digest, request);
  AddParameters(digest, request);
  AddSequence(digest, request);
  digest.AddNumber(request.inputs.size());
  for (const core::RequestInput& input : request.inputs) {
    if (!AddInput(digest, input)) return std::nullopt;
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
