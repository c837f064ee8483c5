// SPDX-License-Identifier: Apache-2.0
// Requests that change the server, sent by web pages: a browser sends what any page asks for, with
// the reach of the machine that it runs on, so such a request counts only if the server's own page
// (the console) asks for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http1/http_head.h"

namespace nereid::http {

// Returns the names by which whoever started the server calls it, in lower case: of `address`,
// where it listens, and of `origins`, as --http-cors-allow-origin has them. Nobody else can let
// these point elsewhere. "*" names nobody.
std::vector<std::string> OwnNames(std::string_view address,
                                  const std::vector<std::string>& origins);

// Returns why a request that changes the server is refused: a page of another site asks for it.
// Empty if it is not refused, which holds for all requests that no browser sends.
//
// Where nobody is asked for keys (`asks_for_keys` is false), a page may not come from a public name
// either, unless it is one of `own_names`: whoever owns a name can let it point to this machine
// once his page has been loaded, and the browser then takes his page for the server's own.
std::string RefuseOrigin(const http1::HttpHead& head, bool asks_for_keys,
                         const std::vector<std::string>& own_names = {});

// Returns why a request is refused whose answer is for people who may see what others ask of the
// server: where nobody is asked for keys, it must not come under a public name that is not one of
// `own_names`, for the same reason. The text says what to do. Empty if it is not refused. Browsers
// do not name the page that wants to read from its own server, so this holds for all clients.
std::string RefusePublicHost(const http1::HttpHead& head, bool asks_for_keys,
                             const std::vector<std::string>& own_names = {});

}  // namespace nereid::http
