#include "rapt/models/json.h"

#include <fstream>

#include "tests/testing/testing.h"

namespace rapt::models {
namespace {

using testing::error_of;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

JsonObject parse(const std::string& text) { return JsonObject::parse(text, "config.json"); }

std::string nested(int depth) {
  return "{\"a\":" + std::string(static_cast<size_t>(depth - 1), '[') +
         std::string(static_cast<size_t>(depth - 1), ']') + "}";
}

TEST(Json, GettersGiveWhatStandsThere) {
  const JsonObject object = parse(
      R"({"n":3,"x":0.5,"i":2,"b":true,"t":"\u6211","none":null,"o":{"k":-1},"list":[1,2],"names":["a","b"]})");
  EXPECT_EQ(object.integer("n", 1, 10), 3);
  EXPECT_EQ(object.integer_or("m", 8, 1, 10), 8);
  EXPECT_EQ(object.integer_or("none", 8, 1, 10), 8);
  EXPECT_EQ(object.number("x", 0, 1), 0.5);
  EXPECT_EQ(object.number("i", 0, 10), 2);
  EXPECT_TRUE(object.boolean("b"));
  EXPECT_TRUE(object.boolean_or("c", true));
  EXPECT_EQ(object.text("t"), "\u6211");
  EXPECT_EQ(object.choice("t", {"x", "\u6211"}), "\u6211");
  EXPECT_EQ(object.choice_or("u", "x", {"x"}), "x");
  EXPECT_EQ(object.object("o").integer("k", -1, 1), -1);
  EXPECT_EQ(object.integers("list", 0, 2), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(object.texts("names"), (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(object.has("none"));
  EXPECT_EQ(object.keys().size(), 9u);
}

TEST(Json, R52_IntegersAreTypedAndRangeChecked) {
  for (const std::string value :
       {"0", "-1", "1000000000", "2147483648", "1.5", "2.0", "\"12\"", "null", "true", "[]", "{}",
        "9223372036854775808", "18446744073709551615", "1e3"}) {
    const JsonObject object = parse("{\"num_layers\":" + value + "}");
    const std::string message = error_of([&] { object.integer("num_layers", 1, 1024); });
    EXPECT_TRUE(holds(message, "config.json: num_layers: expected an integer from 1 to 1024, got "))
        << message;
  }
  EXPECT_TRUE(holds(error_of([] { parse("{}").integer("n", 1, 2); }), "got nothing"));
  EXPECT_TRUE(holds(error_of([] { parse(R"({"o":{"n":7}})").object("o").integer("n", 1, 2); }),
                    "config.json: o: n: expected an integer from 1 to 2, got 7"));
  EXPECT_TRUE(holds(error_of([] { parse(R"({"l":[1,"2"]})").integers("l", 1, 2); }),
                    "l[1]: expected an integer from 1 to 2, got \"2\""));
}

TEST(Json, OtherGettersAreTypedToo) {
  EXPECT_TRUE(holds(error_of([] { parse(R"({"p":2})").number("p", 0, 1); }),
                    "p: expected a number from 0 to 1, got 2"));
  error_of([] { parse(R"({"p":"0"})").number("p", 0, 1); });
  error_of([] { parse(R"({"b":1})").boolean("b"); });
  error_of([] { parse(R"({"t":1})").text("t"); });
  error_of([] { parse(R"({"o":[]})").object("o"); });
  error_of([] { parse(R"({"l":{}})").integers("l", 0, 1); });
  error_of([] { parse(R"({"l":["a",1]})").texts("l"); });
  EXPECT_TRUE(holds(error_of([] {
                      parse(R"({"a":"silu"})").choice("a", {"relu", "gelu"});
                    }),
                    "a: expected one of relu, gelu, got \"silu\""));
  error_of([] { parse(R"({"p":1e309})"); });
}

TEST(Json, R63_NestingIsLimited) {
  parse(nested(64));
  for (const int depth : {65, 3000, 100000}) {
    const std::string message = error_of([&] { parse(nested(depth)); });
    EXPECT_TRUE(holds(message, "nested more than 64 deep")) << message;
  }
}

TEST(Json, TextsOutOfBoundsAreRefused) {
  EXPECT_TRUE(holds(error_of([] { parse("{\"a\":\"" + std::string(5 << 20, 'x') + "\"}"); }),
                    "longer than"));
  std::string many = "{\"a\":[0";
  for (int i = 0; i < 1'000'001; ++i) many += ",0";
  EXPECT_TRUE(holds(error_of([&] { parse(many + "]}"); }), "more than 1000000 values"));
  EXPECT_TRUE(
      holds(error_of([] { parse("{\"a\":" + std::string(1000, '1') + "}"); }), "has no end"));
}

TEST(Json, WhatIsNotAnObjectIsRefused) {
  for (const std::string text :
       {"", "[]", "1", "{", "{\"a\"}", "{\"a\":1,}", "{} x", "{\"a", "{\"\xff\":1}", "{'a':1}"}) {
    EXPECT_TRUE(holds(error_of([&] { parse(text); }), "config.json: ")) << text;
  }
  EXPECT_TRUE(
      holds(error_of([] { parse(R"({"a":{"b":1,"b":2}})"); }), "the key \"b\" stands twice"));
  parse(R"({"a":{"b":1},"c":{"b":2},"b":3})");
}

TEST(Json, FilesAreReadUpToTheLimit) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "config.json";
  std::ofstream(path) << R"({"a":1})";
  EXPECT_EQ(JsonObject::read(path).integer("a", 0, 1), 1);
  Limits limits;
  limits.json_bytes = 6;
  error_of([&] { JsonObject::read(path, limits); });
  try {
    JsonObject::read(folder.path() / "none.json");
    FAIL() << "a missing file was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::model);
  }
}

TEST(Json, UnknownKeysNameTheNearest) {
  const JsonObject object = parse(R"({"d_modle":512})");
  EXPECT_TRUE(holds(error_of([&] {
                      object.allow_only({"d_model", "nhead"});
                    }),
                    "unknown key \"d_modle\"; did you mean d_model?"));
  EXPECT_TRUE(holds(error_of([&] {
                      object.allow_only({"nhead", "dropout"});
                    }),
                    "known are nhead, dropout"));
  object.allow_only({"d_modle"});
}

}  // namespace
}  // namespace rapt::models
