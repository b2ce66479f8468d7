// Configuration files: what they say, and that nothing in them is trusted.
#include "rapt/config/yaml.h"

#include "rapt/base/file.h"
#include "tests/config/schema.h"

namespace rapt::config {
namespace {

using namespace testing;

struct Read {
  std::vector<Setting> settings;
  std::string problems;
};

class Yaml : public ::testing::Test {
 protected:
  std::filesystem::path path() const { return folder_.path() / "c.yaml"; }

  Read read(const std::string& text) {
    write_file(path(), text);
    std::vector<Error> problems;
    std::vector<Setting> settings = read_yaml(path(), small_schema(), problems);
    for (const Error& problem : problems) EXPECT_EQ(problem.kind(), ErrorKind::config);
    return {std::move(settings), all_of(problems)};
  }

  // The line and the message of what is refused as a whole.
  std::string refusal(const std::string& text) {
    write_file(path(), text);
    std::vector<Error> problems;
    try {
      read_yaml(path(), small_schema(), problems);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::config);
      const std::string message = error.what(), file = path().string() + ":";
      EXPECT_TRUE(message.starts_with(file)) << message;
      return message.substr(std::min(file.size(), message.size()));
    }
    ADD_FAILURE() << "expected an Error for " << text;
    return "";
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(Yaml, KeysAndValuesComeWithTheirLines) {
  const Read got = read("# a comment\ndropout: 0.3  # another\n\n\"schedule\": 'inverse_sqrt'\r\n");
  EXPECT_EQ(got.problems, "");
  ASSERT_EQ(got.settings.size(), 2u);
  EXPECT_EQ(got.settings[0].name, "dropout");
  EXPECT_EQ(got.settings[0].value, "0.3");
  EXPECT_EQ(got.settings[0].where, path().string() + ":2");
  EXPECT_EQ(got.settings[0].origin, Origin::file);
  EXPECT_EQ(got.settings[1].value, "inverse_sqrt");
  EXPECT_EQ(got.settings[1].where, path().string() + ":4");
}

TEST_F(Yaml, AFlowMappingAndAnEmptyFileAreFiles) {
  EXPECT_EQ(read("{dropout: 0.3, schedule: cosine}\n").settings.size(), 2u);
  EXPECT_TRUE(read("").settings.empty());
  EXPECT_TRUE(read("# nothing yet").settings.empty());
  EXPECT_EQ(read("schedule: |\n  cosine\n").settings.at(0).value, "cosine\n");
  EXPECT_EQ(read("\xEF\xBB\xBF"
                 "dropout: 0.3\n")
                .settings.size(),
            1u);
}

TEST_F(Yaml, RelativePathsGoByTheFoldersFile) {
  EXPECT_EQ(read("source: text/a.de\n").settings.at(0).value, path().parent_path() / "text/a.de");
  EXPECT_EQ(read("source: ../a.de\n").settings.at(0).value,
            path().parent_path().parent_path() / "a.de");
  EXPECT_EQ(read("source: /data/a.de\n").settings.at(0).value, "/data/a.de");
}

TEST_F(Yaml, EveryProblemIsNamedWithItsLine) {
  const std::string file = path().string();
  const Read got = read(
      "dropuot: 0.3\ndropout: high\nschedule: [1, {a: b}]\nlearning-rate:\nsource: {a: [b]}\n"
      "out: x\nvolume: 11\ndropout: 0.2\n");
  EXPECT_EQ(got.problems,
            file + ":1: unknown key dropuot; did you mean dropout?\n" +  //
                file + ":2: dropout: expected a number in [0, 1), got \"high\"\n" + file +
                ":3: schedule: expected text, got a list\n" + file +
                ":4: learning-rate: expected a number above 0, got nothing\n" + file +
                ":5: source: expected a file, got a mapping\n" + file +
                ":6: out: concerns one call, so it is a flag alone: --out\n" + file +
                ":7: unknown key volume\n" + file + ":8: dropout: said twice, first in line 2\n");
  EXPECT_TRUE(got.settings.empty());
}

TEST_F(Yaml, WhatIsNoMappingIsRefused) {
  EXPECT_EQ(refusal("- dropout\n"),
            "1: expected a configuration, lines of \"key: value\", got a list");
  EXPECT_EQ(refusal("\njust words\n"),
            "2: expected a configuration, lines of \"key: value\", got text");
  EXPECT_EQ(refusal("---\n~\n"),
            "2: expected a configuration, lines of \"key: value\", got nothing");
  EXPECT_EQ(refusal("dropout: 0.1\n? [a]\n: 1\n"), "2: expected a key, got a list");
  EXPECT_EQ(refusal("dropout: 0.1\n---\nschedule: x\n"), "2: expected one document, got another");
  for (const std::string text : {"dropout: 'open\n", "dropout: \"open", "dropout: 'a\nsource: b"})
    EXPECT_EQ(refusal(text), "1: a quote that is never closed");
  EXPECT_TRUE(refusal("a:\n\tb: 1\n").starts_with("2: this is no YAML: "));
}

TEST_F(Yaml, AnchorsAliasesAndTagsAreRefused) {
  const std::string anchors = "anchors and aliases (& and *) are not taken; say the value itself";
  EXPECT_EQ(refusal("dropout: &a 0.1\n"), "1: " + anchors);
  EXPECT_EQ(refusal("source: {a: &a [x]}\n"), "1: " + anchors);
  EXPECT_TRUE(refusal("dropout: 0.1\nschedule: *b\n").starts_with("2: "));
  const std::string tags = "tags (such as !!str) are not taken";
  EXPECT_EQ(refusal("dropout: !!float 0.1\n"), "1: " + tags);
  EXPECT_EQ(refusal("!!map {dropout: 0.1}\n"), "1: " + tags);
  EXPECT_EQ(refusal("a: !!python/object/apply:os.system [x]\n"), "1: " + tags);
}

TEST_F(Yaml, CharactersThatAreNoTextAreRefusedWithTheirLine) {
  EXPECT_EQ(refusal("a: 1\nb: \xff\n"), "2: not valid UTF-8");
  EXPECT_EQ(refusal(std::string("a: 1\n\nb: \0\n", 11)), "3: character 0x00 is no text");
  EXPECT_EQ(refusal("a: \x1b[31m\n"), "1: character 0x1b is no text");
  EXPECT_EQ(refusal("\xff\xfe"
                    "a"),
            "1: not valid UTF-8");  // UTF-16
}

TEST_F(Yaml, DepthAndSizeAreBounded) {
  std::string brackets = "dropout: ";
  for (int i = 0; i < 100'000; ++i) brackets += "[";
  EXPECT_EQ(refusal(brackets), "1: nested too deep");
  std::string levels;
  for (int i = 0; i < 200; ++i) levels += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  EXPECT_EQ(refusal(levels), "65: nested too deep");
  write_file(path(), std::string(kMostYamlBytes + 1, '#'));
  std::vector<Error> problems;
  EXPECT_NE(error_of([&] { read_yaml(path(), small_schema(), problems); }).find("262144"),
            std::string::npos);
}

TEST_F(Yaml, ScalarsMeanTheSameWhenTheyAreReadAgain) {
  for (const std::string text :
       {"0.1",          "a/b-c.txt", "null",  "~",           "true",    "a: b",     "# no comment",
        "two words",    " x ",       "\"q\"", "back\\slash", "a\nb\tc", "\x01\x7f", "- x",
        "-5",           "*a",        "&a",    "!t",          "%",       "{",        "M\u00fcller",
        "\u4f60\u597d", "1,2",       "'",     "|",           ">",       "@",        "`",
        "---",          "..."}) {
    const Read got = read("schedule: " + yaml_scalar(text) + "  # comment\n");
    EXPECT_EQ(got.problems, "") << text;
    ASSERT_EQ(got.settings.size(), 1u) << text;
    EXPECT_EQ(got.settings[0].value, text);
  }
  EXPECT_EQ(yaml_scalar("0.1"), "0.1");
  EXPECT_EQ(yaml_scalar("1,2"), "\"1,2\"");
}

}  // namespace
}  // namespace rapt::config
