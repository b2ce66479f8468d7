// What the training cases of `rapt bench` are made of. For the sources of this folder.
#pragma once

#include <memory>

#include "rapt/measure/training.h"
#include "rapt/nn/module.h"
#include "rapt/ops/cross_entropy.h"
#include "rapt/optim/optimizer.h"

namespace rapt::measure {

// A model with the one batch that it is trained on.
class TrainingCase {
 public:
  virtual ~TrainingCase() = default;

  virtual const nn::Module& model() const = 0;
  virtual Loss loss(const Pass& pass) const = 0;
  virtual double flops() const = 0;   // of a step: three times forward
  virtual int64_t items() const = 0;  // what is counted a second
  virtual const char* unit() const { return "tokens"; }
  // The rule and its rate; all but the worked example have AdamW.
  virtual std::unique_ptr<optim::Optimizer> optimizer() const;
  virtual double rate() const { return 3e-4; }
};

// The encoder-decoders: toy, small, base. Null for another name.
std::unique_ptr<TrainingCase> make_translation_case(const std::string& name,
                                                    const TrainingOptions& options);
// The stacks: gpt64, gpt512, gpt1024, bert, bertpad, vit. Null for another name.
std::unique_ptr<TrainingCase> make_stack_case(const std::string& name,
                                              const TrainingOptions& options);

// (B, T) ids from 1 to V - 1.
Tensor drawn_ids(const Shape& shape, int64_t V, Rng& rng);

// Floating-point operations forward of one layer of self-attention and feed-forward over `tokens`,
// whose queries see `pairs` keys in all: 2 a multiply-add.
double layer_flops(double tokens, double pairs, int64_t C, int64_t F);

}  // namespace rapt::measure
