// SPDX-License-Identifier: Apache-2.0
#include "http_client/curl_library.h"

#include <string>
#include <utility>

#include "base/mutex.h"

namespace nereid::http_client {
namespace {

template <typename Function>
bool Find(const base::SharedLibrary& library, const char* name, Function*& function) {
  function = library.Find<Function>(name);
  return function != nullptr;
}

// Two threads must not initialise or clean up older versions of libcurl at once.
base::Mutex global_mutex;
std::weak_ptr<const CurlLibrary> shared_library NEREID_GUARDED_BY(global_mutex);

base::Result<std::shared_ptr<const CurlLibrary>> OpenLibrary() NEREID_REQUIRES(global_mutex) {
  constexpr const char* kName = "libcurl.so.4";
  auto opened = base::SharedLibrary::Open(kName);
  if (!opened.ok()) {
    return base::UnavailableError("HTTP requests need libcurl: " +
                                  std::string(opened.status().message()));
  }
  auto curl = std::make_shared<CurlLibrary>();
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
    return base::UnavailableError(std::string(kName) + " lacks functions that are needed");
  }
  curl->is_initialized = curl->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  if (!curl->is_initialized) {
    return base::UnavailableError(std::string(kName) + " cannot be initialised");
  }
  return std::shared_ptr<const CurlLibrary>(std::move(curl));
}

}  // namespace

base::Result<std::shared_ptr<const CurlLibrary>> CurlLibrary::Open() {
  base::MutexLock lock(global_mutex);
  if (auto shared = shared_library.lock()) return shared;
  auto opened = OpenLibrary();
  if (opened.ok()) shared_library = *opened;
  return opened;
}

CurlLibrary::~CurlLibrary() {
  if (!is_initialized) return;
  base::MutexLock lock(global_mutex);
  global_cleanup();
}

}  // namespace nereid::http_client
