// A token drawn from a row of logits. For sources only.
#pragma once

#include <cstdint>
#include <vector>

#include "rapt/decode/sample.h"

namespace rapt::decode {

// logits: of all tokens; used: the tokens so far; uniform: in [0, 1). Draws by the inverse of the
// distribution function, over the tokens by id, or from the best down where top_k or top_p asks for
// their order. Throws Error (data) where a logit is not a number or infinite or none is finite,
// naming `step`; minus infinity is a token that cannot be.
int32_t draw_token(std::vector<double> logits, const std::vector<int32_t>& used,
                   const SampleOptions& options, double uniform, int64_t step);

}  // namespace rapt::decode
