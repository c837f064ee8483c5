// SPDX-License-Identifier: Apache-2.0
#include "config/complete.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/parse.h"

namespace nereid::config {
namespace {

using testing::ElementsAre;
using Kind = InstanceGroup::Kind;

struct Completed {
  std::string backend, platform, file;
  bool operator==(const Completed&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Completed& c) {
  return out << c.backend << "/" << c.platform << "/" << c.file;
}

Completed FromFiles(const std::optional<VersionFolder>& version, ModelConfig config = {},
                    std::string_view name = "m") {
  const auto done = CompleteFromFiles(std::move(config), name, version);
  if (!done.ok()) return {std::string(done.status().message()), "", ""};
  return {done->backend, done->platform, done->default_model_filename};
}

VersionFolder File(const char* name) { return {.files = {name}}; }
VersionFolder Folder(const char* name) { return {.folders = {name}}; }

TEST(FrameworkOfFile, IsFoundByTheExtension) {
  EXPECT_EQ(FrameworkOfFile("net.onnx", false)->file, "model.onnx");
  EXPECT_EQ(FrameworkOfFile("net.onnx", false)->backend, "onnxruntime");
  EXPECT_EQ(FrameworkOfFile("main.py", false)->file, "model.py");
  EXPECT_EQ(FrameworkOfFile("x.savedmodel", true)->backend, "tensorflow");
  EXPECT_FALSE(FrameworkOfFile("x.savedmodel", false));
  EXPECT_FALSE(FrameworkOfFile("model.plan", true));
  EXPECT_FALSE(FrameworkOfFile(".onnx", false));
  EXPECT_FALSE(FrameworkOfFile("README", false));
}

TEST(CompleteFromFiles, FindsTheFrameworkByTheFile) {
  EXPECT_EQ(FromFiles(File("model.onnx")),
            (Completed{"onnxruntime", "onnxruntime_onnx", "model.onnx"}));
  EXPECT_EQ(FromFiles(Folder("model.onnx")),
            (Completed{"onnxruntime", "onnxruntime_onnx", "model.onnx"}));
  EXPECT_EQ(FromFiles(File("model.plan")), (Completed{"tensorrt", "tensorrt_plan", "model.plan"}));
  EXPECT_EQ(FromFiles(Folder("model.savedmodel")),
            (Completed{"tensorflow", "tensorflow_savedmodel", "model.savedmodel"}));
  EXPECT_EQ(FromFiles(File("model.graphdef")),
            (Completed{"tensorflow", "tensorflow_graphdef", "model.graphdef"}));
  EXPECT_EQ(FromFiles(File("model.xml")), (Completed{"openvino", "", "model.xml"}));
  EXPECT_EQ(FromFiles(File("model.py")), (Completed{"python", "", "model.py"}));
  EXPECT_EQ(FromFiles(File("model.pt")), (Completed{"pytorch", "pytorch_libtorch", ""}));
  EXPECT_EQ(FromFiles(File("model.pt2")), (Completed{"pytorch", "torch_aoti", "model.pt2"}));
}

TEST(CompleteFromFiles, GoesByTheOrderOfFrameworksWhenThereAreSeveralFiles) {
  EXPECT_EQ(FromFiles(VersionFolder{.files = {"model.py", "model.onnx"}}).backend, "onnxruntime");
  EXPECT_EQ(FromFiles(VersionFolder{.files = {"model.plan", "model.onnx"}}).backend, "tensorrt");
}

TEST(CompleteFromFiles, GoesByPlatformBackendOrFilename) {
  EXPECT_EQ(FromFiles({}, {.platform = "onnxruntime_onnx"}),
            (Completed{"onnxruntime", "onnxruntime_onnx", "model.onnx"}));
  EXPECT_EQ(FromFiles({}, {.backend = "onnxruntime"}),
            (Completed{"onnxruntime", "onnxruntime_onnx", "model.onnx"}));
  EXPECT_EQ(FromFiles({}, {.default_model_filename = "model.onnx"}),
            (Completed{"onnxruntime", "onnxruntime_onnx", "model.onnx"}));
  EXPECT_EQ(FromFiles({}, {.backend = "onnxruntime", .default_model_filename = "x.onnx"}),
            (Completed{"onnxruntime", "onnxruntime_onnx", "x.onnx"}));
  EXPECT_EQ(FromFiles({}, {.platform = "tensorflow_savedmodel"}),
            (Completed{"tensorflow", "tensorflow_savedmodel", "model.savedmodel"}));
  EXPECT_EQ(FromFiles({}, {.platform = "pytorch_libtorch"}),
            (Completed{"pytorch", "pytorch_libtorch", ""}));
  EXPECT_EQ(FromFiles({}, {.backend = "pytorch"}),
            (Completed{"pytorch", "pytorch_libtorch", "model.pt"}));
  // Its model.pt, if there is one, has the parameters of the module in model.py.
  EXPECT_EQ(FromFiles({}, {.backend = "pytorch", .runtime = "model.py"}),
            (Completed{"pytorch", "pytorch_libtorch", ""}));
  EXPECT_EQ(FromFiles({}, {.backend = "python"}), (Completed{"python", "", "model.py"}));
  EXPECT_EQ(FromFiles({}, {.backend = "identity"}), (Completed{"identity", "", ""}));
}

TEST(CompleteFromFiles, TakesThePlatformPyTorchForTheBackend) {
  for (const char* platform : {"pytorch", "libtorch"}) {
    EXPECT_EQ(FromFiles({}, {.platform = platform}),
              (Completed{"pytorch", "pytorch_libtorch", "model.pt"}));
    EXPECT_EQ(FromFiles({}, {.platform = platform, .runtime = "model.py"}),
              (Completed{"pytorch", "pytorch_libtorch", ""}));
    EXPECT_EQ(FromFiles(File("model.pt2"), {.platform = platform}),
              (Completed{"pytorch", "torch_aoti", "model.pt2"}));
  }
}

TEST(CompleteFromFiles, ChoosesThePlatformOfPyTorchByTheFile) {
  const ModelConfig named{.backend = "pytorch"};
  EXPECT_EQ(FromFiles(File("model.pt2"), named), (Completed{"pytorch", "torch_aoti", "model.pt2"}));
  EXPECT_EQ(FromFiles(VersionFolder{.files = {"model.pt", "model.pt2"}}, named),
            (Completed{"pytorch", "pytorch_libtorch", "model.pt"}));
}

TEST(CompleteFromFiles, KeepsPlatformsOfOlderRepositories) {
  for (const ModelConfig& config :
       {ModelConfig{.platform = "caffe2_netdef"}, ModelConfig{.backend = "caffe2"},
        ModelConfig{.default_model_filename = "model.netdef"}}) {
    EXPECT_EQ(FromFiles({}, config), (Completed{"caffe2", "caffe2_netdef", "model.netdef"}));
  }
  EXPECT_EQ(FromFiles(VersionFolder{.files = {"init_model.netdef", "model.netdef"}}).backend,
            "caffe2");
  EXPECT_EQ(FromFiles({}, {.platform = "custom"}), (Completed{"custom", "custom", ""}));
}

TEST(CompleteFromFiles, LeavesEnsemblesAlone) {
  EXPECT_EQ(FromFiles({}, {.platform = "ensemble"}), (Completed{"", "ensemble", ""}));
}

TEST(CompleteFromFiles, TakesTheBackendFromAModelNameWithADot) {
  EXPECT_EQ(FromFiles({}, {}, "model.identity"), (Completed{"identity", "", "model.identity"}));
  EXPECT_EQ(FromFiles({}, {}, "plain").backend,
            "Invalid model name: Could not determine backend for model 'plain' with no backend in "
            "model configuration. Expected model name of the form 'model.<backend_name>'.");
}

TEST(CompleteFromFiles, NamesTheModelAfterItsFolderOnlyIfItHasNoName) {
  EXPECT_EQ(CompleteFromFiles({.backend = "b"}, "folder", {})->name, "folder");
  EXPECT_EQ(CompleteFromFiles({.name = "own", .backend = "b"}, "folder", {})->name, "own");
}

ModelConfig Parsed(std::string_view text) {
  auto config = ParseModelConfigText(text, "t");
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config.ok() ? *config : ModelConfig();
}

TEST(Normalize, WritesTheDefaults) {
  const ModelConfig config = Normalize({});
  EXPECT_EQ(*config.version_policy, (VersionPolicy{VersionPolicy::Latest{1}}));
  EXPECT_EQ(config.optimization->input_pinned_memory, true);
  EXPECT_EQ(config.optimization->output_pinned_memory, true);
  EXPECT_EQ(Normalize(config), config);
}

TEST(Normalize, KeepsWhatIsThere) {
  const ModelConfig config = Normalize(
      Parsed("version_policy { all { } } optimization { input_pinned_memory { enable: false } } "
             "max_batch_size: 8 dynamic_batching { preferred_batch_size: 2 }"));
  EXPECT_EQ(*config.version_policy, (VersionPolicy{VersionPolicy::All{}}));
  EXPECT_EQ(config.optimization->input_pinned_memory, false);
  EXPECT_THAT(config.dynamic_batching()->preferred_batch_size, ElementsAre(2));
}

TEST(Normalize, PrefersFullBatches) {
  EXPECT_THAT(Normalize(Parsed("max_batch_size: 8 dynamic_batching { }"))
                  .dynamic_batching()
                  ->preferred_batch_size,
              ElementsAre(8));
  EXPECT_THAT(Normalize(Parsed("dynamic_batching { }")).dynamic_batching()->preferred_batch_size,
              ElementsAre());
  const ModelConfig oldest =
      Normalize(Parsed("max_batch_size: 3 sequence_batching { oldest { } }"));
  EXPECT_THAT(
      std::get<SequenceBatching::StrategyOldest>(oldest.sequence_batching()->strategy_choice)
          .preferred_batch_size,
      ElementsAre(3));
  EXPECT_EQ(oldest.sequence_batching()->max_sequence_idle_microseconds, 1'000'000u);
}

TEST(Normalize, GivesEnsemblesNoOptimization) {
  EXPECT_FALSE(Normalize(Parsed("ensemble_scheduling { }")).optimization);
}

TEST(MergeBackendConfig, TakesTensorsBatchSizeAndDecoupled) {
  const ModelConfig user = Parsed("name: 'm' backend: 'b' instance_group { count: 3 }");
  const ModelConfig backend = Parsed(
      "name: 'x' max_batch_size: 4 input { name: 'I' } output { name: 'O' } instance_group { "
      "count: 9 "
      "} dynamic_batching { } model_transaction_policy { decoupled: true }");
  const auto merged = MergeBackendConfig(user, backend);
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->name, "m");
  EXPECT_EQ(merged->max_batch_size, 4);
  EXPECT_NE(merged->FindInput("I"), nullptr);
  EXPECT_NE(merged->FindOutput("O"), nullptr);
  EXPECT_EQ(merged->instance_group[0].count, 3);
  EXPECT_TRUE(merged->is_decoupled());
  EXPECT_THAT(merged->dynamic_batching()->preferred_batch_size, ElementsAre(4));
}

TEST(MergeBackendConfig, NeverOverwritesAChoiceOfTheUser) {
  const ModelConfig user = Parsed("dynamic_batching { max_queue_delay_microseconds: 7 }");
  const auto same = MergeBackendConfig(user, Parsed("dynamic_batching { }"));
  EXPECT_EQ(same->dynamic_batching()->max_queue_delay_microseconds, 7u);
  EXPECT_EQ(MergeBackendConfig(user, Parsed("sequence_batching { }")).status().message(),
            "Cannot update scheduling choice from 11 to 11 when auto-completing.");
}

std::vector<InstanceGroup> Groups(std::string_view text,
                                  const std::vector<InstanceGroup>& preferred = {},
                                  const std::set<int32_t>& gpus = {}) {
  ModelConfig config = Parsed(text);
  config.name = "m";
  return NormalizeInstanceGroups(config, preferred, gpus).instance_group;
}

TEST(NormalizeInstanceGroups, AddsOneNamedAfterTheModel) {
  const auto groups = Groups("backend: 'identity'");
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0], (InstanceGroup{.name = "m", .kind = Kind::kCpu, .count = 1}));
}

