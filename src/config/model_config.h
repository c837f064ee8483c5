// SPDX-License-Identifier: Apache-2.0
// A model's configuration as plain values: every field of the ModelConfig message, with presence
// (std::optional) where the file format distinguishes an absent field from the default. Field names
// are those of config.pbtxt. Modules above this one do not see protobuf. All types here are values
// and thread-compatible; the server shares a finished ModelConfig as const.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tensor/data_type.h"

namespace nereid::config {

// A dimension of any size in `dims` and `reshape`.
inline constexpr int64_t kWildcardDim = -1;

// The resources that an instance needs from the rate limiter before it executes, and its priority.
struct RateLimiter {
  // An amount of a named resource; `global` resources are shared by all devices.
  struct Resource {
    std::string name;
    bool global = false;
    uint32_t count = 0;
    bool operator==(const Resource&) const = default;
  };
  std::vector<Resource> resources;
  uint32_t priority = 0;
  bool operator==(const RateLimiter&) const = default;
};

// Instances of one kind: how many, on which devices, and under which host policy.
struct InstanceGroup {
  enum class Kind : int32_t { kAuto = 0, kGpu = 1, kCpu = 2, kModel = 3 };
  // A device besides the GPU, such as a deep learning accelerator.
  struct SecondaryDevice {
    enum class Kind : int32_t { kNvdla = 0 };
    Kind kind = Kind::kNvdla;
    int64_t device_id = 0;
    bool operator==(const SecondaryDevice&) const = default;
  };
  std::string name;
  Kind kind = Kind::kAuto;
  int32_t count = 0;
  std::optional<RateLimiter> rate_limiter;
  std::vector<int32_t> gpus;
  std::vector<SecondaryDevice> secondary_devices;
  std::vector<std::string> profile;
  bool passive = false;
  std::string host_policy;
  bool operator==(const InstanceGroup&) const = default;
};

// An input of the model, with its type and shape as clients see them.
struct ModelInput {
  enum class Format : int32_t { kNone = 0, kNhwc = 1, kNchw = 2 };
  std::string name;
  tensor::DataType data_type{};
  Format format = Format::kNone;
  std::vector<int64_t> dims;                    // without the batch dimension
  std::optional<std::vector<int64_t>> reshape;  // present but empty: the backend sees no dimensions
  bool is_shape_tensor = false;
  bool allow_ragged_batch = false;
  bool optional = false;
  bool is_non_linear_format_io = false;
  bool operator==(const ModelInput&) const = default;
};

// An output of the model, with its type and shape as clients see them.
struct ModelOutput {
  std::string name;
  tensor::DataType data_type{};
  std::vector<int64_t> dims;                    // without the batch dimension
  std::optional<std::vector<int64_t>> reshape;  // present but empty: the backend sees no dimensions
  std::string label_filename;                   // relative to the model's folder
  bool is_shape_tensor = false;
  bool is_non_linear_format_io = false;
  bool operator==(const ModelOutput&) const = default;
};

// An input that describes a ragged batch to the model.
struct BatchInput {
  enum class Kind : int32_t {
    kElementCount = 0,
    kAccumulatedElementCount = 1,
    kAccumulatedElementCountWithZero = 2,
    kMaxElementCountAsShape = 3,
    kItemShape = 4,
    kItemShapeFlatten = 5,
  };
  Kind kind = Kind::kElementCount;
  std::vector<std::string> target_name;
  tensor::DataType data_type{};
  std::vector<std::string> source_input;
  bool operator==(const BatchInput&) const = default;
};

// Outputs that are split among the requests of a ragged batch.
struct BatchOutput {
  enum class Kind : int32_t { kScatterWithInputShape = 0 };
  std::vector<std::string> target_name;
  Kind kind = Kind::kScatterWithInputShape;
  std::vector<std::string> source_input;
  bool operator==(const BatchOutput&) const = default;
};

// Which of the versions in the repository are served.
struct VersionPolicy {
  // The `num_versions` highest versions.
  struct Latest {
    uint32_t num_versions = 0;
    bool operator==(const Latest&) const = default;
  };
  // All versions.
  struct All {
    bool operator==(const All&) const = default;
  };
  // The listed versions.
  struct Specific {
    std::vector<int64_t> versions;
    bool operator==(const Specific&) const = default;
  };
  // monostate: `version_policy {}` was written without a choice inside.
  std::variant<std::monostate, Latest, All, Specific> choice;
  bool operator==(const VersionPolicy&) const = default;
};

// Settings for how the framework runs the model. Backends read them.
struct OptimizationPolicy {
  enum class Priority : int32_t { kDefault = 0, kMax = 1, kMin = 2 };
  // Settings for CUDA.
  struct Cuda {
    // A CUDA graph to capture: the batch size and the shapes of the inputs.
    struct GraphSpec {
      // The smallest batch size and shapes for which the graph is used.
      struct LowerBound {
        int32_t batch_size = 0;
        std::map<std::string, std::vector<int64_t>> input;
        bool operator==(const LowerBound&) const = default;
      };
      int32_t batch_size = 0;
      std::map<std::string, std::vector<int64_t>> input;
      std::optional<LowerBound> graph_lower_bound;
      bool operator==(const GraphSpec&) const = default;
    };
    bool graphs = false;
    bool busy_wait_events = false;
    std::vector<GraphSpec> graph_spec;
    bool output_copy_stream = false;
    bool operator==(const Cuda&) const = default;
  };
  // An execution provider by name, with its parameters.
  struct Accelerator {
    std::string name;
    std::map<std::string, std::string> parameters;
    bool operator==(const Accelerator&) const = default;
  };
  // Providers for instances on GPUs and on the CPU, in order of preference.
  struct ExecutionAccelerators {
    std::vector<Accelerator> gpu_execution_accelerator;
    std::vector<Accelerator> cpu_execution_accelerator;
    bool operator==(const ExecutionAccelerators&) const = default;
  };
  std::optional<int32_t> graph_level;  // graph { level }
  Priority priority = Priority::kDefault;
  std::optional<Cuda> cuda;
  std::optional<ExecutionAccelerators> execution_accelerators;
  std::optional<bool> input_pinned_memory;   // input_pinned_memory { enable }
  std::optional<bool> output_pinned_memory;  // output_pinned_memory { enable }
  uint32_t gather_kernel_buffer_threshold = 0;
  bool eager_batching = false;
  bool operator==(const OptimizationPolicy&) const = default;
};

// How long and how many requests wait in one queue (docs/scheduling.md, Q-4 to Q-8).
struct QueuePolicy {
  enum class TimeoutAction : int32_t { kReject = 0, kDelay = 1 };
  TimeoutAction timeout_action = TimeoutAction::kReject;
  uint64_t default_timeout_microseconds = 0;  // 0: none
  bool allow_timeout_override = false;
  uint32_t max_queue_size = 0;  // 0: unlimited
  bool operator==(const QueuePolicy&) const = default;
};

// How requests form batches (docs/scheduling.md, D and Q).
struct DynamicBatching {
  std::vector<int32_t> preferred_batch_size;
  uint64_t max_queue_delay_microseconds = 0;
  bool preserve_ordering = false;
  uint64_t priority_levels = 0;
  uint64_t default_priority_level = 0;
  std::optional<QueuePolicy> default_queue_policy;
  std::map<uint64_t, QueuePolicy> priority_queue_policy;
  bool operator==(const DynamicBatching&) const = default;
};

// How requests with a correlation id are scheduled (docs/scheduling.md, S).
struct SequenceBatching {
  enum class ControlKind : int32_t { kStart = 0, kReady = 1, kEnd = 2, kCorrelationId = 3 };
  // What a control input tells the model, and the values and type that express it.
  struct Control {
    ControlKind kind = ControlKind::kStart;
    std::vector<int32_t> int32_false_true;
    std::vector<float> fp32_false_true;
    std::vector<bool> bool_false_true;
    tensor::DataType data_type{};
    bool operator==(const Control&) const = default;
  };
  // An input that the server fills with controls.
  struct ControlInput {
    std::string name;
    std::vector<Control> control;
    bool operator==(const ControlInput&) const = default;
  };
  // Zeros, or empty strings.
  struct ZeroData {
    bool value = false;
    bool operator==(const ZeroData&) const = default;
  };
  // The contents of a file.
  struct DataFile {
    std::string path;  // inside the model's initial_state folder
    bool operator==(const DataFile&) const = default;
  };
  // The value of a state before the first request of a sequence.
  struct InitialState {
    tensor::DataType data_type{};
    std::vector<int64_t> dims;
    std::variant<std::monostate, ZeroData, DataFile> state_data;
    std::string name;
    bool operator==(const InitialState&) const = default;
  };
  // An output that becomes an input of the sequence's next request.
  struct State {
    std::string input_name;
    std::string output_name;
    tensor::DataType data_type{};
    std::vector<int64_t> dims;
    std::vector<InitialState> initial_state;
    bool use_same_buffer_for_input_output = false;
    bool use_growable_memory = false;
    bool operator==(const State&) const = default;
  };
  // A sequence keeps its position in every batch.
  struct StrategyDirect {
    uint64_t max_queue_delay_microseconds = 0;
    float minimum_slot_utilization = 0;
    bool operator==(const StrategyDirect&) const = default;
  };
  // Ready requests of different sequences form batches.
  struct StrategyOldest {
    int32_t max_candidate_sequences = 0;
    std::vector<int32_t> preferred_batch_size;
    uint64_t max_queue_delay_microseconds = 0;
    bool preserve_ordering = false;
    bool operator==(const StrategyOldest&) const = default;
  };
  std::variant<std::monostate, StrategyDirect, StrategyOldest> strategy_choice;
  uint64_t max_sequence_idle_microseconds = 0;
  std::vector<ControlInput> control_input;
  std::vector<State> state;
  bool iterative_sequence = false;
  bool operator==(const SequenceBatching&) const = default;
};

// The models of an ensemble and the flow of tensors between them.
struct Ensembling {
  // One model; the maps translate its tensors' names to the ensemble's.
  struct Step {
    std::string model_name;
    int64_t model_version = 0;
    std::map<std::string, std::string> input_map;   // model input -> ensemble tensor
    std::map<std::string, std::string> output_map;  // model output -> ensemble tensor
    std::string model_namespace;
    bool operator==(const Step&) const = default;
  };
  std::vector<Step> step;
  uint32_t max_inflight_requests = 0;
  bool operator==(const Ensembling&) const = default;
};

// A sample that every instance executes before the model is ready.
struct ModelWarmup {
  // Zeros, or empty strings.
  struct ZeroData {
    bool value = false;
    bool operator==(const ZeroData&) const = default;
  };
  // Random bytes, or empty strings.
  struct RandomData {
    bool value = false;
    bool operator==(const RandomData&) const = default;
  };
  // The contents of a file.
  struct DataFile {
    std::string path;  // inside the model's warmup folder
    bool operator==(const DataFile&) const = default;
  };
  // The type, shape and data of one input of the sample.
  struct Input {
    tensor::DataType data_type{};
    std::vector<int64_t> dims;
    std::variant<std::monostate, ZeroData, RandomData, DataFile> input_data_type;
    bool operator==(const Input&) const = default;
  };
  std::string name;
  uint32_t batch_size = 0;
  std::map<std::string, Input> inputs;
  uint32_t count = 0;
  bool operator==(const ModelWarmup&) const = default;
};

// An agent that processes the model's files before the model is loaded.
struct RepositoryAgent {
  std::string name;
  std::map<std::string, std::string> parameters;
  bool operator==(const RepositoryAgent&) const = default;
};

// The settings of one metric family for this model.
struct MetricControl {
  std::optional<std::string> metric_family;              // metric_identifier { family }
  std::optional<std::vector<double>> histogram_buckets;  // histogram_options { buckets }
  bool operator==(const MetricControl&) const = default;
};

// A whole configuration.
struct ModelConfig {
  std::string name;
  std::string platform;
  std::string backend;
  std::string runtime;
  std::optional<VersionPolicy> version_policy;
  int32_t max_batch_size = 0;
  // Whether max_batch_size was written, even as 0: then the backend does not choose it.
  bool gives_max_batch_size = false;
  std::vector<ModelInput> input;
  std::vector<ModelOutput> output;
  std::vector<BatchInput> batch_input;
  std::vector<BatchOutput> batch_output;
  std::optional<OptimizationPolicy> optimization;
  // monostate: the default scheduler, one request at a time.
  std::variant<std::monostate, DynamicBatching, SequenceBatching, Ensembling> scheduling_choice;
  std::vector<InstanceGroup> instance_group;
  std::string default_model_filename;
  std::map<std::string, std::string> cc_model_filenames;
  std::map<std::string, std::string> metric_tags;
  std::map<std::string, std::string> parameters;  // key -> string_value
  std::vector<ModelWarmup> model_warmup;
  std::optional<std::vector<std::string>> op_library_filename;  // model_operations { … }
  std::optional<bool> decoupled;  // model_transaction_policy { decoupled }
  std::optional<std::vector<RepositoryAgent>> model_repository_agents;
  std::optional<bool> response_cache;  // response_cache { enable }
  std::optional<std::vector<MetricControl>> model_metrics;

