// SPDX-License-Identifier: Apache-2.0
// A stand-in for TensorRT 10 (libnvinfer.so.10). Its objects have TensorRT's layout, which is
// declared here as a compiler lays it out, and not as the backend counts it.
#include <memory>
#include <string>

#include "fake_engine.h"
#include "fake_interfaces.h"

namespace fake_tensorrt {

// An interface of the caller, as those of fake_interfaces.h.
struct Logger {
  virtual void log(int32_t severity, const char* text) noexcept = 0;
  virtual ~Logger() = default;
};

namespace {

constexpr int kVersion = 100300;

struct RuntimeTable {
  virtual ~RuntimeTable() = default;
  virtual void getPImpl() { Unexpected("getPImpl"); }
  virtual void* deserializeCudaEngine(const void* data, size_t size) {
    return MakeEngine(data, size);
  }
  virtual void deserializeCudaEngineFromStream() { Unexpected("deserializeCudaEngineFromStream"); }
  virtual void setDLACore(int32_t core) { Note("dla core " + std::to_string(core)); }
  virtual void getDLACore() { Unexpected("getDLACore"); }
  virtual int32_t getNbDLACores() { return 2; }
  virtual void setGpuAllocator() { Unexpected("setGpuAllocator"); }
  virtual void setErrorRecorder() { Unexpected("setErrorRecorder"); }
  virtual void getErrorRecorder() { Unexpected("getErrorRecorder"); }
  virtual void getLogger() { Unexpected("getLogger"); }
  virtual void setMaxThreads() { Unexpected("setMaxThreads"); }
  virtual void getMaxThreads() { Unexpected("getMaxThreads"); }
  virtual void setTemporaryDirectory() { Unexpected("setTemporaryDirectory"); }
  virtual void getTemporaryDirectory() { Unexpected("getTemporaryDirectory"); }
  virtual void setTempfileControlFlags() { Unexpected("setTempfileControlFlags"); }
  virtual void getTempfileControlFlags() { Unexpected("getTempfileControlFlags"); }
  virtual void getPluginRegistry() { Unexpected("getPluginRegistry"); }
  virtual void setPluginRegistryParent() { Unexpected("setPluginRegistryParent"); }
  virtual void loadRuntime() { Unexpected("loadRuntime"); }
  virtual void setEngineHostCodeAllowed(bool allowed) {
    Note(allowed ? "host code allowed" : "host code not allowed");
  }
  virtual void getEngineHostCodeAllowed() { Unexpected("getEngineHostCodeAllowed"); }

  void* MakeEngine(const void* data, size_t size);

