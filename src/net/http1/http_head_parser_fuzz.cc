// SPDX-License-Identifier: Apache-2.0
// Fuzzes HTTP/1.1 requests: the head is found and parsed, and a chunked body is decoded. However
// the bytes are split, the outcome must be the same.
#include "http1/http_head_parser.h"

#include <algorithm>

#include "base/check.h"
#include "fuzz/fuzz.h"

namespace {

using nereid::http1::HttpChunkSink;
using nereid::http1::HttpHead;
using nereid::http1::HttpHeader;
using nereid::http1::HttpHeadParser;
using nereid::http1::HttpHeadScanner;

constexpr size_t kMaxHeaderBytes = 8192;

struct Outcome {
  HttpHeadScanner::State state;
  int refusal = 0;
  size_t headers = 0;
  bool is_chunked = false;
  bool is_done = false;
  int body_refusal = 0;
  std::string body;
  bool operator==(const Outcome&) const = default;
};

class Collect final : public HttpChunkSink {
 public:
  explicit Collect(std::string& body) : body_(body) {}
  void OnChunkBytes(std::string_view bytes) override { body_.append(bytes); }

 private:
  std::string& body_;
};

// Passes `first` bytes before the others.
Outcome ReadRequest(std::string_view text, size_t first) {
  Outcome outcome;
  HttpHeadScanner scanner;
  outcome.state = scanner.Scan(text.substr(0, first));
  if (outcome.state == HttpHeadScanner::State::kIncomplete) outcome.state = scanner.Scan(text);
  if (outcome.state != HttpHeadScanner::State::kComplete) return outcome;
  const std::string_view head_text = text.substr(0, scanner.size());
  if (head_text.size() > kMaxHeaderBytes) return outcome;
  HttpHead head;
  HttpHeadParser parser(head, kMaxHeaderBytes);
  outcome.refusal = parser.ParseHead(head_text).status;
  if (outcome.refusal != 0) return outcome;
  const auto is_inside = [head_text](std::string_view part) {
    return part.empty() || (part.data() >= head_text.data() &&
                            part.data() + part.size() <= head_text.data() + head_text.size());
  };
  outcome.headers = head.headers().size();
  for (const HttpHeader& header : head.headers()) {
    NEREID_CHECK(is_inside(header.name) && is_inside(header.value));
    NEREID_CHECK(header.value.find('\n') == std::string_view::npos);
  }
  // An address without a path is that of "/", which the text need not have.
  NEREID_CHECK(head.path() == "/" || is_inside(head.path()));
  NEREID_CHECK(is_inside(head.query()));
  outcome.is_chunked = head.chunked();
  if (!outcome.is_chunked) return outcome;
  // The body comes in two pieces, too; what is not consumed is passed again.
  std::string_view body = text.substr(scanner.size());
  Collect collect(outcome.body);
  const size_t middle = std::min(body.size(), first);
  auto progress = parser.ParseChunks(body.substr(0, middle), collect);
  NEREID_CHECK(progress.consumed <= middle);
  if (!progress.done && progress.refusal.status == 0) {
    body.remove_prefix(progress.consumed);
    progress = parser.ParseChunks(body, collect);
    NEREID_CHECK(progress.consumed <= body.size());
  }
  outcome.is_done = progress.done;
  outcome.body_refusal = progress.refusal.status;
  if (outcome.body_refusal != 0) outcome.body.clear();  // its length depends on the split
  return outcome;
}

// What the quick reader accepts, scanner and parser accept too, with the same result.
void CheckPlainHead(std::string_view text) {
  HttpHead plain;
  const size_t size = HttpHeadParser::ReadPlain(text, kMaxHeaderBytes, plain);
  if (size == 0) return;
  HttpHeadScanner scanner;
  NEREID_CHECK(scanner.Scan(text) == HttpHeadScanner::State::kComplete && scanner.size() == size);
  HttpHead head;
  HttpHeadParser parser(head, kMaxHeaderBytes);
  NEREID_CHECK(parser.ParseHead(text.substr(0, size)).status == 0);
  NEREID_CHECK(plain.method() == head.method() && plain.method_text() == head.method_text());
  NEREID_CHECK(plain.target() == head.target() && plain.version() == head.version());
  NEREID_CHECK(plain.content_length() == head.content_length());
  NEREID_CHECK(plain.chunked() == head.chunked());
  NEREID_CHECK(plain.keep_alive() == head.keep_alive());
  NEREID_CHECK(plain.headers().size() == head.headers().size());
  for (size_t i = 0; i < plain.headers().size(); ++i) {
    NEREID_CHECK(plain.headers()[i].name == head.headers()[i].name);
    NEREID_CHECK(plain.headers()[i].value == head.headers()[i].value);
  }
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  return {
      "GET /v2/health/ready HTTP/1.1\r\nHost: a\r\n\r\n",
      ("POST /v2/models/m/infer?x=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n"
       "Inference-Header-Content-Length: 4\r\nAccept-Encoding: gzip;q=0.5\r\n\r\nhello world!"),
      ("POST / HTTP/1.1\r\nTransfer-Encoding: "
       "chunked\r\n\r\n5\r\nhello\r\n1;name=\"v\"\r\n!\r\n0\r\n"
       "Trailer: t\r\n\r\n"),
      ("POST /a?b HTTP/1.1\r\nconnection: Close\r\nContent-length:7 \r\nEmpty:\r\nx-y: z  z "
       "\r\n\r\n1234567"),
      "POST / HTTP/1.0\r\nConnection: keep-alive, x\r\nExpect: 100-continue\r\n\r\n",
      "GET http://a:8000 HTTP/1.1\r\nHost: a\r\n\r\n",
      "OPTIONS * HTTP/1.1\r\nHost:\r\nA: \t b \r\nCookie: a=b\r\n\r\n",
      ("GET /%2e%2e/?a=%zz HTTP/1.1\r\nHost: [::1]:8000\r\nContent-Length: 0\r\n\r\nGET / "
       "HTTP/1.1\r\n\r\n"),
  };
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckPlainHead(text);
  const Outcome at_once = ReadRequest(text, text.size());
  for (const size_t first :
       {size_t{0}, size_t{1}, size / 3, size / 2, size - std::min<size_t>(size, 3)}) {
    const Outcome outcome = ReadRequest(text, std::min(first, size));
    NEREID_CHECK(outcome == at_once);
  }
  return 0;
}
