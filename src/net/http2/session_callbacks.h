// SPDX-License-Identifier: Apache-2.0
// An nghttp2 server session, and the callbacks through which it calls methods of its owner.
#pragma once

#include <cstdint>
#include <memory>

#include <nghttp2/nghttp2.h>

#include "base/check.h"
#include "http2/grpc_server.h"
#include "http2/grpc_stream.h"

namespace nereid::http2 {

// Creates a session and submits our settings. `callbacks` need not outlive the call; `owner` is the
// argument of the callbacks, and `memory` outlives the session, which the caller deletes.
nghttp2_session* CreateServerSession(const GrpcServerOptions& options,
                                     const nghttp2_session_callbacks* callbacks, void* owner,
                                     nghttp2_mem* memory);

// Each callback calls the method of the same name, which the compiler can inline.
template <typename Owner>
struct SessionCallbacks {
  struct Deleter {
    void operator()(nghttp2_session_callbacks* callbacks) const {
      nghttp2_session_callbacks_del(callbacks);
    }
  };

  static Owner& Self(void* owner) { return *static_cast<Owner*>(owner); }

  static std::unique_ptr<nghttp2_session_callbacks, Deleter> Make() {
    nghttp2_session_callbacks* callbacks = nullptr;
    NEREID_CHECK(nghttp2_session_callbacks_new(&callbacks) == 0);
    SetReceiving(callbacks);
    SetSending(callbacks);
    return std::unique_ptr<nghttp2_session_callbacks, Deleter>(callbacks);
  }

  static void SetReceiving(nghttp2_session_callbacks* callbacks) {
    nghttp2_session_callbacks_set_on_begin_frame_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame_hd* head, void* owner) {
          Self(owner).OnBeginFrame(*head);
          return 0;
        });
    nghttp2_session_callbacks_set_on_begin_headers_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* owner) {
          return Self(owner).OnBeginHeaders(*frame);
        });
    nghttp2_session_callbacks_set_on_header_callback2(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, nghttp2_rcbuf* name,
                      nghttp2_rcbuf* value, uint8_t, void* owner) {
          Self(owner).OnHeader(*frame, name, value);
          return 0;
        });
    nghttp2_session_callbacks_set_on_frame_recv_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* owner) {
          Self(owner).OnFrame(*frame);
          return 0;
        });
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        callbacks, [](nghttp2_session*, uint8_t, int32_t stream_id, const uint8_t* data,
                      size_t size, void* owner) {
          Self(owner).OnData(stream_id, data, size);
          return 0;
        });
    nghttp2_session_callbacks_set_on_stream_close_callback(
        callbacks, [](nghttp2_session*, int32_t stream_id, uint32_t, void* owner) {
          Self(owner).OnStreamClosed(stream_id);
          return 0;
        });
  }

  static void SetSending(nghttp2_session_callbacks* callbacks) {
    nghttp2_session_callbacks_set_on_frame_send_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* owner) {
          Self(owner).OnFrameSent(*frame);
          return 0;
        });
    nghttp2_session_callbacks_set_send_data_callback(
        callbacks, [](nghttp2_session*, nghttp2_frame*, const uint8_t* frame_head, size_t length,
                      nghttp2_data_source* source, void* owner) {
          return Self(owner).OnSendData(*static_cast<GrpcStream*>(source->ptr), frame_head, length);
        });
    nghttp2_session_callbacks_set_data_source_read_length_callback(
        callbacks, [](nghttp2_session*, uint8_t, int32_t, int32_t, int32_t, uint32_t, void*) {
          // Larger frames save nothing: a frame costs nine bytes and one piece of a gathered write.
          return ssize_t{256 << 10};
        });
  }

  // For an nghttp2_data_provider whose source is a GrpcStream.
  static ssize_t ReadData(nghttp2_session*, int32_t, uint8_t*, size_t limit, uint32_t* flags,
                          nghttp2_data_source* source, void* owner) {
    return Self(owner).OnReadData(*static_cast<GrpcStream*>(source->ptr), limit, flags);
  }
};

}  // namespace nereid::http2
