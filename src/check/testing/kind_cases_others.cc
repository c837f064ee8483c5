// SPDX-License-Identifier: Apache-2.0
#include "check/testing/kind_cases.h"

namespace nereid::check {
namespace {

constexpr std::string_view kTensors =
    "input { name: \"IN\" data_type: TYPE_FP32 dims: 2 }\n"
    "output { name: \"OUT\" data_type: TYPE_FP32 dims: 2 }\n";

std::string Step(std::string_view model, std::string_view from, std::string_view to) {
  return "  step { model_name: \"" + std::string(model) +
         "\" model_version: -1\n"
         "    input_map { key: \"INPUT0\" value: \"" +
         std::string(from) +
         "\" }\n"
         "    output_map { key: \"OUTPUT0\" value: \"" +
         std::string(to) + "\" } }\n";
}

// The ensemble "e" over the model "m". Its steps begin in line 5.
Files Ensemble(const std::string& steps, std::string_view more = {}) {
  Files files = Model(Plain());
  files.emplace_back("e/1/", "");
  files.emplace_back("e/config.pbtxt", "platform: \"ensemble\"\n" + std::string(kTensors) +
                                           "ensemble_scheduling {\n" + steps + "}\n" +
                                           std::string(more));
  return files;
}

Files Onnx(std::string_view more) {
  return {{"m/1/model.onnx", "x"},
          {"m/config.pbtxt", "backend: \"onnxruntime\"\n" + std::string(more)}};
}

}  // namespace

std::vector<KindCase> EnsembleCases() {
  const std::string good = Step("m", "IN", "OUT");
  Files broken = Ensemble(good);
  broken[1].second += "max_batch_size: 4\n";
  return {
      {"ensemble-platform", "m/config.pbtxt:5:1", "no backend",
       PlainModel("ensemble_scheduling {\n" + Step("m", "INPUT0", "OUTPUT0") + "}\n")},
      {"ensemble-scheduling-missing", "m/config.pbtxt:1:11", "Add",
       Model("platform: \"ensemble\"\n")},
      {"ensemble-backend", "e/config.pbtxt:9:10", "Remove", Ensemble(good, "backend: \"x\"\n")},
      {"ensemble-setting", "e/config.pbtxt:9:1", "models of the steps",
       Ensemble(good, "instance_group { }\n")},
      {"ensemble-no-steps", "e/config.pbtxt:4:1", "Add a step", Ensemble("")},
      {"step-incomplete", "e/config.pbtxt:5:8", "all three",
       Ensemble("  step { model_name: \"m\" }\n")},
      {"ensemble-model-unknown", "e/config.pbtxt:5:22", "Did you mean 'models'?",
       [&] {
         Files files = Ensemble(Step("modles", "IN", "OUT"));
         files.emplace_back("models/1/", "");
         files.emplace_back("models/config.pbtxt", Plain());
         return files;
       }()},
      {"ensemble-model-broken", "e/config.pbtxt:5:22", "Correct that model", broken},
      {"ensemble-version", "e/config.pbtxt:5:8", "-1",
       Ensemble("  step { model_name: \"m\"\n    input_map { key: \"INPUT0\" value: \"IN\" }\n    "
                "output_map { key: \"OUTPUT0\" value: \"OUT\" } }\n")},
      {"ensemble-cycle", "e/config.pbtxt:5:3", "Remove",
       Ensemble("  step { model_name: \"e\" model_version: -1 input_map { key: \"IN\" value: "
                "\"IN\" } output_map { key: \"OUT\" value: \"OUT\" } }\n")},
      {"ensemble-batch-size", "e/config.pbtxt:9:17", "Lower",
       Ensemble(good, "max_batch_size: 8\n")},
      {"ensemble-step-tensor", "e/config.pbtxt:6:22", "keys of the maps",
       Ensemble("  step { model_name: \"m\" model_version: -1\n    input_map { key: \"X\" value: "
                "\"IN\" }\n    output_map { key: \"OUTPUT0\" value: \"OUT\" } }\n")},
      {"ensemble-input-unmapped", "e/config.pbtxt:6:5", "input_map",
       Ensemble("  step { model_name: \"m\" model_version: -1\n    input_map { key: \"X\" value: "
                "\"IN\" }\n    output_map { key: \"OUTPUT0\" value: \"OUT\" } }\n")},
      {"ensemble-type", "e/config.pbtxt:6:22", "converts",
       [&] {
         Files files = Ensemble(good);
         files[1].second =
             "backend: \"identity\"\nmax_batch_size: 4\n"
             "input { name: \"INPUT0\" data_type: TYPE_INT8 dims: 2 }\n"
             "output { name: \"OUTPUT0\" data_type: TYPE_INT8 dims: 2 }\n";
         return files;
       }()},
      {"ensemble-shape", "e/config.pbtxt:7:23", "Correct dims",
       [&] {
         Files files = Ensemble(good);
         files[1].second =
             "backend: \"identity\"\nmax_batch_size: 4\n"
             "input { name: \"INPUT0\" data_type: TYPE_FP32 dims: 2 }\n"
             "output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: 3 }\n";
         return files;
       }()},
      {"ensemble-written-twice", "e/config.pbtxt:10:23", "of its own", Ensemble(good + good)},
      {"ensemble-input-unused", "e/config.pbtxt:9:15", "Map it",
       Ensemble(good, "input { name: \"IN2\" data_type: TYPE_FP32 dims: 2 }\n")},
      {"ensemble-output-unmapped", "e/config.pbtxt:9:16", "Map it",
       Ensemble(good, "output { name: \"OUT2\" data_type: TYPE_FP32 dims: 2 }\n")},
      {"ensemble-output-unwritten", "e/config.pbtxt:3:16", "Connect",
       Ensemble(Step("m", "NOTHING", "OUT"))},
      {"ensemble-tensor-unused", "e/config.pbtxt:4:1", "leave it out",
       Ensemble(good + Step("m", "IN", "MORE"))},
      {"ensemble-streams", "e/config.pbtxt:5:3", "one decoupled model",
       [&] {
         Files files = Ensemble(Step("m", "IN", "A") + Step("m", "IN", "B") +
                                "  step { model_name: \"two\" model_version: -1\n"
                                "    input_map { key: \"INPUT0\" value: \"A\" } input_map { key: "
                                "\"INPUT1\" value: \"B\" }\n"
                                "    output_map { key: \"OUTPUT0\" value: \"OUT\" } }\n");
         files[1].second += "model_transaction_policy { decoupled: true }\n";
         files.emplace_back("two/1/", "");
         files.emplace_back("two/config.pbtxt",
                            Plain("input { name: \"INPUT1\" data_type: TYPE_FP32 dims: 2 }\n"));
         return files;
       }()},
  };
}

std::vector<KindCase> BackendCases() {
  return {
      {"platform-unknown", "m/config.pbtxt:1:11", "Correct", Model("platform: \"onnx\"\n")},
      {"platform-backend", "m/config.pbtxt:2:11", "Remove", Onnx("platform: \"tensorrt_plan\"\n")},
      {"backend-not-installed", "m/config.pbtxt:1:10", "Did you mean 'identity'?",
       Model("backend: \"identty\"\n")},
      {"backend-not-installed", "m/config.pbtxt:2:10", "Correct the name",
       Model("backend: \"scripted\"\nruntime: \"other.so\"\n")},
      {"agent-not-installed", "m/config.pbtxt:5:42", "Did you mean 'checksum'?",
       PlainModel("model_repository_agents { agents { name: \"checksun\" } }\n")},
      {"metric-control", "m/config.pbtxt:5:32", "metric_identifier",
       PlainModel("model_metrics { metric_control { } }\n")},
      {"metric-tag", "m/config.pbtxt:5:20", "underscores",
       PlainModel("metric_tags { key: \"a-b\" value: \"c\" }\n")},
      {"metric-family", "m/config.pbtxt:5:62", "only one",
       PlainModel("model_metrics { metric_control { metric_identifier { family: \"x\" } "
                  "histogram_options { buckets: 1 } } }\n")},
      {"parameter-unknown", "m/config.pbtxt:2:19", "Did you mean 'intra_op_thread_count'?",
       Onnx("parameters { key: \"intra_op_thread_cont\" value { string_value: \"1\" } }\n")},
      {"parameter-value", "m/config.pbtxt:2:65", "expected kind",
       Onnx("parameters { key: \"intra_op_thread_count\" value { string_value: \"two\" } }\n")},
      {"parameter-value", "m/config.pbtxt:5:19", "docs/openai.md",
       PlainModel("parameters { key: \"openai\" value { string_value: \"chats\" } }\n")},
      {"parameter-value", "m/config.pbtxt:5:19", "docs/versions.md",
       PlainModel("parameters { key: \"canary_percent\" value { string_value: \"5\" } }\n")},
      {"isolation-unused", "m/config.pbtxt:2:19", "value process",
       Onnx("parameters { key: \"isolation_memory_mb\" value { string_value: \"512\" } }\n")},
      {"accelerator-unknown", "m/config.pbtxt:2:75", "Did you mean 'xnnpack'?",
       Onnx("optimization { execution_accelerators { cpu_execution_accelerator { name: \"xnpack\" "
            "} } }\n")},
      {"optimization-unused", "m/config.pbtxt:5:16", "Remove",
       PlainModel("optimization { graph { level: 1 } }\n")},
      {"python-environment",
       "m/config.pbtxt:2:62",
       "$$TRITON_MODEL_DIRECTORY",
       {{"m/1/model.py", "class TritonPythonModel: pass\n"},
        {"m/config.pbtxt",
         "backend: \"python\"\nparameters { key: \"EXECUTION_ENV_PATH\" value { string_value: "
         "\"$$TRITON_MODEL_DIRECTORY/e.tar.gz\" } }\n"}}},
  };
}

}  // namespace nereid::check
