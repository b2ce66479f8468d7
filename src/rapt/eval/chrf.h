// chrF (Popović 2015, "chrF: character n-gram F-score for automatic MT evaluation") and chrF++
// (Popović 2017, "chrF++: words helping character n-grams"), with sacreBLEU's numbers.
#pragma once

#include "rapt/eval/metric.h"

namespace rapt::eval {

struct ChrfOptions {
  int char_order = 6;  // the longest character n-grams
  int word_order = 0;  // the longest word n-grams; 2 for chrF++
  int beta = 2;        // recall counts beta times as much as precision
  bool lowercase = false;
};

// Counts: n-grams of the hypothesis, of the reference that fits best, and those they share, for
// each order; characters first.
class Chrf : public Metric {
 public:
  // Throws Error (usage) on orders outside [0, 100], on no order at all, and on beta outside [1,
  // 1000].
  explicit Chrf(const ChrfOptions& options = {});

  std::string name() const override;  // chrF2, chrF2++
  Signature settings() const override;
  Counts count(std::string_view hypothesis,
               std::span<const std::string_view> references) const override;
  double score(std::span<const int64_t> counts) const override;
  std::string details(std::span<const int64_t> counts) const override;
  std::unique_ptr<Metric> of_segments() const override;

 private:
  ChrfOptions options_;
};

}  // namespace rapt::eval
