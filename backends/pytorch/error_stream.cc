// SPDX-License-Identifier: Apache-2.0
#include "pytorch_backend/error_stream.h"

#include <iostream>

namespace nereid::pytorch {
namespace {

// Whatever a library writes, a message needs no more.
constexpr size_t kMaxKept = 4096;

thread_local CapturedErrors* current = nullptr;

}  // namespace

CapturedErrors::CapturedErrors() : outer_(current) { current = this; }
CapturedErrors::~CapturedErrors() { current = outer_; }

std::string CapturedErrors::Text() const {
  return text_.substr(0, text_.find_last_not_of(" \n") + 1);
}

ErrorStreamRoute::ErrorStreamRoute() : before_(std::cerr.rdbuf(this)) {}

ErrorStreamRoute::~ErrorStreamRoute() {
  // Somebody else may have replaced it meanwhile, whose choice stays.
  if (std::cerr.rdbuf() == this) {
    std::cerr.rdbuf(before_);
  }
}

int ErrorStreamRoute::overflow(int character) {
  if (character == traits_type::eof()) {
    return 0;
  }
  const char byte = static_cast<char>(character);
  return xsputn(&byte, 1) == 1 ? character : traits_type::eof();
}

std::streamsize ErrorStreamRoute::xsputn(const char* text, std::streamsize count) {
  if (current == nullptr) {
    return before_->sputn(text, count);
  }
  if (current->text_.size() < kMaxKept) {
    current->text_.append(text, static_cast<size_t>(count));
  }
  return count;
}

int ErrorStreamRoute::sync() { return current == nullptr ? before_->pubsync() : 0; }

}  // namespace nereid::pytorch
