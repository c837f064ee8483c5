// SPDX-License-Identifier: Apache-2.0
// A named thread.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace nereid::base {

// A thread that the destructor joins.
class Thread {
 public:
  Thread() = default;
  // The kernel shows the first 15 characters of `name`.
  Thread(const std::string& name, std::function<void()> body);
  Thread(Thread&&) = default;
  Thread& operator=(Thread&&) = default;
  ~Thread() { Join(); }

  // Waits for the body to return; a second call does nothing. Must not be called by the thread
  // itself.
  void Join();
  bool joinable() const { return thread_.joinable(); }
  std::thread::id id() const { return thread_.get_id(); }

 private:
  std::thread thread_;
};

}  // namespace nereid::base
