// SPDX-License-Identifier: Apache-2.0
#include "access/testing/tokens.h"

#include <vector>

#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include "access/crypto.h"
#include "base/check.h"
#include "base/text_encodings.h"

namespace nereid::access {
namespace {

constexpr int kFieldBytes = 32;

std::string NumberOf(const EVP_PKEY* key, const char* name, int least_bytes) {
  BIGNUM* number = nullptr;
  NEREID_CHECK(EVP_PKEY_get_bn_param(key, name, &number) == 1);
  const int size = std::max(least_bytes, BN_num_bytes(number));
  std::string bytes(static_cast<size_t>(size), '\0');
  BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()), size);
  BN_free(number);
  return base::EncodeBase64Url(bytes);
}

const char* NameOf(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kRs256:
      return "RS256";
    case Algorithm::kEs256:
      return "ES256";
    case Algorithm::kEdDsa:
      return "EdDSA";
  }
  return "";
}

}  // namespace

TestIssuer::TestIssuer(Algorithm algorithm, std::string id, unsigned rsa_bits)
    : algorithm_(algorithm), id_(std::move(id)) {
  EVP_PKEY* key = nullptr;
  if (algorithm == Algorithm::kRs256) key = EVP_RSA_gen(rsa_bits);
  if (algorithm == Algorithm::kEs256) key = EVP_EC_gen("P-256");
  if (algorithm == Algorithm::kEdDsa) key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  NEREID_CHECK(key != nullptr);
  key_ = {key, EVP_PKEY_free};
}

std::string TestIssuer::Jwk() const {
  const EVP_PKEY* const key = key_.get();
  switch (algorithm_) {
    case Algorithm::kRs256:
      return fmt::format(R"({{"kty":"RSA","kid":"{}","n":"{}","e":"{}"}})", id_,
                         NumberOf(key, OSSL_PKEY_PARAM_RSA_N, 0),
                         NumberOf(key, OSSL_PKEY_PARAM_RSA_E, 0));
    case Algorithm::kEs256:
      return fmt::format(R"({{"kty":"EC","crv":"P-256","kid":"{}","x":"{}","y":"{}"}})", id_,
                         NumberOf(key, OSSL_PKEY_PARAM_EC_PUB_X, kFieldBytes),
                         NumberOf(key, OSSL_PKEY_PARAM_EC_PUB_Y, kFieldBytes));
    case Algorithm::kEdDsa: {
      std::string x(kFieldBytes, '\0');
      size_t size = x.size();
      EVP_PKEY_get_raw_public_key(key, reinterpret_cast<unsigned char*>(x.data()), &size);
      return fmt::format(R"({{"kty":"OKP","crv":"Ed25519","kid":"{}","x":"{}"}})", id_,
                         base::EncodeBase64Url(x));
    }
  }
  return {};
}

std::string TestIssuer::Sign(std::string_view text) const {
  EVP_MD_CTX* const context = EVP_MD_CTX_new();
  const EVP_MD* const hash = algorithm_ == Algorithm::kEdDsa ? nullptr : EVP_sha256();
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  size_t size = 0;
  NEREID_CHECK(EVP_DigestSignInit(context, nullptr, hash, nullptr, key_.get()) == 1);
  NEREID_CHECK(EVP_DigestSign(context, nullptr, &size, bytes, text.size()) == 1);
  std::vector<unsigned char> signature(size);
  NEREID_CHECK(EVP_DigestSign(context, signature.data(), &size, bytes, text.size()) == 1);
  EVP_MD_CTX_free(context);
  if (algorithm_ != Algorithm::kEs256) {
    return {reinterpret_cast<char*>(signature.data()), size};
  }
  // Tokens have the two numbers one after the other.
  const unsigned char* der = signature.data();
  ECDSA_SIG* const numbers = d2i_ECDSA_SIG(nullptr, &der, static_cast<long>(size));
  std::string both(2 * kFieldBytes, '\0');
  auto* const out = reinterpret_cast<unsigned char*>(both.data());
  BN_bn2binpad(ECDSA_SIG_get0_r(numbers), out, kFieldBytes);
  BN_bn2binpad(ECDSA_SIG_get0_s(numbers), out + kFieldBytes, kFieldBytes);
  ECDSA_SIG_free(numbers);
  return both;
}

std::string TestIssuer::Token(std::string_view payload, std::string_view head) const {
  const std::string usual = fmt::format(R"({{"alg":"{}","kid":"{}"}})", NameOf(algorithm_), id_);
  const std::string text = base::EncodeBase64Url(head.empty() ? std::string_view(usual) : head) +
                           "." + base::EncodeBase64Url(payload);
  return text + "." + base::EncodeBase64Url(Sign(text));
}

}  // namespace nereid::access
