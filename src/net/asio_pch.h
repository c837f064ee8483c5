// SPDX-License-Identifier: Apache-2.0
// What every translation unit of this module that touches the event loop includes, compiled once.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
