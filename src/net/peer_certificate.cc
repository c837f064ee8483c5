// SPDX-License-Identifier: Apache-2.0
#include "net/peer_certificate.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <string_view>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>

namespace nereid::net {
namespace {

// More names than a certificate has in practice.
constexpr int kMaxNames = 256;

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};

std::string SubjectOf(const X509* certificate) {
  const std::unique_ptr<BIO, Free> text(BIO_new(BIO_s_mem()));
  if (text == nullptr ||
      X509_NAME_print_ex(text.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) < 0) {
    return {};
  }
  char* data = nullptr;
  const long size = BIO_get_mem_data(text.get(), &data);
  return {data, static_cast<size_t>(std::max(size, 0L))};
}

std::string_view TextOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

std::string AddressOf(std::string_view bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (bytes.size() != 4 && bytes.size() != 16) return {};
  inet_ntop(bytes.size() == 4 ? AF_INET : AF_INET6, bytes.data(), text.data(), text.size());
  return text.data();
}

// Empty for kinds of names that are not used here, and for a name with a character that could make
// it look like another one.
std::string NameOf(const GENERAL_NAME& name) {
  const auto with_kind = [](const char* kind, std::string_view text) {
    const bool is_plain = std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
    return is_plain && !text.empty() ? kind + std::string(text) : std::string();
  };
  switch (name.type) {
    case GEN_DNS:
      return with_kind("DNS:", TextOf(name.d.dNSName));
    case GEN_URI:
      return with_kind("URI:", TextOf(name.d.uniformResourceIdentifier));
    case GEN_EMAIL:
      return with_kind("email:", TextOf(name.d.rfc822Name));
    case GEN_IPADD:
      return with_kind("IP:", AddressOf(TextOf(name.d.iPAddress)));
    default:
      return {};
  }
}

std::vector<std::string> NamesOf(const X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, Free> list(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> names;
  if (list == nullptr) return names;
  for (int i = 0; i < std::min(sk_GENERAL_NAME_num(list.get()), kMaxNames); ++i) {
    std::string name = NameOf(*sk_GENERAL_NAME_value(list.get(), i));
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

std::unique_ptr<const PeerIdentity> ReadPeerIdentity(const SSL* ssl) {
  const X509* const certificate = SSL_get0_peer_certificate(ssl);
  if (certificate == nullptr) return nullptr;
  auto identity = std::make_unique<PeerIdentity>();
  identity->subject = SubjectOf(certificate);
  identity->names = NamesOf(certificate);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1) return nullptr;
  identity->fingerprint.assign(reinterpret_cast<const char*>(digest.data()), size);
  return identity;
}

}  // namespace nereid::net
