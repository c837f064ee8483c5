// SPDX-License-Identifier: Apache-2.0
#include "config/proto_convert.h"

namespace nereid::config {
namespace {

// Converts a data type. A number that the message allows but the server does not know becomes
// kInvalid, which validation refuses; a plain cast would truncate it to a valid type.
tensor::DataType Type(inference::DataType type) {
  return inference::DataType_IsValid(type) ? static_cast<tensor::DataType>(type)
                                           : tensor::DataType::kInvalid;
}

template <typename T, typename Repeated>
std::vector<T> List(const Repeated& values) {
  return std::vector<T>(values.begin(), values.end());
}

template <typename Repeated, typename Convert>
auto Each(const Repeated& messages, Convert convert) {
  std::vector<decltype(convert(*messages.begin()))> list;
  list.reserve(messages.size());
  for (const auto& message : messages) list.push_back(convert(message));
  return list;
}

std::map<std::string, std::string> StringMap(
    const google::protobuf::Map<std::string, std::string>& map) {
  return {map.begin(), map.end()};
}

InstanceGroup Group(const inference::ModelInstanceGroup& m) {
  InstanceGroup group{.name = m.name(),
                      .kind = static_cast<InstanceGroup::Kind>(m.kind()),
                      .count = m.count(),
                      .gpus = List<int32_t>(m.gpus()),
                      .profile = List<std::string>(m.profile()),
                      .passive = m.passive(),
                      .host_policy = m.host_policy()};
  if (m.has_rate_limiter()) {
    RateLimiter limiter{.priority = m.rate_limiter().priority()};
    for (const auto& r : m.rate_limiter().resources()) {
      limiter.resources.push_back({.name = r.name(), .global = r.global(), .count = r.count()});
    }
    group.rate_limiter = std::move(limiter);
  }
  for (const auto& d : m.secondary_devices()) {
    group.secondary_devices.push_back(
        {.kind = static_cast<InstanceGroup::SecondaryDevice::Kind>(d.kind()),
         .device_id = d.device_id()});
  }
  return group;
}

ModelInput Input(const inference::ModelInput& m) {
  ModelInput input{.name = m.name(),
                   .data_type = Type(m.data_type()),
                   .format = static_cast<ModelInput::Format>(m.format()),
                   .dims = List<int64_t>(m.dims()),
                   .is_shape_tensor = m.is_shape_tensor(),
                   .allow_ragged_batch = m.allow_ragged_batch(),
                   .optional = m.optional(),
                   .is_non_linear_format_io = m.is_non_linear_format_io()};
  if (m.has_reshape()) input.reshape = List<int64_t>(m.reshape().shape());
  return input;
}

ModelOutput Output(const inference::ModelOutput& m) {
  ModelOutput output{.name = m.name(),
                     .data_type = Type(m.data_type()),
                     .dims = List<int64_t>(m.dims()),
                     .label_filename = m.label_filename(),
                     .is_shape_tensor = m.is_shape_tensor(),
                     .is_non_linear_format_io = m.is_non_linear_format_io()};
  if (m.has_reshape()) output.reshape = List<int64_t>(m.reshape().shape());
  return output;
}

BatchInput BatchIn(const inference::BatchInput& m) {
  return {.kind = static_cast<BatchInput::Kind>(m.kind()),
          .target_name = List<std::string>(m.target_name()),
          .data_type = Type(m.data_type()),
          .source_input = List<std::string>(m.source_input())};
}

BatchOutput BatchOut(const inference::BatchOutput& m) {
  return {.target_name = List<std::string>(m.target_name()),
          .kind = static_cast<BatchOutput::Kind>(m.kind()),
          .source_input = List<std::string>(m.source_input())};
}

VersionPolicy Versions(const inference::ModelVersionPolicy& m) {
  VersionPolicy policy;
  if (m.has_latest()) {
    policy.choice = VersionPolicy::Latest{m.latest().num_versions()};
  } else if (m.has_all()) {
    policy.choice = VersionPolicy::All{};
  } else if (m.has_specific()) {
    policy.choice = VersionPolicy::Specific{List<int64_t>(m.specific().versions())};
  }
  return policy;
}

template <typename GraphSpecMessage>
std::map<std::string, std::vector<int64_t>> GraphShapes(const GraphSpecMessage& m) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& [name, shape] : m.input()) shapes[name] = List<int64_t>(shape.dim());
  return shapes;
}

