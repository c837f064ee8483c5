// SPDX-License-Identifier: Apache-2.0
// Reads a client's certificate. For this module's own files, because it uses OpenSSL's types.
#pragma once

#include <memory>

#include <openssl/ssl.h>

#include "net/peer_identity.h"

namespace nereid::net {

// Returns null if the client has shown none. REQUIRES: the handshake is done.
std::unique_ptr<const PeerIdentity> ReadPeerIdentity(const SSL* ssl);

}  // namespace nereid::net
