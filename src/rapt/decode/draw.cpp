#include "rapt/decode/draw.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "rapt/base/check.h"

namespace rapt::decode {
namespace {

struct Token {
  int32_t id;
  double logit;
  double weight;  // in proportion to its probability; that of the best is 1
};

bool better(const Token& a, const Token& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

void penalise(std::vector<double>& logits, const std::vector<int32_t>& used, double penalty) {
  for (const int32_t id : std::set<int32_t>(used.begin(), used.end())) {
    double& logit = logits[static_cast<size_t>(id)];
    logit = logit > 0 ? logit / penalty : logit * penalty;
  }
}

std::vector<Token> possible_tokens(const std::vector<double>& logits, int64_t step) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<Token> tokens;
  tokens.reserve(logits.size());
  for (size_t v = 0; v < logits.size(); ++v) {
    if (!(logits[v] < kInfinity)) {
      fail(ErrorKind::data, "sampling: a logit of step {} is {}; the model's weights are bad", step,
           logits[v]);
    }
    if (logits[v] > -kInfinity) tokens.push_back({static_cast<int32_t>(v), logits[v], 0});
  }
  if (tokens.empty()) {
    fail(ErrorKind::data, "sampling: the best logit of step {} is {}; the model's weights are bad",
         step, -kInfinity);
  }
  return tokens;
}

// The k best, the best first.
void keep_best(std::vector<Token>& tokens, int64_t k) {
  if (k == 0 || std::cmp_greater_equal(k, tokens.size())) return;
  std::partial_sort(tokens.begin(), tokens.begin() + k, tokens.end(), better);
  tokens.resize(static_cast<size_t>(k));
}

double sum_of_weights(const std::vector<Token>& tokens) {
  double sum = 0;
  for (const Token& token : tokens) sum += token.weight;
  return sum;
}

// The fewest of the best that have a share `p` of the weights, the best first, and one at least.
void keep_share(std::vector<Token>& tokens, double p) {
  if (p == 1) return;
  const double wanted = p * sum_of_weights(tokens);
  const auto worse = [](const Token& a, const Token& b) { return better(b, a); };
  std::make_heap(tokens.begin(), tokens.end(), worse);
  std::vector<Token> kept;
  double sum = 0;
  do {
    std::pop_heap(tokens.begin(), tokens.end(), worse);
    kept.push_back(tokens.back());
    tokens.pop_back();
    sum += kept.back().weight;
  } while (sum < wanted && !tokens.empty());
  tokens = std::move(kept);
}

}  // namespace

int32_t draw_token(std::vector<double> logits, const std::vector<int32_t>& used,
                   const SampleOptions& options, double uniform, int64_t step) {
  penalise(logits, used, options.repetition_penalty);
  std::vector<Token> tokens = possible_tokens(logits, step);
  const Token best = *std::min_element(tokens.begin(), tokens.end(), better);
  if (options.temperature == 0) return best.id;
  for (Token& token : tokens)
    token.weight = std::exp((token.logit - best.logit) / options.temperature);
  keep_best(tokens, options.top_k);
  keep_share(tokens, options.top_p);
  double left = uniform * sum_of_weights(tokens);
  for (const Token& token : tokens) {
    left -= token.weight;
    if (left < 0) return token.id;
  }
  return best.id;  // what rounding left over
}

}  // namespace rapt::decode