OptimizationPolicy::Cuda Cuda(const inference::ModelOptimizationPolicy::Cuda& m) {
  OptimizationPolicy::Cuda cuda{.graphs = m.graphs(),
                                .busy_wait_events = m.busy_wait_events(),
                                .output_copy_stream = m.output_copy_stream()};
  for (const auto& s : m.graph_spec()) {
    OptimizationPolicy::Cuda::GraphSpec spec{.batch_size = s.batch_size(), .input = GraphShapes(s)};
    if (s.has_graph_lower_bound()) {
      const auto& bound = s.graph_lower_bound();
      spec.graph_lower_bound = {.batch_size = bound.batch_size(), .input = GraphShapes(bound)};
    }
    cuda.graph_spec.push_back(std::move(spec));
  }
  return cuda;
}

OptimizationPolicy Optimization(const inference::ModelOptimizationPolicy& m) {
  OptimizationPolicy policy{.priority = static_cast<OptimizationPolicy::Priority>(m.priority()),
                            .gather_kernel_buffer_threshold = m.gather_kernel_buffer_threshold(),
                            .eager_batching = m.eager_batching()};
  if (m.has_graph()) policy.graph_level = m.graph().level();
  if (m.has_cuda()) policy.cuda = Cuda(m.cuda());
  if (m.has_execution_accelerators()) {
    const auto accelerator = [](const auto& a) {
      return OptimizationPolicy::Accelerator{.name = a.name(),
                                             .parameters = StringMap(a.parameters())};
    };
    const auto& a = m.execution_accelerators();
    policy.execution_accelerators = {
        .gpu_execution_accelerator = Each(a.gpu_execution_accelerator(), accelerator),
        .cpu_execution_accelerator = Each(a.cpu_execution_accelerator(), accelerator)};
  }
  if (m.has_input_pinned_memory()) policy.input_pinned_memory = m.input_pinned_memory().enable();
  if (m.has_output_pinned_memory()) policy.output_pinned_memory = m.output_pinned_memory().enable();
  return policy;
}

QueuePolicy Queue(const inference::ModelQueuePolicy& m) {
  return {.timeout_action = static_cast<QueuePolicy::TimeoutAction>(m.timeout_action()),
          .default_timeout_microseconds = m.default_timeout_microseconds(),
          .allow_timeout_override = m.allow_timeout_override(),
          .max_queue_size = m.max_queue_size()};
}

DynamicBatching Dynamic(const inference::ModelDynamicBatching& m) {
  DynamicBatching batching{.preferred_batch_size = List<int32_t>(m.preferred_batch_size()),
                           .max_queue_delay_microseconds = m.max_queue_delay_microseconds(),
                           .preserve_ordering = m.preserve_ordering(),
                           .priority_levels = m.priority_levels(),
                           .default_priority_level = m.default_priority_level()};
  if (m.has_default_queue_policy()) batching.default_queue_policy = Queue(m.default_queue_policy());
  for (const auto& [level, policy] : m.priority_queue_policy()) {
    batching.priority_queue_policy[level] = Queue(policy);
  }
  return batching;
}

SequenceBatching::ControlInput ControlInput(
    const inference::ModelSequenceBatching::ControlInput& m) {
  return {.name = m.name(), .control = Each(m.control(), [](const auto& c) {
                              return SequenceBatching::Control{
                                  .kind = static_cast<SequenceBatching::ControlKind>(c.kind()),
                                  .int32_false_true = List<int32_t>(c.int32_false_true()),
                                  .fp32_false_true = List<float>(c.fp32_false_true()),
                                  .bool_false_true = List<bool>(c.bool_false_true()),
                                  .data_type = Type(c.data_type())};
                            })};
}

SequenceBatching::State State(const inference::ModelSequenceBatching::State& m) {
  SequenceBatching::State state{
      .input_name = m.input_name(),
      .output_name = m.output_name(),
      .data_type = Type(m.data_type()),
      .dims = List<int64_t>(m.dims()),
      .use_same_buffer_for_input_output = m.use_same_buffer_for_input_output(),
      .use_growable_memory = m.use_growable_memory()};
  for (const auto& i : m.initial_state()) {
    SequenceBatching::InitialState initial{
        .data_type = Type(i.data_type()), .dims = List<int64_t>(i.dims()), .name = i.name()};
    if (i.has_zero_data()) initial.state_data = SequenceBatching::ZeroData{i.zero_data()};
    if (i.has_data_file()) initial.state_data = SequenceBatching::DataFile{i.data_file()};
    state.initial_state.push_back(std::move(initial));
  }
  return state;
}

