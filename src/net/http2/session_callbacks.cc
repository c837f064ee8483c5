// SPDX-License-Identifier: Apache-2.0
#include "http2/session_callbacks.h"

#include <algorithm>

#include "http2/event_limit.h"

namespace nereid::http2 {

nghttp2_session* CreateServerSession(const GrpcServerOptions& options,
                                     const nghttp2_session_callbacks* callbacks, void* owner,
                                     nghttp2_mem* memory) {
  nghttp2_option* option = nullptr;
  NEREID_CHECK(nghttp2_option_new(&option) == 0);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);
  // GrpcHeadReader checks headers, and GrpcSession counts data.
  nghttp2_option_set_no_http_messaging(option, 1);
  // Our own limit, which tells the client the reason, is reached first.
  nghttp2_option_set_stream_reset_rate_limit(
      option, uint64_t{options.resets_per_second} * EventLimit::kBurstSeconds * 4,
      uint64_t{options.resets_per_second} * 4);
  nghttp2_session* session = nullptr;
  NEREID_CHECK(nghttp2_session_server_new3(&session, callbacks, owner, option, memory) == 0);
  nghttp2_option_del(option);

  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options.max_concurrent_streams},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, INT32_MAX},
      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, options.max_frame_bytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
       static_cast<uint32_t>(std::min<size_t>(options.max_header_list_bytes, UINT32_MAX))},
  };
  NEREID_CHECK(nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, 4) == 0);
  const auto window =
      static_cast<int32_t>(std::clamp<size_t>(options.connection_budget_bytes, 65535, INT32_MAX));
  NEREID_CHECK(nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, window) == 0);
  return session;
}

}  // namespace nereid::http2
