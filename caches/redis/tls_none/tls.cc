// SPDX-License-Identifier: Apache-2.0
#include "redis_cache/tls.h"

namespace nereid::redis_cache {

TlsResult MakeTls(const TlsSettings&) {
  return {nullptr, "this build has no TLS for Redis: hiredis was found without hiredis_ssl"};
}

}  // namespace nereid::redis_cache
