// BLEU and chrF against what sacreBLEU says (golden.json, made by golden.py).
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "rapt/eval/bleu.h"
#include "rapt/eval/chrf.h"
#include "tests/testing/testing.h"

namespace rapt::eval {
namespace {

using nlohmann::json;

json golden() {
  std::ifstream file(std::string(RAPT_SOURCE_DIR) + "/tests/eval/golden.json");
  return json::parse(file);
}

std::unique_ptr<Metric> make_metric(const json& c) {
  const json& options = c.at("options");
  if (c.at("metric") == "CHRF") {
    return std::make_unique<Chrf>(ChrfOptions{.char_order = options.value("char_order", 6),
                                              .word_order = options.value("word_order", 0),
                                              .beta = options.value("beta", 2),
                                              .lowercase = options.value("lowercase", false)});
  }
  BleuOptions bleu{.tokenizer = parse_tokenizer(options.value("tokenize", "13a")),
                   .lowercase = options.value("lowercase", false),
                   .smoothing = parse_smoothing(options.value("smooth_method", "exp")),
                   .smoothing_value = {},
                   .effective_order = options.value("effective_order", false)};
  if (options.contains("smooth_value"))
    bleu.smoothing_value = options.at("smooth_value").get<double>();
  return std::make_unique<Bleu>(bleu);
}

TEST(Golden, ScoresAndSignaturesAreSacreBleus) {
  const json file = golden();
  ASSERT_GE(file.at("cases").size(), 300u);
  for (const json& c : file.at("cases")) {
    SCOPED_TRACE(c.at("text").get<std::string>() + " " + c.at("options").dump());
    const json& text = file.at("texts").at(c.at("text").get<std::string>());
    const auto hypotheses = text.at("hypotheses").get<std::vector<std::string>>();
    const auto references = text.at("references").get<std::vector<std::vector<std::string>>>();
    const auto metric = make_metric(c);
    const std::vector<Counts> segments = count_segments(*metric, hypotheses, references);
    const Counts total = sum(segments);
    EXPECT_NEAR(metric->score(total), c.at("score").get<double>(), 1e-6);
    EXPECT_EQ(metric->name(), c.at("name"));
    EXPECT_EQ(signature(*metric, references.size()),
              c.at("signature").get<std::string>() + "|version:" + version());
    if (c.contains("verbose")) {
      EXPECT_EQ(metric->details(total), c.at("verbose"));
    }

    const auto each = metric->of_segments();
    for (size_t i = 0; i < hypotheses.size(); ++i) {
      std::vector<std::string_view> of_line;
      for (const auto& reference : references) of_line.emplace_back(reference[i]);
      EXPECT_NEAR(each->score(each->count(hypotheses[i], of_line)),
                  c.at("segments").at(i).get<double>(), 1e-6);
    }
  }
}

}  // namespace
}  // namespace rapt::eval
