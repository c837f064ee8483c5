// SPDX-License-Identifier: Apache-2.0
#include "app/trace_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/testing/command_line.h"

namespace nereid::app {
namespace {

using observe::TraceMode;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

class TraceFlagsTest : public CommandLineTest {
 protected:
  observe::TraceOptions Trace(std::vector<std::string> arguments) {
    return Parse(std::move(arguments))->engine.trace;
  }
};

TEST_F(TraceFlagsTest, NothingIsTracedUnlessALevelIsGiven) {
  const observe::TraceOptions trace = Trace({"--trace-config=rate=1"});
  EXPECT_EQ(trace.settings.levels, observe::kTraceOff);
  EXPECT_EQ(trace.mode, TraceMode::kTriton);
  EXPECT_EQ(trace.settings.count, -1);
}

TEST_F(TraceFlagsTest, LevelsAddUpAndOffWins) {
  EXPECT_EQ(Trace({"--trace-config=level=TIMESTAMPS"}).settings.levels, observe::kTraceTimestamps);
  EXPECT_EQ(
      Trace({"--trace-config=level=timestamps", "--trace-config=level=tensors"}).settings.levels,
      observe::kTraceTimestamps | observe::kTraceTensors);
  EXPECT_EQ(Trace({"--trace-config=level=OFF", "--trace-config=level=TENSORS"}).settings.levels,
            observe::kTraceOff);
  for (const char* old : {"MIN", "max", "true", "ON"}) {
    EXPECT_EQ(Trace({"--trace-config=level=" + std::string(old)}).settings.levels,
              observe::kTraceTimestamps);
  }
}

TEST_F(TraceFlagsTest, SettingsOfTheModeWithTheFile) {
  const observe::TraceOptions trace =
      Trace({"--trace-config=mode=triton", "--trace-config=triton,file=/tmp/t",
             "--trace-config=triton,log-frequency=5", "--trace-config=opentelemetry,url=ignored",
             "--trace-config=count=9"});
  EXPECT_EQ(trace.file, "/tmp/t");
  EXPECT_EQ(trace.settings.log_frequency, 5u);
  EXPECT_EQ(trace.settings.count, 9);
  EXPECT_THAT(trace.shown, IsEmpty());
}

TEST_F(TraceFlagsTest, SettingsOfTheModeWithACollector) {
  const observe::TraceOptions trace =
      Trace({"--trace-config=mode=OpenTelemetry", "--trace-config=opentelemetry,url=http://a:1/t",
             "--trace-config=opentelemetry,resource=service.name=x",
             "--trace-config=opentelemetry,bsp_max_queue_size=10"});
  EXPECT_EQ(trace.mode, TraceMode::kOpenTelemetry);
  EXPECT_EQ(trace.otlp.url, "http://a:1/t");
  EXPECT_THAT(trace.otlp.resource, ElementsAre(Pair("service.name", "x")));
  EXPECT_EQ(trace.otlp.max_queue_size, 10u);
  EXPECT_EQ(trace.otlp.schedule_delay, std::chrono::milliseconds(5000));
  // Clients see the given settings, and defaults for the others.
  EXPECT_THAT(trace.shown, UnorderedElementsAre(
                               Pair("url", "http://a:1/t"), Pair("resource", "service.name=x"),
                               Pair("bsp_max_queue_size", "10"), Pair("bsp_schedule_delay", "5000"),
                               Pair("bsp_max_export_batch_size", "512")));
}

TEST_F(TraceFlagsTest, TheEnvironmentSpeaksWhereFlagsAreSilent) {
  SetVariable("OTEL_BSP_SCHEDULE_DELAY", "100");
  SetVariable("OTEL_BSP_MAX_QUEUE_SIZE", "7");
  SetVariable("OTEL_EXPORTER_OTLP_CERTIFICATE", "general.pem");
  const std::vector<std::string> arguments = {"--trace-config=mode=opentelemetry",
                                              "--trace-config=opentelemetry,bsp_max_queue_size=8"};
  const observe::TraceOptions trace = Trace(arguments);
  EXPECT_EQ(trace.otlp.schedule_delay, std::chrono::milliseconds(100));
  EXPECT_EQ(trace.otlp.max_queue_size, 8u);
  EXPECT_EQ(trace.otlp.ca_file, "general.pem");
  EXPECT_THAT(trace.shown, Contains(Pair("bsp_schedule_delay", "100")));
  SetVariable("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "traces.pem");
  EXPECT_EQ(Trace(arguments).otlp.ca_file, "traces.pem");
  SetVariable("OTEL_BSP_SCHEDULE_DELAY", "soon");
  EXPECT_EQ(WhyNot(arguments),
            "Bad option: \"OTEL_BSP_SCHEDULE_DELAY\".\nexpected a whole number from 0 to "
            "4294967295");
}

TEST_F(TraceFlagsTest, OlderFlagsMeanTheSameAndLoseAgainstNewOnes) {
  const Options options =
      *Parse({"--trace-rate=5", "--trace-count=6", "--trace-file=old", "--trace-config=rate=7",
              "--trace-config=count=8", "--trace-config=triton,file=new"});
  EXPECT_EQ(options.engine.trace.settings.rate, 7u);
  EXPECT_EQ(options.engine.trace.settings.count, 8);
  EXPECT_EQ(options.engine.trace.file, "new");
  EXPECT_THAT(options.warnings,
              testing::IsSupersetOf(
                  {"Warning: '--trace-rate' has been deprecated and will be removed in future "
                   "releases. Please use '--trace-config rate=<rate value> instead.",
                   "Warning: Overriding deprecated '--trace-rate' in favor of provided rate value "
                   "in --trace-config!",
                   "Warning: Overriding deprecated '--trace-count' in favor of provided count in "
                   "--trace-config!",
                   "Warning: Overriding deprecated '--trace-file' in favor of provided file in "
                   "--trace-config!"}));
}

TEST_F(TraceFlagsTest, FilesHaveNoMeaningForACollector) {
  const Options options = *Parse({"--trace-config=mode=opentelemetry", "--trace-file=old"});
  EXPECT_THAT(options.warnings,
              Contains("Warning: '--trace-file' is deprecated and will be ignored with "
                       "opentelemetry tracing mode."));
}

TEST_F(TraceFlagsTest, SayWhatIsWrong) {
  const std::pair<std::string, std::string> wrong[] = {
      {"level=loud",
       "Bad option: \"--trace-config level\".\ninvalid value for trace level option: "
       "loud, expected OFF, TIMESTAMPS or TENSORS"},
      {"mode=jaeger",
       "Bad option: \"--trace-config mode\".\ninvalid value for trace mode option: "
       "jaeger. Available options are \"triton\" and \"opentelemetry\""},
      {"rate=-1",
       "Bad option: \"--trace-config rate\".\nexpected a whole number from 0 to "
       "2147483647"},
      {"count=-2",
       "Bad option: \"--trace-config count\".\nexpected a whole number from -1 to "
       "2147483647"},
      {"triton,log-frequency=x",
       "Bad option: \"--trace-config triton,log-frequency\".\nexpected a whole number from 0 to "
       "2147483647"},
      {",rate=1",
       "--trace-config ',rate=1': No trace mode specified. --trace-config option format "
       "is <trace mode>,<setting>=<value> or <setting>=<value>. Got ,rate=1"},
      {"rate", "--trace-config option format is '<trace mode>,<setting>=<value>'. Got rate"},
      {"rate=", "--trace-config option format is '<trace mode>,<setting>=<value>'. Got rate="},
  };
  for (const auto& [value, line] : wrong) EXPECT_EQ(WhyNot({"--trace-config=" + value}), line);
  EXPECT_TRUE(
      WhyNot({"--trace-config=mode=opentelemetry", "--trace-config=opentelemetry,url=ftp://a"})
          .starts_with("Bad option: \"--trace-config opentelemetry,url\".\n"));
}

}  // namespace
}  // namespace nereid::app