  Log log;
};

struct EngineTable {
  virtual ~EngineTable() = default;
  virtual void getPImpl() { Unexpected("getPImpl"); }
  virtual void getNbLayers() { Unexpected("getNbLayers"); }
  virtual void serialize() { Unexpected("serialize"); }
  virtual void* createExecutionContext(int32_t strategy) { return MakeContext(strategy); }
  virtual void createExecutionContextWithoutDeviceMemory() {
    Unexpected("createExecutionContextWithoutDeviceMemory");
  }
  virtual void getDeviceMemorySize() { Unexpected("getDeviceMemorySize"); }
  virtual bool isRefittable() { return engine->options.contains("refittable"); }
  virtual void getName() { Unexpected("getName"); }
  virtual int32_t getNbOptimizationProfiles() { return engine->ProfileCount(); }
  virtual const int32_t* getProfileTensorValues(const char* name, int32_t profile, int32_t point) {
    return Values32(name, profile, point);
  }
  virtual void getEngineCapability() { Unexpected("getEngineCapability"); }
  virtual void setErrorRecorder() { Unexpected("setErrorRecorder"); }
  virtual void getErrorRecorder() { Unexpected("getErrorRecorder"); }
  virtual void hasImplicitBatchDimension() { Unexpected("hasImplicitBatchDimension"); }
  virtual void getTacticSources() { Unexpected("getTacticSources"); }
  virtual void getProfilingVerbosity() { Unexpected("getProfilingVerbosity"); }
  virtual void createEngineInspector() { Unexpected("createEngineInspector"); }
  virtual Dims getTensorShape(const char* name) { return ToDims(engine->Find(name)->dims); }
  virtual int32_t getTensorDataType(const char* name) { return engine->Find(name)->type; }
  virtual void getTensorLocation() { Unexpected("getTensorLocation"); }
  virtual bool isShapeInferenceIO(const char* name) { return engine->Find(name)->is_shape; }
  virtual int32_t getTensorIOMode(const char* name) { return engine->Find(name)->is_input ? 1 : 2; }
  virtual void getTensorBytesPerComponent() { Unexpected("getTensorBytesPerComponent"); }
  virtual void getTensorComponentsPerElement() { Unexpected("getTensorComponentsPerElement"); }
  virtual int32_t getTensorFormat(const char*) {
    return engine->options.contains("format") ? 5 : 0;
  }
  virtual const char* getTensorFormatDesc(const char*) { return "a format"; }
  virtual void getTensorVectorizedDim() { Unexpected("getTensorVectorizedDim"); }
  virtual Dims getProfileShape(const char* name, int32_t profile, int32_t point) {
    return engine->ProfileShape(name, profile, point);
  }
  virtual int32_t getNbIOTensors() { return static_cast<int32_t>(engine->tensors.size()); }
  virtual const char* getIOTensorName(int32_t index) {
    return engine->tensors.at(static_cast<size_t>(index)).name.c_str();
  }
  virtual void getHardwareCompatibilityLevel() { Unexpected("getHardwareCompatibilityLevel"); }
  virtual void getNbAuxStreams() { Unexpected("getNbAuxStreams"); }
  virtual void getTensorBytesPerComponentV2() { Unexpected("getTensorBytesPerComponentV2"); }
  virtual void getTensorComponentsPerElementV2() { Unexpected("getTensorComponentsPerElementV2"); }
  virtual void getTensorFormatV2() { Unexpected("getTensorFormatV2"); }
  virtual void getTensorFormatDescV2() { Unexpected("getTensorFormatDescV2"); }
  virtual void getTensorVectorizedDimV2() { Unexpected("getTensorVectorizedDimV2"); }
  virtual void createSerializationConfig() { Unexpected("createSerializationConfig"); }
  virtual void serializeWithConfig() { Unexpected("serializeWithConfig"); }
  virtual void getDeviceMemorySizeForProfile() { Unexpected("getDeviceMemorySizeForProfile"); }
  virtual void createRefitter() { Unexpected("createRefitter"); }
  virtual void setWeightStreamingBudget() { Unexpected("setWeightStreamingBudget"); }
  virtual void getWeightStreamingBudget() { Unexpected("getWeightStreamingBudget"); }
  virtual void getMinimumWeightStreamingBudget() { Unexpected("getMinimumWeightStreamingBudget"); }
  virtual void getStreamableWeightsSize() { Unexpected("getStreamableWeightsSize"); }
  virtual void isDebugTensor() { Unexpected("isDebugTensor"); }
  virtual void setWeightStreamingBudgetV2() { Unexpected("setWeightStreamingBudgetV2"); }
  virtual void getWeightStreamingBudgetV2() { Unexpected("getWeightStreamingBudgetV2"); }
  virtual void getWeightStreamingAutomaticBudget() {
    Unexpected("getWeightStreamingAutomaticBudget");
  }
  virtual void getWeightStreamingScratchMemorySize() {
    Unexpected("getWeightStreamingScratchMemorySize");
  }
  virtual void getDeviceMemorySizeV2() { Unexpected("getDeviceMemorySizeV2"); }
  virtual void getDeviceMemorySizeForProfileV2() { Unexpected("getDeviceMemorySizeForProfileV2"); }

  void* MakeContext(int32_t strategy);
  const int32_t* Values32(const char* name, int32_t profile, int32_t point) {
    const auto& values = engine->ProfileValues(name, profile, point);
    engine->values32.assign(values.begin(), values.end());
    return engine->values32.data();
  }

