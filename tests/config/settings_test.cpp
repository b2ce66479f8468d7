// Settings: layers of which the later win, and what they look like as YAML.
#include "rapt/config/settings.h"

#include "rapt/base/file.h"
#include "rapt/config/environment.h"
#include "rapt/config/presets.h"
#include "rapt/config/yaml.h"
#include "tests/config/schema.h"

namespace rapt::config {
namespace {

using namespace testing;

TEST(Settings, LaterLayersWin) {
  Settings settings = small_schema().built_in();
  EXPECT_EQ(value_of(settings, "dropout"), "0.1");
  EXPECT_EQ(value_of(settings, "source"), "");
  lay_over(settings, {{"dropout", "0.2", Origin::file, "c.yaml:1"}});
  lay_over(settings, {{"dropout", "0.3", Origin::flag, "--dropout"}});
  EXPECT_EQ(value_of(settings, "dropout"), "0.3");
  EXPECT_EQ(settings.at("dropout").where, "--dropout");
  EXPECT_EQ(settings.at("schedule").origin, Origin::built_in);
}

TEST(Settings, ANameThatNoKeyHasIsToldTheNearest) {
  const Schema schema = small_schema();
  EXPECT_EQ(error_of([&] { schema.check("drop-out", "0.1"); }),
            "unknown key drop-out; did you mean dropout?");
  EXPECT_EQ(error_of([&] { schema.check("two words", "0.1"); }), "unknown key \"two words\"");
  EXPECT_EQ(error_of([&] { schema.check("dropout", ""); }),
            "dropout: expected a number in [0, 1), got nothing");
  EXPECT_EQ(error_of([&] { schema.check("dropout", "7"); }),
            "dropout: expected a number in [0, 1), got \"7\"");
  schema.check("dropout", "0.7");
}

TEST(Settings, AreYamlThatSaysTheSameAgain) {
  const Schema schema = small_schema();
  Settings settings = schema.built_in();
  lay_over(settings, {{"source", "/a folder/\"text\"", Origin::flag, "--source"}});
  const std::string text = to_yaml(schema, settings);
  EXPECT_EQ(text,
            "dropout: 0.1                    # built in\n"
            "schedule: constant              # built in\n"
            "# learning-rate:                # not set. The highest rate\n"
            "source: \"/a folder/\\\"text\\\"\"    # --source\n");
  const TemporaryFolder folder;
  write_file(folder.path() / "c.yaml", text);
  Settings again;
  std::vector<Error> problems;
  lay_over(again, read_yaml(folder.path() / "c.yaml", schema, problems));
  EXPECT_EQ(all_of(problems), "");
  ASSERT_EQ(again.size(), settings.size());
  for (const auto& [name, setting] : settings) EXPECT_EQ(value_of(again, name), setting.value);
}

TEST(Settings, PathsBecomeAbsoluteAndWhatYamlCannotSayIsLeftOut) {
  const Schema schema = small_schema();
  Settings settings;
  lay_over(settings, {{"source", "a", Origin::flag, "--source"}});
  EXPECT_NE(to_yaml(schema, settings).find("source: " + std::filesystem::absolute("a").string()),
            std::string::npos);
  lay_over(settings, {{"source", "/\xff", Origin::flag, "--source"}});
  EXPECT_NE(to_yaml(schema, settings).find("# source:"), std::string::npos);
}

TEST(Environment, VariablesStandForKeys) {
  EXPECT_EQ(variable_of("learning-rate"), "RAPT_LEARNING_RATE");
  std::vector<Error> problems;
  const std::vector<std::string> variables = {"RAPT_DROPOUT=0.4",    "HOME=/",
                                              "RAPT_LEARNING_RATE=", "DROPOUT=7",
                                              "RAPT_OUT=x",          "RAPT_SOURCE=a=b"};
  const auto settings = read_environment(variables, small_schema(), problems);
  EXPECT_EQ(all_of(problems), "");
  ASSERT_EQ(settings.size(), 2u);
  EXPECT_EQ(settings[0].name, "dropout");
  EXPECT_EQ(settings[0].where, "RAPT_DROPOUT");
  EXPECT_EQ(settings[1].value, "a=b");
}

TEST(Environment, OnlyAVariableThatIsOneEditAwayIsTakenForAMisspelling) {
  std::vector<Error> problems;
  const std::vector<std::string> variables = {
      "RAPT_DATA_DIR=/d", "RAPT_SOURCE_DIR=/s", "RAPT_TEST_ISA=avx2", "RAPT_THREADS=2",
      "RAPT_DROPUOT=0.1", "RAPT_SHEDULE=x",     "RAPT_DROPOUT=7"};
  EXPECT_TRUE(read_environment(variables, small_schema(), problems).empty());
  EXPECT_EQ(all_of(problems),
            "RAPT_DROPUOT: unknown variable; did you mean RAPT_DROPOUT?\n"
            "RAPT_SHEDULE: unknown variable; did you mean RAPT_SCHEDULE?\n"
            "RAPT_DROPOUT: expected a number in [0, 1), got \"7\"\n");
  for (const Error& problem : problems) EXPECT_EQ(problem.kind(), ErrorKind::usage);
}

TEST(Presets, ARateBelongsToItsSchedule) {
  const auto rate_with = [](const std::string& schedule) {
    Settings said, brought;
    lay_over(said, {{"preset", "base", Origin::flag, "--preset"}});
    if (!schedule.empty()) lay_over(said, {{"schedule", schedule, Origin::file, "c.yaml:1"}});
    lay_over(brought, preset_settings(said));
    EXPECT_EQ(value_of(brought, "d-model"), "512");
    EXPECT_EQ(brought.at("d-model").where, "preset base");
    return value_of(brought, "learning-rate");
  };
  EXPECT_EQ(rate_with(""), "0.0007");
  EXPECT_EQ(rate_with("inverse_sqrt"), "0.0007");
  EXPECT_EQ(rate_with("noam"), "");
  EXPECT_TRUE(preset_settings({}).empty());
  EXPECT_EQ(preset_names(), (std::vector<std::string>{"base", "big", "small", "tiny"}));
}

}  // namespace
}  // namespace rapt::config
