// SPDX-License-Identifier: Apache-2.0
#include "observe/trace.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace nereid::observe {
namespace {

class TraceTest : public testing::Test {
 protected:
  TraceTest() {
    std::string folder = testing::TempDir() + "traceXXXXXX";
    folder_ = ::mkdtemp(folder.data());
    file_ = folder_ + "/trace";
  }
  ~TraceTest() override { std::filesystem::remove_all(folder_); }

  static std::string Read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return std::move(text).str();
  }
  std::unique_ptr<Tracing> Make(TraceSettings settings) const {
    return std::make_unique<Tracing>(TraceOptions{.settings = settings, .file = file_});
  }

  std::string folder_;
  std::string file_;
};

TEST_F(TraceTest, IsOffUntilRequestsMayBeTraced) {
  Tracing without_file(TraceOptions{.settings = {.levels = kTraceTimestamps}});
  EXPECT_FALSE(without_file.is_on());
  EXPECT_EQ(without_file.Start("m", {}), nullptr);
  const auto tracing = Make({});
  EXPECT_FALSE(tracing->is_on());
  EXPECT_TRUE(tracing->Change("m", {.levels = {.value = kTraceTimestamps}}).ok());
  EXPECT_TRUE(tracing->is_on());
  EXPECT_TRUE(tracing->Change("m", {.levels = {.is_cleared = true}}).ok());
  EXPECT_FALSE(tracing->is_on());
}

TEST_F(TraceTest, SamplesEveryNthRequestUpToTheCount) {
  const auto tracing = Make({.levels = kTraceTimestamps, .rate = 3, .count = 2});
  std::string taken;
  for (int i = 0; i < 12; ++i) taken += tracing->Start("m", {}) != nullptr ? 'x' : '.';
  EXPECT_EQ(taken, "..x..x......");
  EXPECT_EQ(tracing->Read("m").settings.count, 0);
}

TEST_F(TraceTest, WritesTheRecordsOfARequestTogether) {
  auto tracing = Make({.levels = kTraceTimestamps | kTraceTensors, .rate = 1});
  {
    const auto trace = tracing->Start("m", {});
    trace->Describe("m\"", 3, "r\n");
    const auto child = trace->SpawnChild();
    const int64_t shape[] = {2};
    child->Describe("c", 1, "");
    trace->ReportFrontend("HTTP_RECV_START", 1);
    trace->Report(TraceActivity::kRequestStart, 2);
    child->Report(TraceActivity::kRequestStart, 3);
    trace->ReportTensor(TraceActivity::kTensorQueueInput, {.name = "i",
                                                           .type = tensor::DataType::kInt8,
                                                           .shape = shape,
                                                           .bytes = std::string_view("\1\2", 2)});
    trace->ReportCustom("MINE", 4);
  }
  tracing.reset();
  EXPECT_EQ(Read(file_),
            R"([{"id":1,"timestamps":[{"name":"HTTP_RECV_START","ns":1}]},)"
            R"({"id":1,"model_name":"m\"","model_version":3,"request_id":"r\u000a"},)"
            R"({"id":1,"timestamps":[{"name":"REQUEST_START","ns":2}]},)"
            R"({"id":1,"activity":"TENSOR_QUEUE_INPUT","tensor":{"name":"i","data":"1,2",)"
            R"("shape":"2","dtype":"INT8"}},{"id":1,"timestamps":[{"name":"MINE","ns":4}]},)"
            R"({"id":2,"model_name":"c","model_version":1,"parent_id":1},)"
            R"({"id":2,"timestamps":[{"name":"REQUEST_START","ns":3}]}])");
}

TEST_F(TraceTest, NumbersFilesByFrequency) {
  auto tracing = Make({.levels = kTraceTimestamps, .rate = 1, .log_frequency = 2});
  for (uint64_t i = 0; i < 3; ++i) {
    tracing->Start("m", {})->Report(TraceActivity::kQueueStart, i);
  }
  tracing.reset();
  EXPECT_FALSE(std::filesystem::exists(file_));
  EXPECT_EQ(Read(file_ + ".0"), R"([{"id":1,"timestamps":[{"name":"QUEUE_START","ns":0}]},)"
                                R"({"id":2,"timestamps":[{"name":"QUEUE_START","ns":1}]}])");
  EXPECT_EQ(Read(file_ + ".1"), R"([{"id":3,"timestamps":[{"name":"QUEUE_START","ns":2}]}])");
}

TEST_F(TraceTest, ManyTracesDoNotPileUpInMemory) {
  auto tracing = Make({.levels = kTraceTensors, .rate = 1});
  const std::string data(5'000, 1);
  const int64_t shape[] = {5'000};
  for (int i = 0; i < 500; ++i) {
    tracing->Start("m", {})->ReportTensor(
        TraceActivity::kTensorQueueInput,
        {.name = "i", .type = tensor::DataType::kInt8, .shape = shape, .bytes = data});
  }
  tracing.reset();
  const std::string text = Read(file_);
  EXPECT_GT(text.size(), 4'900'000u);
  EXPECT_TRUE(text.starts_with("[{") && text.ends_with("}]"));
  EXPECT_EQ(text.find("}{"), std::string::npos);
}

TEST_F(TraceTest, AFileThatCannotBeWrittenDoesNoHarm) {
  Tracing tracing(TraceOptions{.settings = {.levels = kTraceTimestamps, .rate = 1},
                               .file = folder_ + "/none/trace"});
  tracing.Start("m", {})->Report(TraceActivity::kQueueStart, 1);
}

TEST_F(TraceTest, InvalidSettingsAreRefusedAndChangeNothing) {
  const auto tracing = Make({.levels = kTraceTimestamps, .rate = 5});
  EXPECT_EQ(tracing->Change("", {.rate = {.value = 0}}).message(),
            "Attempting to set invalid trace setting :sample rate must be non-zero");
  EXPECT_EQ(tracing->Read("").settings.rate, 5u);
}

}  // namespace
}  // namespace nereid::observe
