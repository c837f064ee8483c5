// SPDX-License-Identifier: Apache-2.0
// Compiled models write their errors to std::cerr besides reporting them.
#pragma once

#include <streambuf>
#include <string>

namespace nereid::pytorch {

// Keeps what the thread that made it writes to std::cerr, as long as it exists. Nothing is kept
// without an ErrorStreamRoute.
class CapturedErrors {
 public:
  CapturedErrors();
  ~CapturedErrors();
  CapturedErrors(const CapturedErrors&) = delete;
  CapturedErrors& operator=(const CapturedErrors&) = delete;

  // What was written until now, without line breaks at its end.
  std::string Text() const;

 private:
  friend class ErrorStreamRoute;
  std::string text_;
  CapturedErrors* const outer_;
};

// Makes it possible to capture what is written to std::cerr, from its construction to its
// destruction; what no thread captures goes where it went before. One for a process.
class ErrorStreamRoute : private std::streambuf {
 public:
  ErrorStreamRoute();
  ~ErrorStreamRoute() override;

 private:
  int overflow(int character) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override;

  std::streambuf* const before_;
};

}  // namespace nereid::pytorch