SequenceBatching Sequence(const inference::ModelSequenceBatching& m) {
  SequenceBatching batching{.max_sequence_idle_microseconds = m.max_sequence_idle_microseconds(),
                            .control_input = Each(m.control_input(), ControlInput),
                            .state = Each(m.state(), State),
                            .iterative_sequence = m.iterative_sequence()};
  if (m.has_direct()) {
    batching.strategy_choice = SequenceBatching::StrategyDirect{
        .max_queue_delay_microseconds = m.direct().max_queue_delay_microseconds(),
        .minimum_slot_utilization = m.direct().minimum_slot_utilization()};
  } else if (m.has_oldest()) {
    batching.strategy_choice = SequenceBatching::StrategyOldest{
        .max_candidate_sequences = m.oldest().max_candidate_sequences(),
        .preferred_batch_size = List<int32_t>(m.oldest().preferred_batch_size()),
        .max_queue_delay_microseconds = m.oldest().max_queue_delay_microseconds(),
        .preserve_ordering = m.oldest().preserve_ordering()};
  }
  return batching;
}

Ensembling Ensemble(const inference::ModelEnsembling& m) {
  return {.step = Each(m.step(),
                       [](const auto& s) {
                         return Ensembling::Step{.model_name = s.model_name(),
                                                 .model_version = s.model_version(),
                                                 .input_map = StringMap(s.input_map()),
                                                 .output_map = StringMap(s.output_map()),
                                                 .model_namespace = s.model_namespace()};
                       }),
          .max_inflight_requests = m.max_inflight_requests()};
}

ModelWarmup Warmup(const inference::ModelWarmup& m) {
  ModelWarmup warmup{.name = m.name(), .batch_size = m.batch_size(), .count = m.count()};
  for (const auto& [name, i] : m.inputs()) {
    ModelWarmup::Input input{.data_type = Type(i.data_type()), .dims = List<int64_t>(i.dims())};
    if (i.has_zero_data()) input.input_data_type = ModelWarmup::ZeroData{i.zero_data()};
    if (i.has_random_data()) input.input_data_type = ModelWarmup::RandomData{i.random_data()};
    if (i.has_input_data_file()) input.input_data_type = ModelWarmup::DataFile{i.input_data_file()};
    warmup.inputs[name] = std::move(input);
  }
  return warmup;
}

MetricControl Metric(const inference::ModelMetrics::MetricControl& m) {
  MetricControl control;
  if (m.has_metric_identifier()) control.metric_family = m.metric_identifier().family();
  if (m.has_histogram_options()) {
    control.histogram_buckets = List<double>(m.histogram_options().buckets());
  }
  return control;
}

RepositoryAgent Agent(const inference::ModelRepositoryAgents::Agent& m) {
  return {.name = m.name(), .parameters = StringMap(m.parameters())};
}

}  // namespace

ModelConfig FromProto(const inference::ModelConfig& m) {
  ModelConfig config{.name = m.name(),
                     .platform = m.platform(),
                     .backend = m.backend(),
                     .runtime = m.runtime(),
                     .max_batch_size = m.max_batch_size(),
                     .gives_max_batch_size = m.max_batch_size() != 0,
                     .input = Each(m.input(), Input),
                     .output = Each(m.output(), Output),
                     .batch_input = Each(m.batch_input(), BatchIn),
                     .batch_output = Each(m.batch_output(), BatchOut),
                     .instance_group = Each(m.instance_group(), Group),
                     .default_model_filename = m.default_model_filename(),
                     .cc_model_filenames = StringMap(m.cc_model_filenames()),
                     .metric_tags = StringMap(m.metric_tags()),
                     .model_warmup = Each(m.model_warmup(), Warmup)};
  for (const auto& [key, parameter] : m.parameters()) {
    config.parameters[key] = parameter.string_value();
  }
  if (m.has_version_policy()) config.version_policy = Versions(m.version_policy());
  if (m.has_optimization()) config.optimization = Optimization(m.optimization());
  if (m.has_dynamic_batching()) config.scheduling_choice = Dynamic(m.dynamic_batching());
  if (m.has_sequence_batching()) config.scheduling_choice = Sequence(m.sequence_batching());
  if (m.has_ensemble_scheduling()) config.scheduling_choice = Ensemble(m.ensemble_scheduling());
  if (m.has_model_operations()) {
    config.op_library_filename = List<std::string>(m.model_operations().op_library_filename());
  }
  if (m.has_model_transaction_policy()) config.decoupled = m.model_transaction_policy().decoupled();
  if (m.has_model_repository_agents()) {
    config.model_repository_agents = Each(m.model_repository_agents().agents(), Agent);
  }
  if (m.has_response_cache()) config.response_cache = m.response_cache().enable();
  if (m.has_model_metrics()) {
    config.model_metrics = Each(m.model_metrics().metric_control(), Metric);
  }
  return config;
}

}  // namespace nereid::config
