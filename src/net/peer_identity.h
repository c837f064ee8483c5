// SPDX-License-Identifier: Apache-2.0
// What a client's certificate says about the client.
#pragma once

#include <string>
#include <vector>

namespace nereid::net {

// Immutable. The certificate was verified during the handshake.
struct PeerIdentity {
  std::string subject;             // as in RFC 2253: "CN=billing,O=Example"
  std::vector<std::string> names;  // alternative names: "DNS:a.example.com", "URI:...", "email:..."
  std::string fingerprint;         // SHA-256 of the certificate, as bytes
};

}  // namespace nereid::net
