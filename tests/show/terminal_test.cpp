#include "rapt/base/utf8.h"
#include "rapt/show/characters.h"
#include "rapt/show/color_map.h"
#include "rapt/show/heat_map.h"
#include "tests/testing/testing.h"

namespace rapt::show {
namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// Without the sequences that set colors.
std::string plain(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b')
      i = text.find('m', i);
    else
      result += text[i];
  }
  return result;
}

const HeatMap kMap{"head 0", {"i", "girl"}, {"我", "女"}, {1, 0, 0.25, 0.75}};

TEST(Terminal, PlainTextShowsNumbersAndAlignsWideCharacters) {
  EXPECT_EQ(to_terminal(std::span(&kMap, 1),
                        {.color = TerminalColor::none,
                         .map = {.title = "cross", .row_axis = "target", .col_axis = "source"}}),
            "cross\n"
            "head 0\n"
            "       我   女 \n"
            "   i  1.00 0.00\n"
            "girl  0.25 0.75\n"
            "\n"
            "0   ░░▒▒▓▓██ 1   ↓ target   → source\n");
}

TEST(Terminal, ColorsAreThoseOfTheValues) {
  const std::string full = to_terminal(std::span(&kMap, 1));
  EXPECT_TRUE(holds(
      full,
      "\x1b[48;2;253;231;37;38;2;0;0;0m 1.00 \x1b[48;2;68;1;84;38;2;255;255;255m 0.00 \x1b[0m\n"));
  const std::string few = to_terminal(std::span(&kMap, 1), {.color = TerminalColor::indexed});
  EXPECT_TRUE(holds(few, "\x1b[48;5;226;38;5;16m 1.00 \x1b[48;5;53;38;5;231m 0.00 \x1b[0m\n"));
  EXPECT_EQ(plain(full), plain(few));
}

TEST(Terminal, NoLineIsWiderThanTheTerminal) {
  for (const size_t count : {1u, 5u, 12u, 50u}) {
    HeatMap map{"", {}, {}, {}};
    for (size_t i = 0; i < count; ++i) {
      map.row_labels.push_back(i % 2 == 0 ? "人工智能" : "international");
      map.col_labels.push_back(i % 3 == 0 ? "人工" : "e\u0301tude");
    }
    map.values.assign(count * count, 0.5f);
    for (const int width : {24, 40, 80, 200}) {
      for (const TerminalColor color : {TerminalColor::none, TerminalColor::full}) {
        size_t cells = 0;
        for (const std::string& line :
             lines_of(plain(to_terminal(std::span(&map, 1), {.color = color, .width = width})))) {
          if (!line.starts_with("0 ")) {
            EXPECT_LE(columns_of(printable(line)), width) << line;
          }
          if (line.starts_with("international ") || holds(line, "人工智能 ")) ++cells;
        }
        EXPECT_GE(cells, count);
      }
    }
  }
}

TEST(Terminal, LabelsStandWhereNumbersDoNotFit) {
  const HeatMap map{"", {"q"}, {"abc", "人工", "e\u0301"}, {0, 0.5, 1}};
  EXPECT_EQ(to_terminal(std::span(&map, 1), {.color = TerminalColor::none, .width = 10}),
            "  a     \n"
            "  b 人  \n"
            "  c 工e\u0301 \n"
            "q   ▒▒██\n"
            "\n"
            "0   ░░▒▒▓▓██ 1\n");
}

TEST(Terminal, LabelsCannotCommandTheTerminal) {
  const HeatMap map{"\x1b]0;x\x07", {"\x1b[2J"}, {"\u009b2J"}, {0}};
  const std::string text = to_terminal(std::span(&map, 1), {.color = TerminalColor::none});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find("\u009b"), std::string::npos);
  EXPECT_TRUE(holds(text, "\u241B[2J"));
}

TEST(Characters, WidthsAreThoseOfTerminals) {
  EXPECT_EQ(columns_of(U"abc"), 3);
  EXPECT_EQ(columns_of(U"我有"), 4);
  EXPECT_EQ(columns_of(U"e\u0301"), 1);
  EXPECT_EQ(columns_of(U"\U0001F600"), 2);
  EXPECT_EQ(columns_of(U"。！カ한"), 8);
  EXPECT_EQ(columns_of(U"äßж…"), 4);
}

TEST(Characters, TextSurvivesDecoding) {
  const std::string text = "aä我\U0001F600z";
  EXPECT_EQ(printable(text), U"aä我\U0001F600z");
  EXPECT_EQ(encode_utf8(printable(text)), text);
  EXPECT_EQ(printable("a\xE9z\xE2\x82"), U"a\uFFFDz\uFFFD");
}

TEST(Characters, LongTextIsCut) {
  EXPECT_EQ(shortened(U"abcd", 4), U"abcd");
  EXPECT_EQ(shortened(U"abcde", 4), U"abc…");
  EXPECT_EQ(shortened(U"我有零", 5), U"我有…");
  EXPECT_EQ(shortened(U"我有零", 4), U"我…");
  EXPECT_EQ(shortened(U"ab", 0), U"");
}

TEST(Viridis, EndsAndMiddleAreThePublishedColors) {
  EXPECT_EQ(viridis(0), (Color{68, 1, 84}));
  EXPECT_EQ(viridis(1), (Color{253, 231, 37}));
  EXPECT_EQ(viridis(-3), viridis(0));
  EXPECT_EQ(viridis(7), viridis(1));
  const Color middle = viridis(0.5);  // the published table has (33, 145, 140) there
  EXPECT_NEAR(middle.red, 33, 3);
  EXPECT_NEAR(middle.green, 145, 3);
  EXPECT_NEAR(middle.blue, 140, 3);
}

TEST(Viridis, NumbersOnItAreReadable) {
  EXPECT_EQ(readable_on(viridis(0)), (Color{255, 255, 255}));
  EXPECT_EQ(readable_on(viridis(1)), (Color{0, 0, 0}));
}

}  // namespace
}  // namespace rapt::show