  std::shared_ptr<Engine> engine;
  Log log;
};

struct ContextTable {
  virtual ~ContextTable() = default;
  virtual void getPImpl() { Unexpected("getPImpl"); }
  virtual void setDebugSync() { Unexpected("setDebugSync"); }
  virtual void getDebugSync() { Unexpected("getDebugSync"); }
  virtual void setProfiler() { Unexpected("setProfiler"); }
  virtual void getProfiler() { Unexpected("getProfiler"); }
  virtual void getEngine() { Unexpected("getEngine"); }
  virtual void setName() { Unexpected("setName"); }
  virtual void getName() { Unexpected("getName"); }
  virtual void setDeviceMemory() { Unexpected("setDeviceMemory"); }
  virtual void getOptimizationProfile() { Unexpected("getOptimizationProfile"); }
  virtual void allInputDimensionsSpecified() { Unexpected("allInputDimensionsSpecified"); }
  virtual void allInputShapesSpecified() { Unexpected("allInputShapesSpecified"); }
  virtual void setErrorRecorder() { Unexpected("setErrorRecorder"); }
  virtual void getErrorRecorder() { Unexpected("getErrorRecorder"); }
  virtual void executeV2() { Unexpected("executeV2"); }
  virtual bool setOptimizationProfileAsync(int32_t index, void*) {
    return context.SetProfile(index);
  }
  virtual void setEnqueueEmitsProfile() { Unexpected("setEnqueueEmitsProfile"); }
  virtual void getEnqueueEmitsProfile() { Unexpected("getEnqueueEmitsProfile"); }
  virtual void reportToProfiler() { Unexpected("reportToProfiler"); }
  virtual bool setInputShape(const char* name, const Dims& dims) {
    return context.SetInputShape(name, dims);
  }
  virtual Dims getTensorShape(const char* name) { return context.ShapeOf(name); }
  virtual void getTensorStrides() { Unexpected("getTensorStrides"); }
  virtual bool setTensorAddress(const char* name, void* memory) {
    return SetAddress(context, name, memory);
  }
  virtual void getTensorAddress() { Unexpected("getTensorAddress"); }
  virtual bool setInputTensorAddress(const char* name, const void* memory) {
    return SetAddress(context, name, const_cast<void*>(memory));
  }
  virtual void setOutputTensorAddress() { Unexpected("setOutputTensorAddress"); }
  virtual int32_t inferShapes(int32_t, const char**) { return context.InferShapes(); }
  virtual void setInputConsumedEvent() { Unexpected("setInputConsumedEvent"); }
  virtual void getInputConsumedEvent() { Unexpected("getInputConsumedEvent"); }
  virtual void getOutputTensorAddress() { Unexpected("getOutputTensorAddress"); }
  virtual bool setOutputAllocator(const char* name, OutputAllocator* allocator) {
    return SetAllocator(context, name, allocator);
  }
  virtual void getOutputAllocator() { Unexpected("getOutputAllocator"); }
  virtual int64_t getMaxOutputSize(const char* name) { return context.MaxOutputSize(name); }
  virtual void setTemporaryStorageAllocator() { Unexpected("setTemporaryStorageAllocator"); }
  virtual void getTemporaryStorageAllocator() { Unexpected("getTemporaryStorageAllocator"); }
  virtual bool enqueueV3(void* stream) { return context.Enqueue(stream); }
  virtual void setPersistentCacheLimit() { Unexpected("setPersistentCacheLimit"); }
  virtual void getPersistentCacheLimit() { Unexpected("getPersistentCacheLimit"); }
  virtual void setNvtxVerbosity() { Unexpected("setNvtxVerbosity"); }
  virtual void getNvtxVerbosity() { Unexpected("getNvtxVerbosity"); }
  virtual void setAuxStreams() { Unexpected("setAuxStreams"); }
  virtual void setDebugListener() { Unexpected("setDebugListener"); }
  virtual void getDebugListener() { Unexpected("getDebugListener"); }
  virtual void setTensorDebugState() { Unexpected("setTensorDebugState"); }
  virtual void getDebugState() { Unexpected("getDebugState"); }
  virtual void setAllTensorsDebugState() { Unexpected("setAllTensorsDebugState"); }
  virtual void updateDeviceMemorySizeForShapes() { Unexpected("updateDeviceMemorySizeForShapes"); }
  virtual void setDeviceMemoryV2() { Unexpected("setDeviceMemoryV2"); }

  Context context;
};

void* RuntimeTable::MakeEngine(const void* data, size_t size) {
  std::shared_ptr<Engine> engine = Deserialize(data, size, kVersion, log);
  if (engine == nullptr) return nullptr;
  auto* const outer = new Outer<EngineTable>();
  outer->table->engine = engine;
  outer->table->log = log;
  return outer;
}

void* EngineTable::MakeContext(int32_t strategy) {
  if (strategy != 0 || engine->Fails("create_context")) {
    log(1, "IExecutionContext is not made: out of memory");
    return nullptr;
  }
  auto* const outer = new Outer<ContextTable>();
  outer->table->context.engine = engine;
  outer->table->context.log = log;
  return outer;
}

}  // namespace
}  // namespace fake_tensorrt

extern "C" {

int32_t getInferLibVersion() { return fake_tensorrt::kVersion; }

void* createInferRuntime_INTERNAL(void* logger, int32_t version) {
  using namespace fake_tensorrt;
  if (version / 10000 != kVersion / 10000) return nullptr;
  Note("runtime 10");
  auto* const outer = new Outer<RuntimeTable>();
  outer->table->log = [logger](int severity, const std::string& text) {
    static_cast<Logger*>(logger)->log(severity, text.c_str());
  };
  return outer;
}

}  // extern "C"
