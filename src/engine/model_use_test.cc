// SPDX-License-Identifier: Apache-2.0
#include "engine/model_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nereid::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

base::TimePoint At(int64_t second) { return base::TimePoint() + seconds(1000 + second); }

// A loaded model with that many requests since then.
ModelActivities::value_type Requests(const std::string& name, uint64_t count) {
  ModelActivity activity;
  activity.requests[1] = count;
  return {name, activity};
}

class ModelUseTest : public testing::Test {
 protected:
  void Load(const std::string& name, uint64_t waiting = 1, int64_t second = 0) {
    policy_.NoteLoaded(name, {40}, milliseconds(10), At(second));
    policy_.NoteUses(name, waiting, At(second));
    use_.NoteLoaded(name, waiting);
  }

  EvictionPolicy policy_{{.budgets = {100}, .idle_limit = seconds(10)}};
  ModelUse use_;
};

TEST_F(ModelUseTest, CountsEachRequestOnce) {
  Load("a");
  Load("b");
  Load("c");
  // The requests for `b` that waited for its load are counted already.
  use_.Update({Requests("a", 3), Requests("b", 1), Requests("c", 9)}, policy_, At(1));
  EXPECT_THAT(policy_.MakeRoom("", {}, At(1)).victims, ElementsAre("b"));
  use_.Update({Requests("a", 3), Requests("b", 8), Requests("c", 9)}, policy_, At(1));
  EXPECT_THAT(policy_.MakeRoom("", {}, At(1)).victims, ElementsAre("a"));
}

TEST_F(ModelUseTest, CountsEachRequestOnceHoweverOftenAModelIsLoaded) {
  Load("a", 0);
  use_.Update({Requests("a", 3)}, policy_, At(1));
  // This load has changed nothing, so the statistics go on.
  Load("a", 2, 2);
  use_.Update({Requests("a", 3)}, policy_, At(11));
  EXPECT_THAT(policy_.FindIdle({}, At(12)), ElementsAre("a"));
  // The requests that have waited for the load are counted already.
  use_.Update({Requests("a", 5)}, policy_, At(13));
  EXPECT_THAT(policy_.FindIdle({}, At(13)), ElementsAre("a"));
  use_.Update({Requests("a", 6)}, policy_, At(14));
  EXPECT_THAT(policy_.FindIdle({}, At(23)), IsEmpty());
  // This one has replaced the version, whose statistics begin at zero.
  Load("a", 0, 15);
  use_.Update({Requests("a", 0)}, policy_, At(24));
  EXPECT_THAT(policy_.FindIdle({}, At(25)), ElementsAre("a"));
  use_.Update({Requests("a", 1)}, policy_, At(26));
  EXPECT_THAT(policy_.FindIdle({}, At(35)), IsEmpty());
}

TEST_F(ModelUseTest, NotesWhatIsInUseAndWhatIsGone) {
  Load("a");
  Load("b");
  EXPECT_THAT(use_.Update({{"a", {.is_busy = true}}}, policy_, At(9)), ElementsAre("a"));
  EXPECT_THAT(policy_.Loaded(), ElementsAre("a"));
  EXPECT_THAT(use_.Update({{"a", {}}}, policy_, At(12)), IsEmpty());
  // A request that was in progress may have begun long ago, so the idle time begins with its end.
  EXPECT_THAT(policy_.FindIdle({}, At(12)), IsEmpty());
  EXPECT_THAT(policy_.FindIdle({}, At(19)), ElementsAre("a"));
}

TEST_F(ModelUseTest, KeepsAnEnsembleAndItsPartsTogether) {
  Load("e");
  Load("p");
  const ModelActivities quiet = {{"e", {.parts = {"p"}}}, {"p", {}}};
  EXPECT_THAT(use_.Update(quiet, policy_, At(1)), IsEmpty());
  EXPECT_TRUE(policy_.IsHeld("p"));
  const ModelActivities busy = {{"e", {.parts = {"p"}}}, {"p", {.is_busy = true}}};
  EXPECT_THAT(use_.Update(busy, policy_, At(1)), ElementsAre("e", "p"));
  // In time both go, first the ensemble.
  EXPECT_THAT(policy_.FindIdle({}, At(11)), ElementsAre("e"));
  policy_.NoteUnloaded("e");
  EXPECT_THAT(policy_.FindIdle({}, At(11)), ElementsAre("p"));
}

