// SPDX-License-Identifier: Apache-2.0
#include "common/request_regions.h"

#include <algorithm>
#include <string>

#include "base/object_pool.h"
#include "common/region_sink.h"
#include "core/model.h"

namespace nereid::common {

using SinkPool = base::ObjectPool<RegionSink>;

namespace {

// Returns whether the model may use the memory itself, which a client can change meanwhile, and not
// a copy.
bool MayUseInPlace(const memory::RegionUse& use, const core::Request& request) {
  return use.is_trusted() || request.model->stands_changes();
}

}  // namespace

base::Result<memory::RegionUse> RequestRegions::Use(const RegionTensor& where) const {
  if (table_ != nullptr) return table_->Use(where.region, where.offset, where.byte_size);
  return base::NotFoundError("Unable to find shared memory region: '" + std::string(where.region) +
                             "'");
}

base::Status RequestRegions::AddInput(core::Request& request, core::RequestInput& input,
                                      const RegionTensor& where) {
  NEREID_ASSIGN_OR_RETURN(memory::RegionUse use, Use(where));
  // Elements of BYTES are checked by the CPU, which needs them in its memory.
  const bool is_bytes = input.type == tensor::DataType::kBytes;
  if (use.region().is_on_device() && !is_bytes && request.model->uses_gpu_memory()) {
    NEREID_ASSIGN_OR_RETURN(const bool is_added, AddGpuInput(request, input, use));
    if (is_added) return base::OkStatus();
  }
  const bool is_copied = is_bytes || use.region().is_on_device() || !MayUseInPlace(use, request);
  if (is_copied) {
    base::BufferRef copy = base::AcquireBuffer(use.size());
    if (!copy) {
      return base::UnavailableError("no memory for the data of input '" + std::string(input.name) +
                                    "'");
    }
    NEREID_RETURN_IF_ERROR(use.Read(copy.data()));
    NEREID_RETURN_IF_ERROR(use.CheckWhole());
    input.Append({.data = copy.data(), .size = use.size(), .where = {}});
    request.Hold(std::move(copy));
  } else {
    input.Append({.data = use.data(), .size = use.size(), .where = {}, .may_change = true});
  }
  sink().AddInput(std::move(use));
  return base::OkStatus();
}

base::Result<bool> RequestRegions::AddGpuInput(core::Request& request, core::RequestInput& input,
                                               memory::RegionUse& use) {
  core::DataChunk chunk{.data = use.data(),
                        .size = use.size(),
                        .where = use.region().where(),
                        .may_change = true,
                        .cuda_ipc_handle = use.region().cuda_ipc_handle()};
  if (!MayUseInPlace(use, request)) {
    memory::GpuBlock copy = use.gpus()->TakeBlock(use.size(), chunk.where.id);
    if (!copy) return false;  // the pool is full: a copy in host memory then
    NEREID_RETURN_IF_ERROR(use.Read(copy.data()));
    chunk.data = copy.data();
    chunk.may_change = false;
    chunk.cuda_ipc_handle = nullptr;
    sink().AddCopy(std::move(copy));
  }
  input.Append(chunk);
  request.has_gpu_inputs = true;
  sink().AddInput(std::move(use));
  return true;
}

base::Status RequestRegions::AddOutput(std::string_view name, const RegionTensor& where) {
  NEREID_ASSIGN_OR_RETURN(memory::RegionUse use, Use(where));
  sink().AddOutput(name, std::move(use));
  return base::OkStatus();
}

RegionSink& RequestRegions::sink() {
  if (sink_ == nullptr) sink_ = SinkPool::Take();
  return *sink_;
}

void RequestRegions::AttachSink(core::Request& request) {
  std::exchange(sink_, nullptr)->PutBefore(request);
}

void RequestRegions::DropSink() { SinkPool::Give(std::exchange(sink_, nullptr)); }

const memory::RegionUse* RegionSink::Find(std::string_view output) const {
  const auto found = std::ranges::find(outputs_, output, &Output::name);
  return found == outputs_.end() ? nullptr : &found->use;
}

base::Result<std::optional<memory::Placement>> RegionSink::PredictPlacement(
    const core::Request& request, const char* name, size_t* byte_size,
    memory::Placement preferred) {
  const memory::RegionUse* const use = name == nullptr ? nullptr : Find(name);
  const bool is_on_gpu =
      use != nullptr && use->region().is_on_device() && preferred.type == memory::MemoryType::kGpu;
  if (!is_on_gpu) return next().PredictPlacement(request, name, byte_size, preferred);
  return std::optional(preferred);
}

base::Result<std::optional<core::OutputPlacement>> RegionSink::PlaceOutput(
    const core::Request& request, const core::ResponseOutput& output, size_t byte_size,
    memory::Placement preferred) {
  const memory::RegionUse* const use = Find(output.name);
  if (use == nullptr) return next().PlaceOutput(request, output, byte_size, preferred);
  if (byte_size > use->size()) {
    return base::InternalError("shared memory size specified with the request for output '" +
                               std::string(output.name) + "' (" + std::to_string(use->size()) +
                               " bytes) should be at least " + std::to_string(byte_size) +
                               " bytes to hold the results");
  }
  // Outputs that a model does not write to the GPU itself are copied when they are sent.
  const bool is_on_device = use->region().is_on_device();
  if (is_on_device && preferred.type != memory::MemoryType::kGpu) {
    return std::optional<core::OutputPlacement>();
  }
  // A model may also read its outputs, so those for an untrusted client are copied when they are
  // sent.
  if (is_on_device && preferred.id != use->region().where().id) {
    return PlaceInBlock(*use, byte_size, preferred.id);
  }
  if (!MayUseInPlace(*use, request)) {
    return is_on_device ? PlaceInBlock(*use, byte_size, preferred.id) : std::nullopt;
  }
  return std::optional<core::OutputPlacement>({.data = use->data(),
                                               .where = use->region().where(),
                                               .cuda_ipc_handle = use->region().cuda_ipc_handle(),
                                               .may_change = true});
}

// Gives the output memory of a GPU's pool, from which it is copied when it is sent; nothing if the
// pool is full. The response's placement owns the memory.
std::optional<core::OutputPlacement> RegionSink::PlaceInBlock(const memory::RegionUse& use,
                                                              size_t byte_size, int64_t device) {
  auto block = std::make_unique<memory::GpuBlock>(use.gpus()->TakeBlock(byte_size, device));
  if (!*block) return std::nullopt;
  core::OutputPlacement placement{.data = block->data(), .where = block->where()};
  placement.owner = block.release();
  return placement;
}

void RegionSink::ReleasePlacement(const core::OutputPlacement& placement, size_t byte_size) {
  // No sink of a protocol places outputs on a GPU.
  if (placement.where.type != memory::MemoryType::kGpu) {
    return next().ReleasePlacement(placement, byte_size);
  }
  delete static_cast<memory::GpuBlock*>(placement.owner);
}

base::Status RegionSink::CheckRegions() const {
  for (const memory::RegionUse& use : inputs_) NEREID_RETURN_IF_ERROR(use.CheckWhole());
  for (const Output& output : outputs_) NEREID_RETURN_IF_ERROR(output.use.CheckWhole());
  return base::OkStatus();
}

// Copies the outputs that could not be written in place. Fails if a region is not valid any more.
base::Status RegionSink::FillRegions(const core::Response& response) const {
  for (size_t i = 0; i < response.output_count() && !outputs_.empty(); ++i) {
    const core::ResponseOutput& output = response.output(i);
    const bool is_in_block =
        output.where.type == memory::MemoryType::kGpu && output.placement_owner != nullptr;
    const memory::RegionUse* const use =
        output.is_placed && !is_in_block ? nullptr : Find(output.name);
    if (use == nullptr) continue;
    NEREID_RETURN_IF_ERROR(use->Write(output.data, std::min(output.byte_size, use->size())));
  }
  return CheckRegions();
}

void RegionSink::Send(core::ResponsePtr response, bool is_final) {
  if (response != nullptr && response->error().ok()) {
    if (base::Status status = FillRegions(*response); !status.ok()) {
      response->SetError(status.WithPrefix(response->request().LogPrefix()));
    }
  }
  if (!is_final) return next().Send(std::move(response), false);
  last_ = std::move(response);
  if (IsSecond(kCompleted)) SendLast();
}

void RegionSink::OnRequestReleased(core::Request& request) {
  next().OnRequestReleased(request);
  if (IsSecond(kReleased)) SendLast();
}

void RegionSink::SendLast() {
  inputs_.clear();
  outputs_.clear();
  copies_.clear();
  // The call below may destroy this object.
  core::ResponsePtr last = std::move(last_);
  next().Send(std::move(last), true);
}

void RegionSink::Retire() { SinkPool::Give(this); }

void RegionSink::Recycle() {
  inputs_.clear();
  outputs_.clear();
  copies_.clear();
  events_.store(0);
  last_.reset();
}

}  // namespace nereid::common
