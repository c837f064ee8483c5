// SPDX-License-Identifier: Apache-2.0
#include "cli/completion.h"

#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/testing/file_test.h"

namespace nereid::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

class CompletionTest : public FileTest {
 protected:
  CompletionTest() {
    auto load = std::make_unique<Command>("load", "Loads a model's files: [all]");
    load->Positional("MODEL", text_, "A model.").Names(Hint::kModel);
    load->Option("--file,-f", "FILE", text_, "It's a file [or \\ two]: a path. More.")
        .Names(Hint::kFile);
    load->Option("--folder", "FOLDER", text_, "A folder.").Names(Hint::kFolder);
    load->Option("--format", "FORMAT", text_, "A format.").OneOf({"json", "table"});
    load->Option("--watch,-w", "TIME", text_, "Again and again.").Bare("2s");
    load->Option("--header", "TEXT", list_, "A header.");
    load->Flag("--all,-a", flag_, "All of them.");
    input_.commands.push_back(std::move(load));
    auto show = std::make_unique<Command>("show", "Shows");
    show->Positional("SHELL", text_, "A shell.").OneOf({"bash", "zsh"});
    show->Positional("REST", list_, "More.");
    input_.commands.push_back(std::move(show));
    input_.flags = {{.name = "model-repository", .value = "FOLDER", .help = "Where. It is."},
                    {.name = "strict", .value = "", .help = "Isn't [lax]"}};
  }

  // What bash offers for the last of the words, which bash has split before.
  std::vector<std::string> Bash(const std::vector<std::string>& words) {
    Write("bin/nereid",
          "#!/bin/sh\necho \"$*\" | grep -q '^models --names' && printf '%s\\n' resnet bert "
          "'$(touch ran)' 'b c' --dash\n");
    std::filesystem::permissions(Path("bin/nereid"), std::filesystem::perms::owner_all);
    Write("digits.onnx");
    Write("models/");
    Write("run.sh",
          fmt::format("cd '{}'; PATH=$PWD/bin:$PATH\n{}\nCOMP_WORDS=({})\nCOMP_CWORD={}\n"
                      "compopt() {{ :; }}\n_nereid\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
                      Path(""), BashCompletion(input_), fmt::join(words, " "), words.size() - 1));
    std::FILE* const bash = ::popen(fmt::format("bash '{}'", Path("run.sh")).c_str(), "r");
    std::vector<std::string> offered;
    char line[256];
    while (std::fgets(line, sizeof line, bash) != nullptr) {
      offered.emplace_back(line);
      offered.back().pop_back();
    }
    EXPECT_EQ(::pclose(bash), 0);
    if (offered == std::vector<std::string>{""}) offered.clear();
    return offered;
  }

  CompletionInput input_;
  std::string text_;
  std::vector<std::string> list_;
  bool flag_ = false;
};

TEST_F(CompletionTest, BashOffersCommandsFlagsAndOptions) {
  EXPECT_THAT(Bash({"nereid", "''"}), ElementsAre("load", "show"));
  EXPECT_THAT(Bash({"nereid", "l"}), ElementsAre("load"));
  EXPECT_THAT(Bash({"nereid", "--s"}), ElementsAre("--strict"));
  EXPECT_THAT(Bash({"nereid", "--strict", "--m"}), ElementsAre("--model-repository"));
  EXPECT_THAT(Bash({"nereid", "load", "--f"}), ElementsAre("--file", "--folder", "--format"));
  EXPECT_THAT(Bash({"nereid", "show", "-"}), ElementsAre("--help"));
  EXPECT_THAT(Bash({"nereid", "unknown", "''"}), IsEmpty());
}

TEST_F(CompletionTest, BashOffersValuesByWhatTheyName) {
  EXPECT_THAT(Bash({"nereid", "load", "''"}),
              ElementsAre("resnet", "bert", R"(\$\(touch\ ran\))", R"(b\ c)"));
  EXPECT_THAT(Bash({"nereid", "load", "--format", "''"}), ElementsAre("json", "table"));
  EXPECT_THAT(Bash({"nereid", "load", "--format", "'='", "t"}), ElementsAre("table"));
  EXPECT_THAT(Bash({"nereid", "load", "--format", "'='"}), ElementsAre("json", "table"));
  EXPECT_THAT(Bash({"nereid", "load", "-f", "d"}), ElementsAre("digits.onnx"));
  EXPECT_THAT(Bash({"nereid", "load", "--folder", "''"}), UnorderedElementsAre("bin", "models"));
  EXPECT_THAT(Bash({"nereid", "load", "--header", "''"}), IsEmpty());
  EXPECT_THAT(Bash({"nereid", "show", "z"}), ElementsAre("zsh"));
}