TEST(NormalizeInstanceGroups, RunsTwoOnACpuForBackendsThatBenefit) {
  EXPECT_EQ(Groups("backend: 'onnxruntime'")[0].count, 2);
  EXPECT_EQ(Groups("backend: 'tensorflow'")[0].count, 2);
  EXPECT_EQ(Groups("backend: 'onnxruntime' instance_group { kind: KIND_CPU count: 5 }")[0].count,
            5);
  EXPECT_EQ(Groups("backend: 'onnxruntime'", {}, {0})[0].count, 1);
}

TEST(AcceleratorBackend, IsOpenVinoForOnnxModelsWithThatAcceleratorAlone) {
  ModelConfig config;
  config.backend = "onnxruntime";
  EXPECT_EQ(AcceleratorBackend(config), "");
  auto& accelerators = config.optimization.emplace().execution_accelerators.emplace();
  EXPECT_EQ(AcceleratorBackend(config), "");
  accelerators.gpu_execution_accelerator = {{.name = "openvino", .parameters = {}}};
  EXPECT_EQ(AcceleratorBackend(config), "");
  accelerators.cpu_execution_accelerator = {{.name = "openvino", .parameters = {}}};
  EXPECT_EQ(AcceleratorBackend(config), "openvino");
  config.runtime = "libtriton_own.so";
  EXPECT_EQ(AcceleratorBackend(config), "");
  config.runtime.clear();
  config.backend = "python";
  EXPECT_EQ(AcceleratorBackend(config), "");
  config.backend = "onnxruntime";
  accelerators.cpu_execution_accelerator.push_back({.name = "xnnpack", .parameters = {}});
  EXPECT_EQ(AcceleratorBackend(config), "");
}

