// SPDX-License-Identifier: Apache-2.0
// An HTTP server for tests that answers what the test says: faults that no real server makes on
// demand.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace nereid::s3 {

struct StubRequest {
  std::string target;                          // path and query
  std::map<std::string, std::string> headers;  // names in lower case
};

struct StubReply {
  int status = 200;
  std::map<std::string, std::string> headers;
  std::string body;
  size_t cut_off = 0;  // bytes at the end of the body that are announced but not sent
};

// Thread-safe.
class HttpStub {
 public:
  using Handler = std::function<StubReply(const StubRequest&)>;

  // `handler` is called by several threads.
  explicit HttpStub(Handler handler);
  ~HttpStub();

  // "http://127.0.0.1:port"
  std::string endpoint() const;
  // The targets asked for so far.
  std::vector<std::string> Targets() const;

 private:
  void Accept();
  void Serve(int client);

  const Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  mutable base::Mutex mutex_;
  std::vector<std::string> targets_ NEREID_GUARDED_BY(mutex_);
  std::vector<int> clients_ NEREID_GUARDED_BY(mutex_);
  std::list<std::thread> threads_ NEREID_GUARDED_BY(mutex_);
  std::thread acceptor_;
};

}  // namespace nereid::s3
