// SPDX-License-Identifier: Apache-2.0
// An HTTP server for tests that sends the replies that a test chooses, including faults that no
// real server produces on demand.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace nereid::http_client {

// A request that the stub received.
struct StubRequest {
  std::string method;
  std::string target;                          // path and query
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // of a known length
};

// A reply that the stub sends, possibly faulty.
struct StubReply {
  int status = 200;
  std::map<std::string, std::string> headers = {};
  std::string body = {};
  size_t cut_off = 0;    // bytes at the end of the body that are announced but not sent
  bool hangs = false;    // the connection stays open after a cut-off body
  std::string raw = {};  // if not empty, sent instead of the above; then the connection is closed
};

// The server. Thread-safe.
class HttpStub {
 public:
  using Handler = std::function<StubReply(const StubRequest&)>;

  // Several threads call `handler`.
  explicit HttpStub(Handler handler);
  ~HttpStub();

  // Returns "http://127.0.0.1:port".
  std::string endpoint() const;
  // Returns the targets requested so far.
  std::vector<std::string> Targets() const;
  // Returns how many connections were accepted so far.
  size_t Connections() const;

 private:
  void Accept();
  void Serve(int client);
  // Returns false if the client has closed the connection.
  static bool Receive(int client, std::string& bytes, StubRequest& request);
  static bool Reply(int client, const StubReply& reply);

  const Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  mutable base::Mutex mutex_;
  std::vector<std::string> targets_ NEREID_GUARDED_BY(mutex_);
  std::vector<int> clients_ NEREID_GUARDED_BY(mutex_);
  std::list<std::thread> threads_ NEREID_GUARDED_BY(mutex_);
  std::thread acceptor_;
};

}  // namespace nereid::http_client