TEST(NormalizeInstanceGroups, NumbersNamelessGroups) {
  const auto groups = Groups("instance_group [ { }, { name: 'x' }, { kind: KIND_MODEL } ]");
  EXPECT_EQ(groups[0].name, "m_0");
  EXPECT_EQ(groups[1].name, "x");
  EXPECT_EQ(groups[2].name, "m_2");
  EXPECT_EQ(groups[2].kind, Kind::kModel);
}

TEST(NormalizeInstanceGroups, FollowsThePreferenceOfTheBackend) {
  EXPECT_EQ(Groups("", {{.kind = Kind::kCpu, .count = 4}})[0].count, 4);
  EXPECT_EQ(Groups("", {{.kind = Kind::kModel, .count = 2}})[0].kind, Kind::kModel);
  // Without a GPU the backend's first preference is skipped.
  EXPECT_EQ(
      Groups("", {{.kind = Kind::kGpu, .count = 7}, {.kind = Kind::kCpu, .count = 3}})[0].count, 3);
  const auto on_gpu = Groups("", {{.kind = Kind::kGpu, .count = 7, .gpus = {1, 5}}}, {0, 1});
  EXPECT_EQ(on_gpu[0].kind, Kind::kGpu);
  EXPECT_THAT(on_gpu[0].gpus, ElementsAre(1));
  EXPECT_EQ(
      Groups("instance_group { kind: KIND_CPU }", {{.kind = Kind::kCpu, .count = 6}})[0].count, 6);
}

