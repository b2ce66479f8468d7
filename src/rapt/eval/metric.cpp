#include "rapt/eval/metric.h"

#include "rapt/base/check.h"

namespace rapt::eval {

std::vector<Counts> count_segments(const Metric& metric, std::span<const std::string> hypotheses,
                                   References references) {
  if (references.empty())
    fail(ErrorKind::data, "evaluate: expected at least one reference, got none");
  if (hypotheses.empty()) fail(ErrorKind::data, "evaluate: expected at least one line, got none");
  for (size_t r = 0; r < references.size(); ++r) {
    if (references[r].size() != hypotheses.size()) {
      fail(ErrorKind::data,
           "evaluate: expected as many lines in reference {} as in the translations, got {} and {}",
           r + 1, references[r].size(), hypotheses.size());
    }
  }
  std::vector<Counts> segments;
  segments.reserve(hypotheses.size());
  std::vector<std::string_view> of_line(references.size());
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    for (size_t r = 0; r < references.size(); ++r) of_line[r] = references[r][i];
    segments.push_back(metric.count(hypotheses[i], of_line));
  }
  return segments;
}

Counts sum(std::span<const Counts> segments) {
  RAPT_CHECK(!segments.empty(), "evaluate: expected the counts of at least one segment, got none");
  Counts total(segments[0].size(), 0);
  for (const Counts& segment : segments) {
    RAPT_CHECK(segment.size() == total.size(),
               "evaluate: expected equally many counts of each segment, got {} and {}",
               total.size(), segment.size());
    for (size_t i = 0; i < total.size(); ++i) total[i] += segment[i];
  }
  return total;
}

std::string version() { return std::string("rapt-") + RAPT_VERSION; }

std::string signature(const Metric& metric, size_t references, const Signature& more) {
  std::string text = fmt::format("nrefs:{}", references);
  for (const SignatureField& field : more) text += fmt::format("|{}:{}", field.name, field.value);
  for (const SignatureField& field : metric.settings())
    text += fmt::format("|{}:{}", field.name, field.value);
  return text + "|version:" + version();
}

}  // namespace rapt::eval
