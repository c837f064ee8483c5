// SPDX-License-Identifier: Apache-2.0
#include "console/console_handler.h"

#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include "base/recent_log.h"
#include "base/temporary_folder.h"
#include "http/api_handler.h"
#include "http/json_dom.h"
#include "http/openapi.h"
#include "http/testing/client.h"
#include "http/testing/fake_service.h"
#include "http1/http_server.h"
#include "net/compression.h"
#include "observe/recent_traces.h"

namespace nereid::console {
namespace {

using http::Client;
using http::Reply;

// A page of two files.
class Page {
 public:
  Page() : index_(Compress("<html>")), script_(Compress("run()")) {}
  std::vector<Asset> Files() const {
    return {{"assets/a.js", "text/javascript", "\"s\"", script_},
            {"index.html", "text/html", "\"i\"", index_}};
  }

 private:
  static std::string Compress(std::string_view text) {
    const iovec part{const_cast<char*>(text.data()), text.size()};
    return std::string(net::Compress(net::Compression::kGzip, {&part, 1})->data);
  }
  std::string index_, script_;
};

// Keys with one scope each, which are "m", "x", "s" and "a": their SHA-256.
constexpr char kKeys[] = R"({"keys":[{"id":"metrics","scopes":["metrics"],"sha256":)"
                         R"("62c66a7a5dd70c3146618063c344e531e6d4b59e379808443ce962b3abd63c5a"},)"
                         R"({"id":"metadata","scopes":["metadata"],"models":["other"],"sha256":)"
                         R"("2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"},)"
                         R"({"id":"some","scopes":["trace-log"],"models":["m"],"sha256":)"
                         R"("043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89"},)"
                         R"({"id":"all","scopes":["trace-log"],"sha256":)"
                         R"("ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"}]})";

class ConsoleTest : public testing::Test {
 protected:
  struct Options {
    bool has_page = true;
    bool has_keys = false;
    bool restricts_statistics = false;
  };
  ConsoleTest() : ConsoleTest(Options()) {}
  explicit ConsoleTest(Options options) {
    if (options.has_keys) {
      std::ofstream(keys_file()) << kKeys;
      gate_ = std::move(*access::Gate::CreateForTest(keys_file()));
    }
    common::Restrictions restrictions;
    if (options.restricts_statistics) {
      EXPECT_TRUE(restrictions.Add("statistics:k=v", "http-restricted-api", "api", "").ok());
    }
    if (options.has_page) files_ = page_.Files();
    handler_ = std::make_unique<ConsoleHandler>(
        ConsoleOptions{.gate = gate_.get(),
                       .restrictions = restrictions,
                       .own_names = {"server.example.com"},
                       .assets = files_,
                       .explain = [](const std::string& model) -> base::Result<std::string> {
                         if (model == "m") return std::string("{}");
                         return base::NotFoundError("no " + model);
                       }},
        service_, recorder_, pool_.workers());
    api_ = std::make_unique<http::ApiHandler>(
        http::ApiOptions{.gate = gate_.get(), .elsewhere = handler_.get()}, pool_, service_,
        rounds_);
    server_ =
        std::move(*http1::HttpServer::Start({.listener = {.address = "127.0.0.1"}}, pool_, *api_));
    client_ = std::make_unique<Client>(server_->port());
  }
  ~ConsoleTest() override {
    recorder_.Stop();
    std::filesystem::remove_all(folder_.path);
  }

  std::string keys_file() const { return folder_.path + "/keys.json"; }
  Reply Get(std::string_view path, std::string_view headers = "") {
    return client_->Ask("GET", path, "", headers);
  }

