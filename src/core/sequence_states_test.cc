// SPDX-License-Identifier: Apache-2.0
#include "core/sequence_states.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/testing/fakes.h"

namespace nereid::core {
namespace {

using config::SequenceBatching;
using tensor::DataType;

SequenceBatching::State State(std::vector<int64_t> dims, DataType type = DataType::kInt32) {
  SequenceBatching::State state;
  state.input_name = "STATE_IN";
  state.output_name = "STATE_OUT";
  state.data_type = type;
  state.dims = std::move(dims);
  return state;
}

SequenceBatching::State FromFile(SequenceBatching::State state, std::vector<int64_t> dims) {
  SequenceBatching::InitialState initial;
  initial.name = "first";
  initial.data_type = state.data_type;
  initial.dims = std::move(dims);
  initial.state_data = SequenceBatching::DataFile{"file"};
  state.initial_state.push_back(initial);
  return state;
}

base::Result<std::shared_ptr<const StatePlan>> Compile(SequenceBatching::State state,
                                                       int64_t max_batch_size = 0,
                                                       const StatePlan::Files& files = {}) {
  SequenceBatching batching;
  batching.state.push_back(std::move(state));
  return StatePlan::Compile(batching, max_batch_size, files);
}

std::string CompileError(SequenceBatching::State state, const StatePlan::Files& files = {}) {
  const auto plan = Compile(std::move(state), 0, files);
  return plan.ok() ? "" : std::string(plan.status().message());
}

std::string Ints(std::initializer_list<int32_t> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(int32_t)};
}

std::string Bytes(const StateValue& value) {
  return {reinterpret_cast<const char*>(value.data()), value.byte_size};
}

// Gives a state a new value, as a backend does.
void Write(SequenceStates& states, std::initializer_list<int32_t> values) {
  const int64_t shape[] = {static_cast<int64_t>(values.size())};
  const auto state = states.New("STATE_OUT", DataType::kInt32, shape);
  ASSERT_TRUE(state.ok());
  const auto buffer = (*state)->Buffer(values.size() * sizeof(int32_t));
  ASSERT_TRUE(buffer.ok());
  std::memcpy(*buffer, values.begin(), values.size() * sizeof(int32_t));
  ASSERT_TRUE((*state)->Update().ok());
}

TEST(StatePlan, BeginsWithZerosAndOnesForVariableDimensions) {
  const auto plan = Compile(State({-1, 2}), 4);
  ASSERT_TRUE(plan.ok());
  const StateValue& initial = (*plan)->states()[0].initial;
  EXPECT_EQ(initial.shape, (tensor::Shape{1, 1, 2}));
  EXPECT_EQ(Bytes(initial), Ints({0, 0}));
}

TEST(StatePlan, BeginsTextsAsEmptyOnes) {
  const auto plan = Compile(State({3}, DataType::kBytes));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(Bytes((*plan)->states()[0].initial), std::string(12, '\0'));
}

TEST(StatePlan, TakesTheFirstBytesOfAFileAndItsDimensions) {
  const auto plan = Compile(FromFile(State({-1}), {2}), 0, {{"file", Ints({7, 8, 9})}});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ((*plan)->states()[0].initial.shape, (tensor::Shape{2}));
  EXPECT_EQ(Bytes((*plan)->states()[0].initial), Ints({7, 8}));
}

TEST(StatePlan, SaysWhatDoesNotMatch) {
  EXPECT_NE(CompileError(FromFile(State({2}), {2}), {{"file", "four"}}).find("expects 8 bytes"),
            std::string::npos);
  EXPECT_NE(CompileError(FromFile(State({2}), {3}), {{"file", "x"}})
                .find("'initial_state' dim for input name 'STATE_IN' doesn't match"),
            std::string::npos);
  EXPECT_NE(CompileError(FromFile(State({2}), {2, 1}), {{"file", "x"}}).find("2 != 1"),
            std::string::npos);
  EXPECT_NE(CompileError(FromFile(State({-1}), {-1}), {{"file", "x"}})
                .find("contains variable dimensions"),
            std::string::npos);
  EXPECT_NE(CompileError(FromFile(State({1}, DataType::kBytes), {1}), {{"file", "\x09"}})
                .find("is not that"),
            std::string::npos);
  SequenceBatching::State twice = FromFile(FromFile(State({1}), {1}), {1});
  EXPECT_NE(CompileError(twice).find("Found '2' elements"), std::string::npos);
  SequenceBatching::State other_type = FromFile(State({1}), {1});
  other_type.initial_state[0].data_type = DataType::kFp32;
  EXPECT_NE(CompileError(other_type).find("does not match the state data type"), std::string::npos);
  SequenceBatching::State nameless = FromFile(State({1}), {1});
  nameless.initial_state[0].name.clear();
  EXPECT_NE(CompileError(nameless).find("Field 'name' must be set"), std::string::npos);
  SequenceBatching::State growable = State({1});
  growable.use_growable_memory = true;
  EXPECT_NE(CompileError(growable).find("'use_growable_memory'"), std::string::npos);
}

TEST(StatePlan, IgnoresAStateThatRepeatsAName) {
  SequenceBatching batching;
  batching.state = {State({1}), State({5})};
  const auto plan = StatePlan::Compile(batching, 0, {});
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ((*plan)->states().size(), 1u);
  EXPECT_EQ((*plan)->states()[0].initial.shape, (tensor::Shape{1}));
}

TEST(SequenceStates, ShowItsValuesAsInputsOfTheRequest) {
  SequenceStates states(*Compile(State({2}), 4));
  FakeSink sink;
  const auto model = MakeFakeModel(4, {2});
  RequestPtr request = MakeFakeRequest(*model, sink, {1, 2});
  states.AttachInputs(*request);
  EXPECT_EQ(request->states, &states);
  const RequestInput* input = request->FindInput("STATE_IN");
  ASSERT_NE(input, nullptr);
  EXPECT_EQ(input->model_index, kServerInput);
  EXPECT_EQ(input->shape, (tensor::Shape{1, 2}));
  EXPECT_EQ(input->byte_size, 8u);
  EXPECT_EQ(input->name.data()[input->name.size()], '\0');
}

TEST(SequenceStates, KeepAValueOnlyOnceItIsUpdated) {
  SequenceStates states(*Compile(State({1})));
  const int64_t shape[] = {1};
  const auto state = states.New("STATE_OUT", DataType::kInt32, shape);
  ASSERT_TRUE(state.ok());
  const auto buffer = (*state)->Buffer(4);
  ASSERT_TRUE(buffer.ok());
  std::memset(*buffer, 1, 4);
  EXPECT_EQ(Bytes(states.value(0)), Ints({0}));
  EXPECT_EQ((*state)->buffer_byte_size(), 4u);
  ASSERT_TRUE((*state)->Update().ok());
  EXPECT_EQ(Bytes(states.value(0)), Ints({0x01010101}));
  EXPECT_FALSE((*state)->Update().ok());
}

TEST(SequenceStates, DoNotChangeAnInputThatIsBeingRead) {
  SequenceStates states(*Compile(State({1})));
  FakeSink sink;
  const auto model = MakeFakeModel(0, {1});
  RequestPtr request = MakeFakeRequest(*model, sink, {1});
  Write(states, {1});
  states.AttachInputs(*request);
  const std::byte* const read = request->FindInput("STATE_IN")->first.data;
  for (int32_t value = 2; value < 10; ++value) Write(states, {value});
  int32_t seen = 0;
  std::memcpy(&seen, read, sizeof(seen));
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(Bytes(states.value(0)), Ints({9}));
}

TEST(SequenceStates, TakeValuesOfAnotherShape) {
  SequenceStates states(*Compile(State({-1})));
  Write(states, {1, 2, 3});
  EXPECT_EQ(states.value(0).shape, (tensor::Shape{3}));
  EXPECT_EQ(Bytes(states.value(0)), Ints({1, 2, 3}));
}

TEST(SequenceStates, AreTheInitialOnesAgainAfterAReset) {
  const auto plan = Compile(FromFile(State({1}), {1}), 0, {{"file", Ints({5})}});
  SequenceStates states(*plan);
  SequenceStates others(*plan);
  Write(states, {1});
  states.Reset();
  EXPECT_EQ(Bytes(states.value(0)), Ints({5}));
  EXPECT_EQ(Bytes(others.value(0)), Ints({5}));
}

TEST(SequenceStates, WriteOverTheOldValueWhereTheBufferIsShared) {
  SequenceBatching::State shared = FromFile(State({-1}), {1});
  shared.use_same_buffer_for_input_output = true;
  const auto plan = Compile(shared, 0, {{"file", Ints({5})}});
  SequenceStates states(*plan);
  const int64_t shape[] = {1};
  std::byte* last = nullptr;
  for (int i = 0; i < 3; ++i) {
    const auto state = states.New("STATE_OUT", DataType::kInt32, shape);
    ASSERT_TRUE(state.ok());
    const auto buffer = (*state)->Buffer(4);
    ASSERT_TRUE(buffer.ok());
    // The first buffer differs because all sequences share the initial value, which is copied
    // first.
    if (last != nullptr) {
      EXPECT_EQ(*buffer, last);
    }
    last = *buffer;
    int32_t value = 0;
    std::memcpy(&value, last, sizeof(value));
    EXPECT_EQ(value, 5 + i);
    ++value;
    std::memcpy(last, &value, sizeof(value));
    ASSERT_TRUE((*state)->Update().ok());
  }
  EXPECT_EQ(Bytes((*plan)->states()[0].initial), Ints({5}));
}

TEST(SequenceStates, KeepWhatWasWrittenWhereASharedBufferGrows) {
  SequenceBatching::State growing = State({-1});
  growing.use_same_buffer_for_input_output = true;
  growing.use_growable_memory = true;
  SequenceStates states(*Compile(growing));
  Write(states, {1});
  const int64_t shape[] = {2};
  const auto state = states.New("STATE_OUT", DataType::kInt32, shape);
  ASSERT_TRUE(state.ok());
  const auto buffer = (*state)->Buffer(8);
  ASSERT_TRUE(buffer.ok());
  const int32_t second = 2;
  std::memcpy(*buffer + 4, &second, 4);
  ASSERT_TRUE((*state)->Update().ok());
  EXPECT_EQ(Bytes(states.value(0)), Ints({1, 2}));
}

TEST(SequenceStates, RefuseWhatTheModelHasNot) {
  SequenceStates states(*Compile(State({1})));
  const auto state = states.New("STATE_IN", DataType::kInt32, {});
  ASSERT_FALSE(state.ok());
  EXPECT_EQ(state.status().message(), "state 'STATE_IN' is not a valid state name.");
}

TEST(SequenceStates, NeedABufferUnlessTheValueIsEmpty) {
  SequenceStates states(*Compile(State({-1})));
  const int64_t one[] = {1};
  EXPECT_FALSE((*states.New("STATE_OUT", DataType::kInt32, one))->Update().ok());
  const int64_t none[] = {0};
  EXPECT_TRUE((*states.New("STATE_OUT", DataType::kInt32, none))->Update().ok());
  EXPECT_EQ(states.value(0).byte_size, 0u);
}

TEST(SequenceStates, AreZerosInTheShapesOfOthersForPadding) {
  const auto plan = Compile(FromFile(State({-1}), {1}), 0, {{"file", Ints({5})}});
  SequenceStates states(*plan);
  SequenceStates padding(*plan);
  Write(states, {1, 2});
  padding.ResetLike(states);
  EXPECT_EQ(padding.value(0).shape, (tensor::Shape{2}));
  EXPECT_EQ(Bytes(padding.value(0)), Ints({0, 0}));
  EXPECT_EQ(Bytes(states.value(0)), Ints({1, 2}));
}

}  // namespace
}  // namespace nereid::core
