// Metrics of translations against references: what BLEU and chrF have in common.
//
// A metric counts in each segment (a line), and scores sums of these counts: of one segment, of a
// corpus, of a sample of its segments. All texts are UTF-8; Error (data) on what is not.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rapt::eval {

using Counts = std::vector<int64_t>;

// A field of a signature: sacreBLEU's names and values ("tok", "13a").
struct SignatureField {
  std::string name, value;
};
using Signature = std::vector<SignatureField>;

class Metric {
 public:
  virtual ~Metric() = default;

  virtual std::string name() const = 0;

  // The settings that decide the score, without the number of references and the version.
  virtual Signature settings() const = 0;

  // The counts of one segment; any two calls give equally many. Throws Error without a reference.
  virtual Counts count(std::string_view hypothesis,
                       std::span<const std::string_view> references) const = 0;

  // The score of counts or of their sum, in [0, 100]. Throws Error unless they are as many as
  // count() gives; so does details().
  virtual double score(std::span<const int64_t> counts) const = 0;

  // What stands behind the score, in sacreBLEU's words; empty where there is nothing to say.
  virtual std::string details(std::span<const int64_t> counts) const = 0;

  // The same metric for scores of single segments, where it differs.
  virtual std::unique_ptr<Metric> of_segments() const = 0;
};

// The references of a corpus: each as long as the hypotheses, line by line.
using References = std::span<const std::vector<std::string>>;

// The counts of every segment. Throws Error (data) where there are no segments or no references, or
// where the lengths differ.
std::vector<Counts> count_segments(const Metric& metric, std::span<const std::string> hypotheses,
                                   References references);

// Throws Error where there are no segments, or their counts are not equally many.
Counts sum(std::span<const Counts> segments);

// "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:rapt-0.1.0"; `more` stands after nrefs.
std::string signature(const Metric& metric, size_t references, const Signature& more = {});

// What the signature gives as the version.
std::string version();

}  // namespace rapt::eval
