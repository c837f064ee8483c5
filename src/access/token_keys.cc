// SPDX-License-Identifier: Apache-2.0
#include "access/token_keys.h"

#include <algorithm>

#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include "access/crypto.h"
#include "access/json_reader.h"
#include "base/text_encodings.h"

namespace nereid::access {
namespace {

constexpr size_t kMaxText = size_t{256} << 10;
constexpr size_t kMaxKeys = 64;
// In bytes: 2048 to 8192 bits.
constexpr size_t kMinModulus = 256;
constexpr size_t kMaxModulus = 1024;
constexpr size_t kMaxExponent = 8;
constexpr size_t kFieldBytes = 32;  // of P-256 and Ed25519

struct Free {
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  void operator()(OSSL_PARAM_BLD* builder) const { OSSL_PARAM_BLD_free(builder); }
  void operator()(OSSL_PARAM* params) const { OSSL_PARAM_free(params); }
  void operator()(BIGNUM* number) const { BN_free(number); }
  void operator()(ECDSA_SIG* signature) const { ECDSA_SIG_free(signature); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;
using KeyRef = std::shared_ptr<EVP_PKEY>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

Owned<BIGNUM> NumberOf(std::string_view bytes) {
  return Owned<BIGNUM>(BN_bin2bn(Bytes(bytes), static_cast<int>(bytes.size()), nullptr));
}

// Null if OpenSSL refuses the numbers, such as a point that is not on its curve.
KeyRef MakeKeyOf(const char* kind, OSSL_PARAM_BLD* builder) {
  const Owned<OSSL_PARAM> params(OSSL_PARAM_BLD_to_param(builder));
  const Owned<EVP_PKEY_CTX> context(EVP_PKEY_CTX_new_from_name(nullptr, kind, nullptr));
  EVP_PKEY* key = nullptr;
  if (params == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) != 1) {
    ERR_clear_error();
    return nullptr;
  }
  return {key, EVP_PKEY_free};
}

KeyRef MakeRsaKey(std::string_view modulus, std::string_view exponent) {
  const Owned<OSSL_PARAM_BLD> builder(OSSL_PARAM_BLD_new());
  const Owned<BIGNUM> n = NumberOf(modulus);
  const Owned<BIGNUM> e = NumberOf(exponent);
  if (builder == nullptr || n == nullptr || e == nullptr || BN_is_odd(e.get()) == 0 ||
      BN_is_one(e.get()) != 0 || BN_num_bits(n.get()) < static_cast<int>(kMinModulus * 8) ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get()) != 1) {
    return nullptr;
  }
  return MakeKeyOf("RSA", builder.get());
}

KeyRef MakeEcKey(std::string_view x, std::string_view y) {
  const std::string point = fmt::format("\x04{}{}", x, y);  // the uncompressed form
  const Owned<OSSL_PARAM_BLD> builder(OSSL_PARAM_BLD_new());
  if (builder == nullptr ||
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) !=
          1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                       point.size()) != 1) {
    return nullptr;
  }
  return MakeKeyOf("EC", builder.get());
}

KeyRef MakeEdKey(std::string_view x) {
  EVP_PKEY* const key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Bytes(x), x.size());
  if (key == nullptr) return nullptr;
  return {key, EVP_PKEY_free};
}

// Tokens have the two numbers of an ECDSA signature one after the other, OpenSSL wants them as DER.
std::optional<std::string> DerOf(std::string_view signature) {
  if (signature.size() != 2 * kFieldBytes) return std::nullopt;
  const Owned<ECDSA_SIG> made(ECDSA_SIG_new());
  Owned<BIGNUM> r = NumberOf(signature.substr(0, kFieldBytes));
  Owned<BIGNUM> s = NumberOf(signature.substr(kFieldBytes));
  if (made == nullptr || r == nullptr || s == nullptr) return std::nullopt;
  ECDSA_SIG_set0(made.get(), r.release(), s.release());
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(made.get(), &der);
  if (size <= 0) return std::nullopt;
  std::string bytes(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return bytes;
}

bool IsGood(Algorithm algorithm, EVP_PKEY* key, std::string_view text, std::string_view signature) {
  std::optional<std::string> der;
  if (algorithm == Algorithm::kEs256) {
    if (!(der = DerOf(signature))) return false;
    signature = *der;
  }
  const EVP_MD* const hash = algorithm == Algorithm::kEdDsa ? nullptr : EVP_sha256();
  const Owned<EVP_MD_CTX> context(EVP_MD_CTX_new());
  const bool is_good = context != nullptr &&
                       EVP_DigestVerifyInit(context.get(), nullptr, hash, nullptr, key) == 1 &&
                       EVP_DigestVerify(context.get(), Bytes(signature), signature.size(),
                                        Bytes(text), text.size()) == 1;
  if (!is_good) ERR_clear_error();
  return is_good;
}

}  // namespace

