// SPDX-License-Identifier: Apache-2.0
#include "net/tls_handshake.h"

#include "base/log.h"

namespace nereid::net {

void TlsHandshake::Start(Reactor& reactor, ConnectionGroup& group, Accepted accepted,
                         TlsContext& context, const Next& next) {
  std::unique_ptr<TlsChannel> channel = context.NewChannel(accepted.socket.get());
  if (channel == nullptr) return;
  auto* const handshake =
      new TlsHandshake(reactor, group, std::move(accepted), std::move(channel), context, next);
  if (handshake->closed()) return handshake->Release();  // the socket could not be watched
  handshake->Step();
}

TlsHandshake::TlsHandshake(Reactor& reactor, ConnectionGroup& group, Accepted accepted,
                           std::unique_ptr<TlsChannel> channel, TlsContext& context,
                           const Next& next)
    : Connection(reactor, group, std::move(accepted)),
      channel_(std::move(channel)),
      context_(context),
      next_(next),
      since_ms_(CoarseNowMs()) {}

void TlsHandshake::Step() {
  switch (channel_->Handshake()) {
    case TlsChannel::Step::kDone:
      return next_(reactor(), TakeSocket(), std::move(channel_));
    case TlsChannel::Step::kWaitForBytes:
      NoteDrained();
      return ArmReadable();
    case TlsChannel::Step::kWaitForRoom:
      return ArmWritable();
    case TlsChannel::Step::kFailed:
      NEREID_VLOG(1, "TLS handshake failed: {}", channel_->FailureText());
      return Close();
  }
}

void TlsHandshake::OnSweep(uint64_t now_ms) {
  const auto limit_ms = static_cast<uint64_t>(context_.handshake_timeout().count());
  if (now_ms > since_ms_ && now_ms - since_ms_ > limit_ms) Close();
}

}  // namespace nereid::net
