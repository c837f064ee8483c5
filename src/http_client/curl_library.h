// SPDX-License-Identifier: Apache-2.0
// libcurl, opened at its first use. It comes with about thirty other libraries, which would more
// than double the start-up time of a server that sends no HTTP requests.
#pragma once

#include <curl/curl.h>

#include <memory>

#include "base/shared_library.h"
#include "base/status.h"

namespace nereid::http_client {

// The functions of libcurl in use here. Immutable.
struct CurlLibrary {
  // Returns the library, which all callers share. UNAVAILABLE if it is not installed, lacks a
  // function or cannot be initialised.
  static base::Result<std::shared_ptr<const CurlLibrary>> Open();

  CurlLibrary() = default;
  ~CurlLibrary();
  CurlLibrary(const CurlLibrary&) = delete;
  CurlLibrary& operator=(const CurlLibrary&) = delete;

  decltype(curl_global_init)* global_init = nullptr;
  decltype(curl_global_cleanup)* global_cleanup = nullptr;
  decltype(curl_easy_init)* easy_init = nullptr;
  decltype(curl_easy_cleanup)* easy_cleanup = nullptr;
  decltype(curl_easy_reset)* easy_reset = nullptr;
  decltype(curl_easy_setopt)* easy_setopt = nullptr;
  decltype(curl_easy_perform)* easy_perform = nullptr;
  decltype(curl_easy_strerror)* easy_strerror = nullptr;
  decltype(curl_slist_append)* slist_append = nullptr;
  decltype(curl_slist_free_all)* slist_free_all = nullptr;
  std::unique_ptr<base::SharedLibrary> library;
  bool is_initialized = false;
};

}  // namespace nereid::http_client
