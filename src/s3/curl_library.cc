// SPDX-License-Identifier: Apache-2.0
#include "s3/curl_library.h"

#include <string>
#include <utility>

namespace nereid::s3 {
namespace {

template <typename Function>
bool Find(const base::SharedLibrary& library, const char* name, Function*& function) {
  function = library.Find<Function>(name);
  return function != nullptr;
}

}  // namespace

base::Result<std::unique_ptr<const CurlLibrary>> CurlLibrary::Open() {
  constexpr const char* kName = "libcurl.so.4";
  auto opened = base::SharedLibrary::Open(kName);
  if (!opened.ok()) {
    return base::UnavailableError("object stores need libcurl: " +
                                  std::string(opened.status().message()));
  }
  auto curl = std::make_unique<CurlLibrary>();
  curl->library = std::move(*opened);
  const base::SharedLibrary& library = *curl->library;
  const bool is_complete = Find(library, "curl_global_init", curl->global_init) &&
                           Find(library, "curl_global_cleanup", curl->global_cleanup) &&
                           Find(library, "curl_easy_init", curl->easy_init) &&
                           Find(library, "curl_easy_cleanup", curl->easy_cleanup) &&
                           Find(library, "curl_easy_reset", curl->easy_reset) &&
                           Find(library, "curl_easy_setopt", curl->easy_setopt) &&
                           Find(library, "curl_easy_perform", curl->easy_perform) &&
                           Find(library, "curl_easy_strerror", curl->easy_strerror) &&
                           Find(library, "curl_slist_append", curl->slist_append) &&
                           Find(library, "curl_slist_free_all", curl->slist_free_all);
  if (!is_complete) {
    return base::UnavailableError(std::string(kName) + " lacks functions that object stores need");
  }
  return std::unique_ptr<const CurlLibrary>(std::move(curl));
}

}  // namespace nereid::s3