TEST_F(ModelUseTest, TakesOverModelsThatAreLoadedAlthoughNobodyHasToldThePolicy) {
  // `e` failed because of another part, and `known` was loaded with it.
  policy_.NoteLoaded("known", {30}, milliseconds(10), At(0));
  policy_.NoteUnloaded("known");
  use_.Update({{"a", {}}, {"b", {}}, {"known", {}}}, policy_, At(1), {60});
  EXPECT_THAT(policy_.Loaded(), ElementsAre("a", "b", "known"));
  EXPECT_EQ(policy_.used(), MemoryBytes{20 + 20 + 30});
  // Once is enough.
  use_.Update({{"a", {}}, {"b", {}}, {"known", {}}}, policy_, At(2), {60});
  EXPECT_EQ(policy_.used(), MemoryBytes{70});
  EXPECT_THAT(policy_.FindIdle({}, At(10)), IsEmpty());
  EXPECT_THAT(policy_.FindIdle({}, At(11)), ElementsAre("a", "b", "known"));
  // What was no measurement is not remembered.
  use_.Update({}, policy_, At(12));
  EXPECT_EQ(policy_.used(), MemoryBytes{0});
  EXPECT_EQ(policy_.KnownBytes("a"), std::nullopt);
  EXPECT_EQ(policy_.KnownBytes("known"), MemoryBytes{30});
}

TEST_F(ModelUseTest, TakesTheUseOfAPartForThatOfTheEnsembleThatItGoesWith) {
  Load("e");
  use_.Update({{"e", {.parts = {"p"}}}, Requests("p", 1)}, policy_, At(1));
  use_.Update({{"e", {.parts = {"p"}}}, Requests("p", 2)}, policy_, At(9));
  EXPECT_THAT(policy_.FindIdle({}, At(12)), IsEmpty());
  const ModelActivities busy = {{"e", {.parts = {"p"}}},
                                {"p", {.requests = {{1, 2}}, .is_busy = true}}};
  use_.Update(busy, policy_, At(18));
  EXPECT_THAT(policy_.FindIdle({}, At(27)), IsEmpty());
  EXPECT_THAT(policy_.FindIdle({}, At(28)), ElementsAre("e"));
  // What was loaded for itself stays by itself.
  Load("p", 0, 28);
  use_.Update({{"e", {.parts = {"p"}}}, Requests("p", 9)}, policy_, At(29));
  EXPECT_THAT(policy_.FindIdle({}, At(30)), ElementsAre("e"));
}

TEST_F(ModelUseTest, CountsAPartThatAnotherEnsembleKeeps) {
  Load("e");
  use_.Update({{"e", {.parts = {"p", "q"}}}, {"p", {}}, {"q", {}}}, policy_, At(1));
  // `f` finds `q` there and brings `r` alone.
  policy_.NoteLoaded("f", {5}, milliseconds(10), At(2));
  const ModelActivity other{.parts = {"q", "r"}};
  use_.Update({{"e", {.parts = {"p", "q"}}}, {"f", other}, {"p", {}}, {"q", {}}, {"r", {}}},
              policy_, At(2));
  EXPECT_EQ(policy_.used(), MemoryBytes{45});
  // `e` and `p` go.
  use_.Update({{"f", other}, {"q", {}}, {"r", {}}}, policy_, At(3));
  EXPECT_THAT(policy_.Loaded(), ElementsAre("f", "q"));
  EXPECT_EQ(policy_.used(), MemoryBytes{45});
  EXPECT_TRUE(policy_.IsHeld("q"));
  use_.Update({}, policy_, At(4));
  EXPECT_EQ(policy_.used(), MemoryBytes{0});
}

TEST_F(ModelUseTest, CountsThePartsThatAnEnsembleLeavesBehind) {
  Load("e");
  use_.Update({{"e", {.parts = {"p", "q"}}}, {"p", {}}, {"q", {}}}, policy_, At(1));
  EXPECT_THAT(policy_.Loaded(), ElementsAre("e"));
  // It is unloaded without its parts.
  policy_.NoteUnloaded("e");
  use_.Update({{"p", {}}, {"q", {}}}, policy_, At(2));
  EXPECT_THAT(policy_.Loaded(), ElementsAre("p", "q"));
  EXPECT_EQ(policy_.used(), MemoryBytes{40});
  EXPECT_THAT(policy_.MakeRoom("", {}, At(2)).victims, IsEmpty());
  policy_.NoteLoaded("new", {70}, milliseconds(10), At(3));
  EXPECT_THAT(policy_.MakeRoom("new", {}, At(3)).victims, ElementsAre("p"));
}

}  // namespace
}  // namespace nereid::engine
