// SPDX-License-Identifier: Apache-2.0
// Tests a server in this process that loads models when requests need them.
#include "nereid/on_demand.h"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "embedding.h"

namespace embedding {
namespace {

// Room for one of the small models of memory_backend.cc, and not for two.
constexpr uint64_t kBudget = uint64_t{48} << 20;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif
// Leaves a test of how models share the budget.
#define NEEDS_MEASURED_MEMORY() \
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer's own memory is most of what a model takes"

NEREIDSERVER_OnDemandSettings Settings() {
  NEREIDSERVER_OnDemandSettings settings{};
  settings.size = sizeof(settings);
  settings.memory_budget = kIsSanitized ? 0 : kBudget;
  settings.load_wait_secs = 60;
  return settings;
}

Server::Adjust OnDemand(const NEREIDSERVER_OnDemandSettings& settings) {
  return [settings](TRITONSERVER_ServerOptions* options) {
    EXPECT_OK(TRITONSERVER_ServerOptionsSetBackendDirectory(options, TEST_OWN_BACKENDS));
    EXPECT_OK(NEREIDSERVER_ServerOptionsSetOnDemand(options, &settings));
  };
}

// The names of the models that are loaded, each with a space behind it.
std::string Loaded(const Server& server) {
  TRITONSERVER_Message* message = nullptr;
  EXPECT_OK(TRITONSERVER_ServerModelIndex(server.get(), TRITONSERVER_INDEX_FLAG_READY, &message));
  const std::string json = Text(message);
  constexpr std::string_view kName = "\"name\":\"";
  std::string names;
  for (size_t at = json.find(kName); at != std::string::npos; at = json.find(kName, at)) {
    at += kName.size();
    names += json.substr(at, json.find('"', at) - at) + " ";
  }
  return names;
}

// Asks until exactly these are loaded, or for a minute: models are unloaded behind the request that
// needed their memory.
bool AreLoaded(const Server& server, const std::string& names) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (Loaded(server) != names) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// Returns the error of making a request, "" for success.
std::string ErrorOf(const Server& server, const char* model) {
  TRITONSERVER_InferenceRequest* request = nullptr;
  std::string error = Take(TRITONSERVER_InferenceRequestNew(&request, server.get(), model, -1));
  if (request != nullptr) {
    EXPECT_OK(TRITONSERVER_InferenceRequestDelete(request));
  }
  return error;
}

class OnDemandServer : public testing::Test {
 protected:
  OnDemandServer() {
    for (const char* name : {"a", "b", "large"}) {
      repository_.Add(name, R"(
        backend: "memory"
        input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] } ]
        output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] } ]
      )");
    }
  }

  Repository repository_;
};

TEST_F(OnDemandServer, LoadsAModelForTheFirstRequest) {
  const Server server(repository_.path(), OnDemand(Settings()));
  ASSERT_EQ(server.error(), "");
  EXPECT_EQ(Loaded(server), "");
  const Allocator allocator;
  Outcome outcome;
  const std::vector<float> values = {1};
  Request request(server, "a");
  EXPECT_EQ(Loaded(server), "a ");
  request.SendResponsesTo(outcome, allocator).Input("INPUT0", TRITONSERVER_TYPE_FP32, {1}, values);
  ASSERT_EQ(request.Submit(), "");
  const std::vector<Reply>& replies = outcome.Wait();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].error, "");
  EXPECT_EQ(replies[0].model, "a");
  EXPECT_EQ(ErrorOf(server, "unknown"),
            "Not found: Request for unknown model: 'unknown' is not found");
}

TEST_F(OnDemandServer, LoadsPinnedModelsAtTheStart) {
  NEREIDSERVER_OnDemandSettings settings = Settings();
  const char* const pinned[] = {"b"};
  settings.pinned = pinned;
  settings.pinned_count = 1;
  const Server server(repository_.path(), OnDemand(settings));
  ASSERT_EQ(server.error(), "");
  EXPECT_EQ(Loaded(server), "b ");
}

TEST_F(OnDemandServer, UnloadsWhatNobodyUsesForWhatIsAskedFor) {
  NEEDS_MEASURED_MEMORY();
  const Server server(repository_.path(), OnDemand(Settings()));
  ASSERT_EQ(server.error(), "");
  EXPECT_EQ(ErrorOf(server, "a"), "");
  EXPECT_EQ(ErrorOf(server, "b"), "");
  EXPECT_TRUE(AreLoaded(server, "b ")) << Loaded(server);
  EXPECT_EQ(ErrorOf(server, "a"), "");
  EXPECT_TRUE(AreLoaded(server, "a ")) << Loaded(server);
}

TEST_F(OnDemandServer, AModelStaysLoadedAsLongAsThereIsARequest) {
  NEEDS_MEASURED_MEMORY();
  NEREIDSERVER_OnDemandSettings settings = Settings();
  settings.load_wait_secs = 1;
  const Server server(repository_.path(), OnDemand(settings));
  ASSERT_EQ(server.error(), "");
  // From now on, the server knows how much memory it takes.
  EXPECT_EQ(ErrorOf(server, "a"), "");
  {
    const Request request(server, "b");
    EXPECT_TRUE(AreLoaded(server, "b ")) << Loaded(server);
    const std::string error = ErrorOf(server, "a");
    EXPECT_EQ(error.rfind("Unavailable: model 'a' is not loaded after ", 0), 0u) << error;
    EXPECT_NE(error.find("models that are in use"), std::string::npos) << error;
    EXPECT_EQ(Loaded(server), "b ");
  }
  EXPECT_EQ(ErrorOf(server, "a"), "");
  EXPECT_TRUE(AreLoaded(server, "a ")) << Loaded(server);
}

TEST_F(OnDemandServer, RefusesAModelThatNeedsMoreThanTheBudget) {
  NEEDS_MEASURED_MEMORY();
  const Server server(repository_.path(), OnDemand(Settings()));
  ASSERT_EQ(server.error(), "");
  const std::string error = ErrorOf(server, "large");
  EXPECT_EQ(error.rfind("Unavailable: model 'large' needs ", 0), 0u) << error;
  EXPECT_NE(error.find("the budget is " + std::to_string(kBudget) + " bytes"), std::string::npos)
      << error;
  EXPECT_TRUE(AreLoaded(server, "")) << Loaded(server);
  // Others are none the worse for it.
  EXPECT_EQ(ErrorOf(server, "a"), "");
}

TEST(OnDemandSettings, AreRefusedIfNobodyCouldWaitForAModel) {
  TRITONSERVER_ServerOptions* options = nullptr;
  OK(TRITONSERVER_ServerOptionsNew(&options));
  NEREIDSERVER_OnDemandSettings settings = Settings();
  settings.load_wait_secs = 0;
  EXPECT_EQ(Take(NEREIDSERVER_ServerOptionsSetOnDemand(options, &settings)),
            "Invalid argument: unexpected load_wait_secs 0, expected at least 1");
  EXPECT_OK(TRITONSERVER_ServerOptionsDelete(options));
}

}  // namespace
}  // namespace embedding