std::optional<Algorithm> FindAlgorithm(std::string_view name) {
  if (name == "RS256") return Algorithm::kRs256;
  if (name == "ES256") return Algorithm::kEs256;
  if (name == "EdDSA") return Algorithm::kEdDsa;
  return std::nullopt;
}

// Reads one key of a set.
struct KeyReader {
  // Returns the bytes of a member; empty if it is missing or not base64url.
  static std::string BytesOf(const rapidjson::Value& json, std::string_view name) {
    const auto text = FindText(json, name);
    return text ? base::DecodeBase64Url(*text).value_or("") : "";
  }

  static std::optional<Algorithm> KindOf(const rapidjson::Value& json) {
    const std::string_view kind = FindText(json, "kty").value_or("");
    const std::string_view curve = FindText(json, "crv").value_or("");
    if (kind == "RSA") return Algorithm::kRs256;
    if (kind == "EC" && curve == "P-256") return Algorithm::kEs256;
    if (kind == "OKP" && curve == "Ed25519") return Algorithm::kEdDsa;
    return std::nullopt;
  }

  // A key that says what it is for must be for verifying signatures by this algorithm.
  static bool IsUsable(const rapidjson::Value& json, Algorithm algorithm) {
    const auto use = FindText(json, "use");
    const auto named = FindText(json, "alg");
    return (!use || *use == "sig") && (!named || FindAlgorithm(*named) == algorithm);
  }

  static KeyRef Make(const rapidjson::Value& json, Algorithm algorithm) {
    if (algorithm == Algorithm::kRs256) {
      const std::string n = BytesOf(json, "n");
      const std::string e = BytesOf(json, "e");
      const bool fits = n.size() >= kMinModulus && n.size() <= kMaxModulus + 1 && !e.empty() &&
                        e.size() <= kMaxExponent;
      return fits ? MakeRsaKey(n, e) : nullptr;
    }
    const std::string x = BytesOf(json, "x");
    if (x.size() != kFieldBytes) return nullptr;
    if (algorithm == Algorithm::kEdDsa) return MakeEdKey(x);
    const std::string y = BytesOf(json, "y");
    return y.size() == kFieldBytes ? MakeEcKey(x, y) : nullptr;
  }
};

base::Result<TokenKeys> TokenKeys::Parse(std::string_view text) {
  if (text.size() > kMaxText) {
    return base::InvalidArgumentError(fmt::format("the key set has more than {} bytes", kMaxText));
  }
  const std::optional<rapidjson::Document> document = ParseObject(text);
  const rapidjson::Value* const list = document ? Find(*document, "keys") : nullptr;
  if (list == nullptr || !list->IsArray()) {
    return base::InvalidArgumentError("expected a JSON Web Key Set: {\"keys\": [...]}");
  }
  if (list->Size() > kMaxKeys) {
    return base::InvalidArgumentError(fmt::format("the key set has more than {} keys", kMaxKeys));
  }
  TokenKeys keys;
  for (rapidjson::SizeType i = 0; i < list->Size(); ++i) {
    const rapidjson::Value& json = (*list)[i];
    if (!json.IsObject()) return base::InvalidArgumentError(fmt::format("keys[{}]: no object", i));
    const std::optional<Algorithm> algorithm = KeyReader::KindOf(json);
    if (!algorithm || !KeyReader::IsUsable(json, *algorithm)) continue;
    KeyRef key = KeyReader::Make(json, *algorithm);
    if (key == nullptr) {
      return base::InvalidArgumentError(
          fmt::format("keys[{}]: the key is malformed, or too short (RSA: at least {} bits)", i,
                      kMinModulus * 8));
    }
    keys.keys_.push_back(
        {std::string(FindText(json, "kid").value_or("")), *algorithm, std::move(key)});
  }
  if (keys.keys_.empty()) {
    return base::InvalidArgumentError("the key set has no key for RS256, ES256 or EdDSA");
  }
  return keys;
}

TokenKeys::Verdict TokenKeys::Verify(Algorithm algorithm, std::optional<std::string_view> key_id,
                                     std::string_view signed_text,
                                     std::string_view signature) const {
  const Key* chosen = nullptr;
  for (const Key& key : keys_) {
    if (key.algorithm != algorithm || (key_id && key.id != *key_id)) continue;
    if (chosen != nullptr) return Verdict::kUnknownKey;  // it is not clear which one is meant
    chosen = &key;
  }
  if (chosen == nullptr) return Verdict::kUnknownKey;
  return IsGood(algorithm, chosen->key.get(), signed_text, signature) ? Verdict::kGood
                                                                      : Verdict::kBad;
}

}  // namespace nereid::access