TEST(NormalizeInstanceGroups, ResolvesAutoByTheGpusThereAre) {
  EXPECT_EQ(Groups("instance_group { }")[0].kind, Kind::kCpu);
  const auto all = Groups("instance_group { }", {}, {0, 1});
  EXPECT_EQ(all[0].kind, Kind::kGpu);
  EXPECT_THAT(all[0].gpus, ElementsAre(0, 1));
  EXPECT_EQ(Groups("instance_group { gpus: [ 7 ] }", {}, {0, 1})[0].kind, Kind::kCpu);
}

TEST(NormalizeInstanceGroups, LeavesEnsemblesAlone) {
  EXPECT_TRUE(Groups("ensemble_scheduling { }").empty());
}

TEST(CompareConfigs, DistinguishesReloadsFromChangesOfInstances) {
  const ModelConfig base = Parsed("name: 'm' instance_group { count: 1 }");
  EXPECT_EQ(CompareConfigs(base, base), ConfigChange::kNothing);
  EXPECT_EQ(CompareConfigs(base, Parsed("name: 'm' instance_group { count: 1 } "
                                        "version_policy { all { } }")),
            ConfigChange::kNothing);
  for (const char* groups :
       {"", "instance_group { count: 2 }", "instance_group { count: 1 kind: KIND_CPU }",
        "instance_group { count: 1 name: 'other' }",
        "instance_group { count: 1 rate_limiter { priority: 2 } }",
        "instance_group { count: 1 } instance_group { count: 1 }"}) {
    EXPECT_EQ(CompareConfigs(base, Parsed(std::string("name: 'm' ") + groups)),
              ConfigChange::kInstances)
        << groups;
  }
  ModelConfig changed = Parsed("name: 'm' instance_group { count: 2 } version_policy { all { } }");
  EXPECT_EQ(CompareConfigs(base, changed), ConfigChange::kInstances);
  changed.max_batch_size = 3;
  EXPECT_EQ(CompareConfigs(base, changed), ConfigChange::kReload);
}

TEST(CompareConfigs, InstancesThatBeginOrCeaseToNeedResourcesAreNew) {
  const auto needing = [](int count) {
    return Parsed(
        fmt::format("name: 'm' instance_group {{ rate_limiter {{ resources {{ name: 'R' "
                    "count: {} }} }} }}",
                    count));
  };
  const ModelConfig none = Parsed("name: 'm' instance_group { count: 1 }");
  EXPECT_EQ(CompareConfigs(none, needing(1)), ConfigChange::kReload);
  EXPECT_EQ(CompareConfigs(needing(1), none), ConfigChange::kReload);
  EXPECT_EQ(CompareConfigs(needing(1), needing(2)), ConfigChange::kInstances);
}

}  // namespace
}  // namespace nereid::config