TEST_F(CompletionTest, BashTakesNamesOfModelsForWordsAndNeverForCode) {
  EXPECT_THAT(Bash({"nereid", "load", R"('\$\(')"}), ElementsAre(R"(\$\(touch\ ran\))"));
  EXPECT_THAT(Bash({"nereid", "load", "'$('"}), ElementsAre(R"(\$\(touch\ ran\))"));
  // Within a quote that is open, what is inserted has to mean itself.
  EXPECT_THAT(Bash({"nereid", "load", R"('"b ')"}), ElementsAre("b c"));
  EXPECT_THAT(Bash({"nereid", "load", R"('"$')"}), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(Path("ran")));
}

TEST_F(CompletionTest, BashTakesAnythingBehindAnOptionThatMayGoWithoutAValue) {
  EXPECT_THAT(Bash({"nereid", "load", "--watch", "r"}), ElementsAre("resnet"));
  EXPECT_THAT(Bash({"nereid", "load", "--all", "r"}), ElementsAre("resnet"));
}

TEST_F(CompletionTest, FishHasALineForEachCommandOptionAndFlag) {
  const std::string script = FishCompletion(input_);
  for (const char* line : {
           "complete -c nereid -n __nereid_is_new -a load -d 'Loads a model\\'s files: [all]'\n",
           ("complete -c nereid -n '__nereid_is load' -xa "
            "'(nereid models --names --timeout 1s 2>/dev/null | string match -v -- \\'-*\\')'\n"),
           " -l file -s f -rF -d 'It\\'s a file [or \\\\ two]: a path'\n",
           " -l folder -xa '(__fish_complete_directories)' -d 'A folder'\n",
           " -l format -xa 'json table' -d 'A format'\n",
           " -l watch -s w -d 'Again and again'\n",
           " -l header -x -d 'A header'\n",
           " -l all -s a -d 'All of them'\n",
           "complete -c nereid -n '__nereid_is show' -xa 'bash zsh'\n",
           "complete -c nereid -n __nereid_takes_flags -l model-repository -r -d 'Where'\n",
           "complete -c nereid -n __nereid_takes_flags -l strict -d 'Isn\\'t [lax]'\n",
       }) {
    EXPECT_THAT(script, HasSubstr(line));
  }
}

TEST_F(CompletionTest, ZshHasASpecificationForEachName) {
  const std::string script = ZshCompletion(input_);
  EXPECT_THAT(script, testing::StartsWith("#compdef nereid\n"));
  for (const char* part : {
           "'load:Loads a model'\\''s files\\: \\[all\\]'\n",
           "'1:MODEL:_nereid_models'",
           "'(--file -f)--file=[It'\\''s a file \\[or \\\\ two\\]\\: a path]:FILE:_files'",
           "'(--file -f)-f+[It'\\''s",
           "'(--folder)--folder=[A folder]:FOLDER:_files -/'",
           "'(--format)--format=[A format]:FORMAT:(json table)'",
           "'(--watch -w)--watch=[Again and again]::TIME:'",
           "'*--header=[A header]:TEXT:'",
           "'(--all -a)-a[All of them]'",
           "'1:SHELL:(bash zsh)'",
           "'*:REST:'",
           "'*--model-repository=[Where]:FOLDER:'\n",
           "'*--strict[Isn'\\''t \\[lax\\]]'\n",
       }) {
    EXPECT_THAT(script, HasSubstr(part));
  }
}

TEST_F(CompletionTest, NoMarkOfTheTemplateIsLeft) {
  for (const std::string& script :
       {BashCompletion(input_), ZshCompletion(input_), FishCompletion(input_)}) {
    EXPECT_THAT(script, Not(testing::ContainsRegex("@[A-Z]+@")));
    EXPECT_THAT(script, HasSubstr(kListModels));
  }
}

TEST(FirstSentence, EndsBeforeTheFirstFullStop) {
  EXPECT_EQ(FirstSentence("A file. Or two."), "A file");
  EXPECT_EQ(FirstSentence("At 0.5 of it."), "At 0.5 of it");
  EXPECT_EQ(FirstSentence("No stop"), "No stop");
  EXPECT_EQ(FirstSentence(""), "");
}

}  // namespace
}  // namespace nereid::cli
