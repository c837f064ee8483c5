// SPDX-License-Identifier: Apache-2.0
// What the console shows of the log, of traces and of sequences, as JSON.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/recent_log.h"
#include "core/model.h"
#include "core/sequence_reading.h"
#include "observe/recent_traces.h"

namespace nereid::console {

// Returns {"messages":[{"id":1,"time_ms":...,"level":"info","source":"engine.cc:12","text":...}]}.
std::string LogJson(std::span<const base::RecentMessage> messages);

// Returns {"is_on":true,"traces":[{"id":1,"time_ms":...,"model":...,"version":1,"request_id":...,
// "requests":3,"ns":...},...]}, where `ns` is the time from the first moment to the last.
std::string TracesJson(bool is_on,
                       std::span<const std::shared_ptr<const observe::RecentTrace>> traces);

// Returns {"id":1,"time_ms":...,"is_cut":false,"requests":[{"id":1,"parent_id":0,"model":...,
// "version":1,"request_id":...,"moments":[{"name":"REQUEST_START","ns":0},...]},...]}, where `ns`
// counts from the first moment of the trace.
std::string TraceJson(const observe::RecentTrace& trace);

// Returns {"name":...,"version":...,"strategy":"direct","slots_per_instance":2,"used_slots":1,...,
// "running":[{"id":"7","instance":0,"position":0,"waiting":0,"executing":false,"closed":false,
// "idle_ns":12500000},...],"backlog":[...]}.
std::string SequencesJson(const core::Model& model, const core::SequencesReading& sequences);

}  // namespace nereid::console