  bool is_decoupled() const { return decoupled.value_or(false); }
  bool caches_responses() const { return response_cache.value_or(false); }
  // Returns null if the configuration makes another scheduling choice, or none.
  const DynamicBatching* dynamic_batching() const {
    return std::get_if<DynamicBatching>(&scheduling_choice);
  }
  const SequenceBatching* sequence_batching() const {
    return std::get_if<SequenceBatching>(&scheduling_choice);
  }
  const Ensembling* ensemble_scheduling() const {
    return std::get_if<Ensembling>(&scheduling_choice);
  }
  // Returns null if there is no input, or output, of that name.
  const ModelInput* FindInput(std::string_view input_name) const;
  const ModelOutput* FindOutput(std::string_view output_name) const;
  // Whether an instance needs resources of the rate limiter to execute.
  bool needs_resources() const;
  // Whether the server adds an input of this name to requests: a control or state of sequences.
  bool IsServerInput(std::string_view input_name) const;

  bool operator==(const ModelConfig&) const = default;
};

// Returns the names used in config.pbtxt: "KIND_CPU", "CONTROL_SEQUENCE_START", "BATCH_ITEM_SHAPE",
// ...
std::string_view KindName(InstanceGroup::Kind kind);
std::string_view KindName(SequenceBatching::ControlKind kind);
std::string_view KindName(BatchInput::Kind kind);
std::string_view KindName(BatchOutput::Kind kind);

}  // namespace nereid::config
