// SPDX-License-Identifier: Apache-2.0
#include "config/proto_convert.h"

namespace nereid::config {
namespace {

inference::DataType Type(tensor::DataType type) { return static_cast<inference::DataType>(type); }

// Copies a list of plain values into a repeated field.
template <typename List, typename Repeated>
void Put(const List& values, Repeated* field) {
  field->Assign(values.begin(), values.end());
}

void Put(const std::map<std::string, std::string>& values,
         google::protobuf::Map<std::string, std::string>* field) {
  for (const auto& [key, value] : values) (*field)[key] = value;
}

void Put(const InstanceGroup& group, inference::ModelInstanceGroup* m) {
  m->set_name(group.name);
  m->set_kind(static_cast<inference::ModelInstanceGroup::Kind>(group.kind));
  m->set_count(group.count);
  if (group.rate_limiter) {
    auto* limiter = m->mutable_rate_limiter();
    limiter->set_priority(group.rate_limiter->priority);
    for (const auto& r : group.rate_limiter->resources) {
      auto* resource = limiter->add_resources();
      resource->set_name(r.name);
      resource->set_global(r.global);
      resource->set_count(r.count);
    }
  }
  Put(group.gpus, m->mutable_gpus());
  for (const auto& d : group.secondary_devices) {
    auto* device = m->add_secondary_devices();
    device->set_kind(
        static_cast<inference::ModelInstanceGroup::SecondaryDevice::SecondaryDeviceKind>(d.kind));
    device->set_device_id(d.device_id);
  }
  Put(group.profile, m->mutable_profile());
  m->set_passive(group.passive);
  m->set_host_policy(group.host_policy);
}

void Put(const ModelInput& input, inference::ModelInput* m) {
  m->set_name(input.name);
  m->set_data_type(Type(input.data_type));
  m->set_format(static_cast<inference::ModelInput::Format>(input.format));
  Put(input.dims, m->mutable_dims());
  if (input.reshape) Put(*input.reshape, m->mutable_reshape()->mutable_shape());
  m->set_is_shape_tensor(input.is_shape_tensor);
  m->set_allow_ragged_batch(input.allow_ragged_batch);
  m->set_optional(input.optional);
  m->set_is_non_linear_format_io(input.is_non_linear_format_io);
}

void Put(const ModelOutput& output, inference::ModelOutput* m) {
  m->set_name(output.name);
  m->set_data_type(Type(output.data_type));
  Put(output.dims, m->mutable_dims());
  if (output.reshape) Put(*output.reshape, m->mutable_reshape()->mutable_shape());
  m->set_label_filename(output.label_filename);
  m->set_is_shape_tensor(output.is_shape_tensor);
  m->set_is_non_linear_format_io(output.is_non_linear_format_io);
}

void Put(const BatchInput& input, inference::BatchInput* m) {
  m->set_kind(static_cast<inference::BatchInput::Kind>(input.kind));
  Put(input.target_name, m->mutable_target_name());
  m->set_data_type(Type(input.data_type));
  Put(input.source_input, m->mutable_source_input());
}

void Put(const BatchOutput& output, inference::BatchOutput* m) {
  Put(output.target_name, m->mutable_target_name());
  m->set_kind(static_cast<inference::BatchOutput::Kind>(output.kind));
  Put(output.source_input, m->mutable_source_input());
}

void Put(const VersionPolicy& policy, inference::ModelVersionPolicy* m) {
  if (const auto* latest = std::get_if<VersionPolicy::Latest>(&policy.choice)) {
    m->mutable_latest()->set_num_versions(latest->num_versions);
  } else if (std::holds_alternative<VersionPolicy::All>(policy.choice)) {
    m->mutable_all();
  } else if (const auto* specific = std::get_if<VersionPolicy::Specific>(&policy.choice)) {
    Put(specific->versions, m->mutable_specific()->mutable_versions());
  }
}

template <typename GraphSpecMessage>
void PutGraphShapes(const std::map<std::string, std::vector<int64_t>>& shapes,
                    GraphSpecMessage* m) {
  for (const auto& [name, dims] : shapes) Put(dims, (*m->mutable_input())[name].mutable_dim());
}

void Put(const OptimizationPolicy::Cuda& cuda, inference::ModelOptimizationPolicy::Cuda* m) {
  m->set_graphs(cuda.graphs);
  m->set_busy_wait_events(cuda.busy_wait_events);
  m->set_output_copy_stream(cuda.output_copy_stream);
  for (const auto& s : cuda.graph_spec) {
    auto* spec = m->add_graph_spec();
    spec->set_batch_size(s.batch_size);
    PutGraphShapes(s.input, spec);
    if (s.graph_lower_bound) {
      spec->mutable_graph_lower_bound()->set_batch_size(s.graph_lower_bound->batch_size);
      PutGraphShapes(s.graph_lower_bound->input, spec->mutable_graph_lower_bound());
    }
  }
}

void Put(const OptimizationPolicy::Accelerator& accelerator,
         inference::ModelOptimizationPolicy::ExecutionAccelerators::Accelerator* m) {
  m->set_name(accelerator.name);
  Put(accelerator.parameters, m->mutable_parameters());
}

void Put(const OptimizationPolicy& policy, inference::ModelOptimizationPolicy* m) {
  if (policy.graph_level) m->mutable_graph()->set_level(*policy.graph_level);
  m->set_priority(static_cast<inference::ModelOptimizationPolicy::ModelPriority>(policy.priority));
  if (policy.cuda) Put(*policy.cuda, m->mutable_cuda());
  if (policy.execution_accelerators) {
    auto* accelerators = m->mutable_execution_accelerators();
    for (const auto& a : policy.execution_accelerators->gpu_execution_accelerator) {
      Put(a, accelerators->add_gpu_execution_accelerator());
    }
    for (const auto& a : policy.execution_accelerators->cpu_execution_accelerator) {
      Put(a, accelerators->add_cpu_execution_accelerator());
    }
  }
  if (policy.input_pinned_memory) {
    m->mutable_input_pinned_memory()->set_enable(*policy.input_pinned_memory);
  }
  if (policy.output_pinned_memory) {
    m->mutable_output_pinned_memory()->set_enable(*policy.output_pinned_memory);
  }
  m->set_gather_kernel_buffer_threshold(policy.gather_kernel_buffer_threshold);
  m->set_eager_batching(policy.eager_batching);
}

void Put(const QueuePolicy& policy, inference::ModelQueuePolicy* m) {
  m->set_timeout_action(
      static_cast<inference::ModelQueuePolicy::TimeoutAction>(policy.timeout_action));
  m->set_default_timeout_microseconds(policy.default_timeout_microseconds);
  m->set_allow_timeout_override(policy.allow_timeout_override);
  m->set_max_queue_size(policy.max_queue_size);
}

void Put(const DynamicBatching& batching, inference::ModelDynamicBatching* m) {
  Put(batching.preferred_batch_size, m->mutable_preferred_batch_size());
  m->set_max_queue_delay_microseconds(batching.max_queue_delay_microseconds);
  m->set_preserve_ordering(batching.preserve_ordering);
  m->set_priority_levels(batching.priority_levels);
  m->set_default_priority_level(batching.default_priority_level);
  if (batching.default_queue_policy) {
    Put(*batching.default_queue_policy, m->mutable_default_queue_policy());
  }
  for (const auto& [level, policy] : batching.priority_queue_policy) {
    Put(policy, &(*m->mutable_priority_queue_policy())[level]);
  }
}

void Put(const SequenceBatching::ControlInput& input,
         inference::ModelSequenceBatching::ControlInput* m) {
  m->set_name(input.name);
  for (const auto& c : input.control) {
    auto* control = m->add_control();
    control->set_kind(static_cast<inference::ModelSequenceBatching::Control::Kind>(c.kind));
    Put(c.int32_false_true, control->mutable_int32_false_true());
    Put(c.fp32_false_true, control->mutable_fp32_false_true());
    for (const bool value : c.bool_false_true) control->add_bool_false_true(value);
    control->set_data_type(Type(c.data_type));
  }
}

void Put(const SequenceBatching::State& state, inference::ModelSequenceBatching::State* m) {
  m->set_input_name(state.input_name);
  m->set_output_name(state.output_name);
  m->set_data_type(Type(state.data_type));
  Put(state.dims, m->mutable_dims());
  for (const auto& i : state.initial_state) {
    auto* initial = m->add_initial_state();
    initial->set_data_type(Type(i.data_type));
    Put(i.dims, initial->mutable_dims());
    initial->set_name(i.name);
    if (const auto* zero = std::get_if<SequenceBatching::ZeroData>(&i.state_data)) {
      initial->set_zero_data(zero->value);
    } else if (const auto* file = std::get_if<SequenceBatching::DataFile>(&i.state_data)) {
      initial->set_data_file(file->path);
    }
  }
  m->set_use_same_buffer_for_input_output(state.use_same_buffer_for_input_output);
  m->set_use_growable_memory(state.use_growable_memory);
}

void Put(const SequenceBatching& batching, inference::ModelSequenceBatching* m) {
  if (const auto* direct =
          std::get_if<SequenceBatching::StrategyDirect>(&batching.strategy_choice)) {
    m->mutable_direct()->set_max_queue_delay_microseconds(direct->max_queue_delay_microseconds);
    m->mutable_direct()->set_minimum_slot_utilization(direct->minimum_slot_utilization);
  } else if (const auto* oldest =
                 std::get_if<SequenceBatching::StrategyOldest>(&batching.strategy_choice)) {
    auto* strategy = m->mutable_oldest();
    strategy->set_max_candidate_sequences(oldest->max_candidate_sequences);
    Put(oldest->preferred_batch_size, strategy->mutable_preferred_batch_size());
    strategy->set_max_queue_delay_microseconds(oldest->max_queue_delay_microseconds);
    strategy->set_preserve_ordering(oldest->preserve_ordering);
  }
  m->set_max_sequence_idle_microseconds(batching.max_sequence_idle_microseconds);
  for (const auto& input : batching.control_input) Put(input, m->add_control_input());
  for (const auto& state : batching.state) Put(state, m->add_state());
  m->set_iterative_sequence(batching.iterative_sequence);
}

void Put(const Ensembling& ensemble, inference::ModelEnsembling* m) {
  for (const auto& s : ensemble.step) {
    auto* step = m->add_step();
    step->set_model_name(s.model_name);
    step->set_model_version(s.model_version);
    Put(s.input_map, step->mutable_input_map());
    Put(s.output_map, step->mutable_output_map());
    step->set_model_namespace(s.model_namespace);
  }
  m->set_max_inflight_requests(ensemble.max_inflight_requests);
}

void Put(const ModelWarmup& warmup, inference::ModelWarmup* m) {
  m->set_name(warmup.name);
  m->set_batch_size(warmup.batch_size);
  m->set_count(warmup.count);
  for (const auto& [name, i] : warmup.inputs) {
    auto& input = (*m->mutable_inputs())[name];
    input.set_data_type(Type(i.data_type));
    Put(i.dims, input.mutable_dims());
    if (const auto* zero = std::get_if<ModelWarmup::ZeroData>(&i.input_data_type)) {
      input.set_zero_data(zero->value);
    } else if (const auto* random = std::get_if<ModelWarmup::RandomData>(&i.input_data_type)) {
      input.set_random_data(random->value);
    } else if (const auto* file = std::get_if<ModelWarmup::DataFile>(&i.input_data_type)) {
      input.set_input_data_file(file->path);
    }
  }
}

void Put(const RepositoryAgent& agent, inference::ModelRepositoryAgents::Agent* m) {
  m->set_name(agent.name);
  Put(agent.parameters, m->mutable_parameters());
}

void Put(const MetricControl& control, inference::ModelMetrics::MetricControl* m) {
  if (control.metric_family) m->mutable_metric_identifier()->set_family(*control.metric_family);
  if (control.histogram_buckets) {
    Put(*control.histogram_buckets, m->mutable_histogram_options()->mutable_buckets());
  }
}

// Copies the singular messages of ModelConfig, which are present only if the file has them.
void PutOptionalParts(const ModelConfig& config, inference::ModelConfig* m) {
  if (config.version_policy) Put(*config.version_policy, m->mutable_version_policy());
  if (config.optimization) Put(*config.optimization, m->mutable_optimization());
  if (const auto* dynamic = config.dynamic_batching()) Put(*dynamic, m->mutable_dynamic_batching());
  if (const auto* sequence = config.sequence_batching()) {
    Put(*sequence, m->mutable_sequence_batching());
  }
  if (const auto* ensemble = config.ensemble_scheduling()) {
    Put(*ensemble, m->mutable_ensemble_scheduling());
  }
  if (config.op_library_filename) {
    Put(*config.op_library_filename, m->mutable_model_operations()->mutable_op_library_filename());
  }
  if (config.decoupled) m->mutable_model_transaction_policy()->set_decoupled(*config.decoupled);
  if (config.model_repository_agents) {
    auto* agents = m->mutable_model_repository_agents();
    for (const auto& agent : *config.model_repository_agents) Put(agent, agents->add_agents());
  }
  if (config.response_cache) m->mutable_response_cache()->set_enable(*config.response_cache);
  if (config.model_metrics) {
    auto* metrics = m->mutable_model_metrics();
    for (const auto& control : *config.model_metrics) Put(control, metrics->add_metric_control());
  }
}

}  // namespace

inference::ModelConfig ToProto(const ModelConfig& config) {
  inference::ModelConfig m;
  m.set_name(config.name);
  m.set_platform(config.platform);
  m.set_backend(config.backend);
  m.set_runtime(config.runtime);
  m.set_max_batch_size(config.max_batch_size);
  for (const auto& input : config.input) Put(input, m.add_input());
  for (const auto& output : config.output) Put(output, m.add_output());
  for (const auto& input : config.batch_input) Put(input, m.add_batch_input());
  for (const auto& output : config.batch_output) Put(output, m.add_batch_output());
  for (const auto& group : config.instance_group) Put(group, m.add_instance_group());
  m.set_default_model_filename(config.default_model_filename);
  Put(config.cc_model_filenames, m.mutable_cc_model_filenames());
  Put(config.metric_tags, m.mutable_metric_tags());
  for (const auto& [key, value] : config.parameters) {
    (*m.mutable_parameters())[key].set_string_value(value);
  }
  for (const auto& warmup : config.model_warmup) Put(warmup, m.add_model_warmup());
  PutOptionalParts(config, &m);
  return m;
}

}  // namespace nereid::config
