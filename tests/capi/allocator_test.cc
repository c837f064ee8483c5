// SPDX-License-Identifier: Apache-2.0
// Tests where outputs are placed, and how the embedder decides that.
#include "embedding.h"

namespace embedding {
namespace {

// Records the server's calls, and places outputs in memory of its own.
struct Notebook {
  static TRITONSERVER_Error* Allocate(TRITONSERVER_ResponseAllocator*, const char* name,
                                      size_t size, TRITONSERVER_MemoryType, int64_t, void* userp,
                                      void** buffer, void** buffer_userp,
                                      TRITONSERVER_MemoryType* type, int64_t* type_id) {
    auto& notebook = *static_cast<Notebook*>(userp);
    notebook.lines.push_back("allocate " + std::string(name) + " " + std::to_string(size));
    if (notebook.refuses) return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "no room");
    *buffer = notebook.gives_nothing ? nullptr : notebook.memory.data();
    *buffer_userp = userp;
    *type = TRITONSERVER_MEMORY_CPU;
    *type_id = 0;
    return nullptr;
  }
  static TRITONSERVER_Error* Release(TRITONSERVER_ResponseAllocator*, void* buffer,
                                     void* buffer_userp, size_t size, TRITONSERVER_MemoryType,
                                     int64_t) {
    auto& notebook = *static_cast<Notebook*>(buffer_userp);
    EXPECT_EQ(buffer, notebook.memory.data());
    notebook.lines.push_back("release " + std::to_string(size));
    return nullptr;
  }
  static TRITONSERVER_Error* Start(TRITONSERVER_ResponseAllocator*, void* userp) {
    static_cast<Notebook*>(userp)->lines.emplace_back("start");
    return nullptr;
  }
  static TRITONSERVER_Error* Describe(TRITONSERVER_ResponseAllocator*, const char*,
                                      TRITONSERVER_BufferAttributes* attributes, void* userp,
                                      void* buffer_userp) {
    EXPECT_EQ(userp, buffer_userp);
    EXPECT_OK(TRITONSERVER_BufferAttributesSetMemoryType(attributes, TRITONSERVER_MEMORY_CPU));
    static_cast<Notebook*>(userp)->lines.emplace_back("describe");
    return nullptr;
  }

  bool refuses = false;
  bool gives_nothing = false;  // says that all is well, without a buffer
  std::vector<std::string> lines;
  std::vector<char> memory = std::vector<char>(64);
};

// Executes one request with outputs in the notebook's memory.
std::vector<Reply> Ask(Notebook& notebook) {
  Repository repository;
  Server server(repository.AddIdentity("model").path());
  TRITONSERVER_ResponseAllocator* allocator = nullptr;
  EXPECT_OK(TRITONSERVER_ResponseAllocatorNew(&allocator, Notebook::Allocate, Notebook::Release,
                                              Notebook::Start));
  EXPECT_OK(
      TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(allocator, Notebook::Describe));
  std::vector<Reply> replies;
  {
    Outcome outcome;
    Request request(server, "model");
    const std::vector<float> values = {1, 2};
    request.Input("INPUT0", TRITONSERVER_TYPE_FP32, {1, 2}, values);
    EXPECT_OK(TRITONSERVER_InferenceRequestSetReleaseCallback(request.get(), Outcome::OnRelease,
                                                              &outcome));
    EXPECT_OK(TRITONSERVER_InferenceRequestSetResponseCallback(request.get(), allocator, &notebook,
                                                               Outcome::OnResponse, &outcome));
    EXPECT_EQ(request.Submit(), "");
    replies = outcome.Wait();
  }
  EXPECT_OK(TRITONSERVER_ResponseAllocatorDelete(allocator));
  return replies;
}

TEST(Allocator, IsAskedForEachOutputOfAResponseAndGetsItBack) {
  Notebook notebook;
  const std::vector<Reply> replies = Ask(notebook);
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].outputs.at(0).base, notebook.memory.data());
  EXPECT_EQ(notebook.lines,
            (std::vector<std::string>{"start", "allocate OUTPUT0 8", "describe", "release 8"}));
}

TEST(Allocator, ItsErrorIsTheResponses) {
  Notebook notebook;
  notebook.refuses = true;
  const std::vector<Reply> replies = Ask(notebook);
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].error, "Unavailable: no room");
  EXPECT_EQ(notebook.lines.at(1), "allocate OUTPUT0 8");
}

TEST(Allocator, ThatGivesNoBufferIsSaidInTheResponse) {
  Notebook notebook;
  notebook.gives_nothing = true;
  const std::vector<Reply> replies = Ask(notebook);
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].error,
            "Internal: the response allocator gave no buffer for the 8 bytes of output 'OUTPUT0'");
  EXPECT_EQ(std::ranges::count(notebook.lines, "release 8"), 0);
}

}  // namespace
}  // namespace embedding