  const base::TemporaryFolder folder_ = base::MakeTemporaryFolder("console").value();
  Page page_;
  std::vector<Asset> files_;
  http::FakeService service_{http::MakeModel({tensor::DataType::kFp32})};
  net::ReactorPool pool_{1};
  common::RoundExecutors rounds_{pool_};
  std::unique_ptr<access::Gate> gate_;
  Recorder recorder_{service_};
  std::unique_ptr<ConsoleHandler> handler_;
  std::unique_ptr<http::ApiHandler> api_;
  std::unique_ptr<http1::HttpServer> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(ConsoleTest, ServesItsFilesCompressedWhereThatIsAccepted) {
  const Reply plain = Get("/ui/");
  EXPECT_EQ(plain.status, 200);
  EXPECT_EQ(plain.body, "<html>");
  EXPECT_TRUE(plain.Has("Content-Type: text/html\r\n"));
  EXPECT_TRUE(plain.Has("Cache-Control: no-cache\r\n"));
  const Reply script = Get("/ui/assets/a.js", "Accept-Encoding: gzip, br\r\n");
  EXPECT_TRUE(script.Has("Content-Encoding: gzip\r\n"));
  EXPECT_TRUE(script.Has("immutable\r\n"));
  EXPECT_EQ(net::Decompress(script.body, {})->data, "run()");
  for (const Reply& reply : {plain, script}) {
    EXPECT_TRUE(reply.Has("Content-Security-Policy: default-src 'none'; script-src 'self'"));
    EXPECT_TRUE(reply.Has("frame-ancestors 'none'"));
    EXPECT_TRUE(reply.Has("X-Content-Type-Options: nosniff\r\n"));
  }
}

TEST_F(ConsoleTest, SendsAFileOnceAsLongAsItIsTheSame) {
  EXPECT_TRUE(Get("/ui/").Has("ETag: \"i\"\r\n"));
  const Reply reply = Get("/ui/", "If-None-Match: \"x\", W/\"i\"\r\n");
  EXPECT_EQ(reply.status, 304);
  EXPECT_EQ(reply.body, "");
  EXPECT_EQ(Get("/ui/", "If-None-Match: \"s\"\r\n").status, 200);
}

TEST_F(ConsoleTest, LeavesTheOtherPathsAlone) {
  const Reply redirection = Get("/ui");
  EXPECT_EQ(redirection.status, 308);
  EXPECT_TRUE(redirection.Has("Location: ui/\r\n"));
  EXPECT_EQ(Get("/v2").status, 200);
  for (const char* path :
       {"/", "/uix", "/ui/none.js", "/ui/../v2", "/ui/assets/", "/ui/api/", "/ui/api/none",
        "/ui/api/modelsx", "/ui/api/log/x", "/ui/api/models/m/none", "/ui/api/models//sequences"}) {
    EXPECT_EQ(Get(path).status, 404) << path;
  }
  EXPECT_EQ(Get("/ui/%zz").status, 400);
  EXPECT_EQ(client_->Ask("POST", "/ui/").status, 405);
  EXPECT_EQ(client_->Ask("POST", "/ui/api/history").status, 405);
}

TEST_F(ConsoleTest, TellsHowAModelIsLoaded) {
  const Reply reply = Get("/ui/api/models/m");
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.body.starts_with("{\"bounds_ms\":[0.01,0.025,")) << reply.body;
  for (const char* part :
       {"\"models\":[{\"name\":\"m\",\"version\":\"1\",\"pending\":0,\"request\":[0",
        "\"batches_closed\":{\"full\":0,", "\"failures\":{\"REJECTED\":0,",
        "\"refusals\":{\"deadline\":0,"}) {
    EXPECT_NE(reply.body.find(part), std::string::npos) << part << "\n" << reply.body;
  }
  const Reply none = Get("/ui/api/models/none");
  EXPECT_EQ(none.status, 400);
  EXPECT_EQ(none.body, "{\"error\":\"requested model 'none' is not available\"}");
}

TEST_F(ConsoleTest, SendsMessagesOfTheLog) {
  base::KeepRecentLog();
  NEREID_LOG(kError, "broken \"thing\"");
  const Reply all = Get("/ui/api/log");
  EXPECT_EQ(all.status, 200);
  EXPECT_TRUE(all.Has("Cache-Control: no-store\r\n"));
  EXPECT_NE(all.body.find("\"level\":\"error\",\"source\":\"console_handler_test.cc:"),
            std::string::npos)
      << all.body;
  EXPECT_TRUE(all.body.ends_with("\"text\":\"broken \\\"thing\\\"\"}]}")) << all.body;
  const uint64_t last = base::RecentLogOfProcess().After(0).back().id;
  EXPECT_EQ(Get("/ui/api/log?after=" + std::to_string(last)).body, "{\"messages\":[]}");
  for (const char* query : {"after=", "after=x", "after=-1", "after=99999999999999999999", "x=1"}) {
    EXPECT_EQ(Get(std::string("/ui/api/log?") + query).status, 400) << query;
  }
}

TEST_F(ConsoleTest, TellsOfSingleRequestsUnderPrivateNamesOnly) {
  // The owner of a public name can let the name point to this server, whose answers then belong to
  // the owner's page.
  for (const char* path :
       {"/ui/api/log", "/ui/api/traces", "/ui/api/traces/1", "/ui/api/models/m/sequences"}) {
    client_->Send("GET " + std::string(path) + " HTTP/1.1\r\nHost: a.example.com\r\n\r\n");
    const Reply reply = client_->Read();
    EXPECT_EQ(reply.status, 403) << path;
    EXPECT_NE(reply.body.find("not under 'a.example.com'"), std::string::npos) << reply.body;
    EXPECT_NE(reply.body.find("--http-cors-allow-origin"), std::string::npos) << reply.body;
  }
  client_->Send("GET /ui/api/log HTTP/1.1\r\nHost: Server.example.com:8000\r\n\r\n");
  EXPECT_EQ(client_->Read().status, 200);
}

TEST_F(ConsoleTest, SendsTraces) {
  EXPECT_EQ(Get("/ui/api/traces").body, "{\"is_on\":false,\"traces\":[]}");
  observe::Tracing tracing(
      observe::TraceOptions{.settings = {.levels = observe::kTraceTimestamps, .rate = 1},
                            .file = folder_.path + "/traces"});
  service_.traces = &tracing;
  tracing.recent().Start();
  {
    const auto trace = tracing.Start("m", {});
    trace->Describe("m", 3, "id");
    trace->Report(observe::TraceActivity::kRequestStart, 100);
    trace->Report(observe::TraceActivity::kRequestEnd, 350);
  }
  const std::string list = Get("/ui/api/traces").body;
  EXPECT_TRUE(list.starts_with("{\"is_on\":true,\"traces\":[{\"id\":1,\"time_ms\":")) << list;
  EXPECT_TRUE(list.ends_with(
      "\"model\":\"m\",\"version\":3,\"request_id\":\"id\",\"requests\":1,\"ns\":250}]}"))
      << list;
  const std::string one = Get("/ui/api/traces/1").body;
  EXPECT_NE(one.find("\"moments\":[{\"name\":\"REQUEST_START\",\"ns\":0},"
                     "{\"name\":\"REQUEST_END\",\"ns\":250}]"),
            std::string::npos)
      << one;
  for (const char* id : {"2", "x", "-1", "1/", "18446744073709551616"}) {
    EXPECT_EQ(Get(std::string("/ui/api/traces/") + id).status, 404) << id;
  }
  service_.traces = nullptr;
}

// A scheduler that holds one sequence.
class OneSequence final : public core::Scheduler {
 public:
  void Enqueue(core::RequestPtr) override {}
  void OnCancelled(core::Request&) override {}
  bool Stop(base::TimePoint) override { return true; }
  std::optional<core::SequencesReading> ReadSequences(size_t) override {
    core::SequencesReading reading{.is_oldest = true, .used_slots = 1, .free_slots = 3};
    reading.running.push_back({.id = "a\"b", .instance = 1, .position = 2, .idle_ns = 5});
    return reading;
  }
};

TEST_F(ConsoleTest, SendsSequences) {
  service_.model().SetScheduler(std::make_unique<OneSequence>());
  const Reply reply = Get("/ui/api/models/m/sequences");
  EXPECT_EQ(reply.status, 200);
  EXPECT_NE(reply.body.find("\"strategy\":\"oldest\",\"slots_per_instance\":0,\"used_slots\":1,"
                            "\"free_slots\":3"),
            std::string::npos)
      << reply.body;
  EXPECT_NE(reply.body.find("{\"id\":\"a\\\"b\",\"instance\":1,\"position\":2,\"waiting\":0,"
                            "\"executing\":false,\"closed\":false,\"idle_ns\":5}"),
            std::string::npos)
      << reply.body;
  EXPECT_EQ(Get("/ui/api/models/none/sequences").status, 404);
}

TEST_F(ConsoleTest, ExplainsConfigurations) {
  EXPECT_EQ(Get("/ui/api/models/m/explanation").body, "{}");
  EXPECT_EQ(Get("/ui/api/models/none/explanation").status, 404);
}

TEST_F(ConsoleTest, HasTheHistoryOfTheLoad) {
  recorder_.Take();
  recorder_.Take();
  recorder_.Take();
  const Reply plain = Get("/ui/api/history");
  EXPECT_EQ(plain.status, 200);
  EXPECT_TRUE(plain.Has("Cache-Control: no-store\r\n"));
  EXPECT_NE(plain.body.find("\"requests\":[0,0]"), std::string::npos) << plain.body;
  const Reply compressed = Get("/ui/api/history", "Accept-Encoding: gzip\r\n");
  EXPECT_EQ(net::Decompress(compressed.body, {})->data, plain.body);
}

TEST_F(ConsoleTest, StreamsEachSampleUntilTheServerEnds) {
  recorder_.Take();
  client_->Send("GET /ui/api/live HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string head = client_->ReadHead();
  EXPECT_NE(head.find("Content-Type: text/event-stream"), std::string::npos) << head;
  EXPECT_EQ(client_->ReadChunk(), ": open\n\n");
  for (int i = 0; i < 3; ++i) {
    recorder_.Take();
    const std::string event = client_->ReadChunk();
    EXPECT_TRUE(event.starts_with("data: {\"time_s\":") && event.ends_with("}\n\n")) << event;
  }
  recorder_.Stop();
  EXPECT_EQ(client_->ReadChunk(), "");
  EXPECT_TRUE(client_->is_whole);
  Client late(server_->port());
  EXPECT_EQ(late.Ask("GET", "/ui/api/live").status, 503);
}

// Proxies ask for the head first, and keep the connection.
TEST_F(ConsoleTest, AHeadRequestForTheStreamEndsAndTakesNoPlace) {
  for (size_t i = 0; i < LiveStreams::kMaxStreams; ++i) {
    client_->Send("HEAD /ui/api/live HTTP/1.1\r\nHost: x\r\n\r\n");
    const std::string head = client_->ReadHead();
    EXPECT_EQ(head.substr(9, 3), "200");
    EXPECT_NE(head.find("Content-Type: text/event-stream"), std::string::npos) << head;
  }
  client_->Send("GET /ui/api/live HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client_->ReadHead().substr(9, 3), "200");
  EXPECT_EQ(client_->ReadChunk(), ": open\n\n");
}

TEST_F(ConsoleTest, RefusesMoreBrowsersThanItMayHave) {
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i < LiveStreams::kMaxStreams; ++i) {
    clients.push_back(std::make_unique<Client>(server_->port()));
    clients.back()->Send("GET /ui/api/live HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(clients.back()->ReadHead().substr(9, 3), "200");
  }
  const Reply reply = Get("/ui/api/live");
  EXPECT_EQ(reply.status, 503);
  EXPECT_TRUE(reply.Has("Retry-After: 5\r\n"));
}

TEST(SampleInterval, IsLongerForManyModelsThatNobodyLooksAt) {
  using std::chrono::seconds;
  EXPECT_EQ(SampleInterval(1, false), seconds(1));
  EXPECT_EQ(SampleInterval(1000, false), seconds(5));
  EXPECT_EQ(SampleInterval(1000, true), seconds(1));
}

TEST(ConsoleRoutes, AreThoseThatTheOpenApiDocumentDescribes) {
  rapidjson::Document document;
  ASSERT_TRUE(http::ParseJson(http::OpenApiDocument(), document).ok());
  constexpr std::string_view kPrefix = "/ui/api/";
  std::set<DataKind> described;
  for (const auto& path : document["paths"].GetObject()) {
    const std::string_view name = path.name.GetString();
    if (!name.starts_with(kPrefix)) continue;
    const DataKind kind = MatchData(name.substr(kPrefix.size())).kind;
    EXPECT_NE(kind, DataKind::kNone) << name;
    described.insert(kind);
  }
  EXPECT_EQ(described.size(), static_cast<size_t>(DataKind::kTrace));
}

class UnbuiltConsoleTest : public ConsoleTest {
 protected:
  UnbuiltConsoleTest() : ConsoleTest(Options{.has_page = false}) {}
};

TEST_F(UnbuiltConsoleTest, SaysHowToGetIt) {
  const Reply reply = Get("/ui/");
  EXPECT_EQ(reply.status, 503);
  EXPECT_NE(reply.body.find("tools/setup --console"), std::string::npos);
  EXPECT_EQ(Get("/ui/api/history").status, 200);
}

class ConsoleWithKeysTest : public ConsoleTest {
 protected:
  ConsoleWithKeysTest() : ConsoleTest(Options{.has_keys = true}) {}
};

TEST_F(ConsoleWithKeysTest, ShowsItsFilesToEverybodyAndNumbersToThoseWhoMay) {
  EXPECT_EQ(Get("/ui/").status, 200);
  for (const char* path : {"/ui/api/history", "/ui/api/live", "/ui/api/models"}) {
    EXPECT_EQ(Get(path).status, 401) << path;
    EXPECT_EQ(client_->Ask("POST", path).status, 401) << path;
  }
  EXPECT_EQ(Get("/ui/api/history", "X-API-Key: m\r\n").status, 200);
  EXPECT_EQ(Get("/ui/api/models", "X-API-Key: m\r\n").status, 403);
  EXPECT_EQ(Get("/ui/api/live", "X-API-Key: x\r\n").status, 403);
  EXPECT_EQ(Get("/ui/api/models/m", "X-API-Key: x\r\n").status, 403);
  EXPECT_EQ(Get("/ui/api/%6dodels/m", "X-API-Key: x\r\n").status, 403);
}

TEST_F(ConsoleWithKeysTest, ShowsSingleRequestsToThoseWhoMayChangeTraces) {
  for (const char* path : {"/ui/api/log", "/ui/api/traces", "/ui/api/traces/1"}) {
    EXPECT_EQ(Get(path).status, 401) << path;
    EXPECT_EQ(Get(path, "X-API-Key: m\r\n").status, 403) << path;
    // A key for some models is refused, because logs and traces tell of all models.
    EXPECT_EQ(Get(path, "X-API-Key: s\r\n").status, 403) << path;
    EXPECT_NE(Get(path, "X-API-Key: a\r\n").status, 403) << path;
  }
  EXPECT_EQ(Get("/ui/api/models/other/sequences", "X-API-Key: x\r\n").status, 403);
  EXPECT_EQ(Get("/ui/api/models/other/sequences", "X-API-Key: s\r\n").status, 403);
  EXPECT_EQ(Get("/ui/api/models/m/explanation", "X-API-Key: x\r\n").status, 403);
}

TEST_F(ConsoleWithKeysTest, EndsStreamsWhoseKeyMayHaveGone) {
  recorder_.Take();
  client_->Send("GET /ui/api/live HTTP/1.1\r\nHost: x\r\nX-API-Key: m\r\n\r\n");
  EXPECT_EQ(client_->ReadHead().substr(9, 3), "200");
  EXPECT_EQ(client_->ReadChunk(), ": open\n\n");
  recorder_.Take();
  EXPECT_NE(client_->ReadChunk(), "");
  std::ofstream(keys_file()) << R"({"keys":[]})";
  gate_->LookForTest();
  recorder_.Take();
  EXPECT_EQ(client_->ReadChunk(), "");
  EXPECT_TRUE(client_->is_whole);
}

class RestrictedConsoleTest : public ConsoleTest {
 protected:
  RestrictedConsoleTest() : ConsoleTest(Options{.restricts_statistics = true}) {}
};

TEST_F(RestrictedConsoleTest, ItsNumbersAreStatistics) {
  EXPECT_EQ(Get("/ui/").status, 200);
  for (const char* path : {"/ui/api/history", "/ui/api/live", "/ui/api/models"}) {
    const Reply reply = Get(path);
    EXPECT_EQ(reply.status, 403) << path;
    EXPECT_NE(reply.body.find("expecting header 'k'"), std::string::npos);
  }
  EXPECT_EQ(Get("/ui/api/history", "k: v\r\n").status, 200);
}

}  // namespace
}  // namespace nereid::console
