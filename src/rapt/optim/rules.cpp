// The rules of the optimizers, on the kernels.
#include <cmath>

#include "rapt/base/check.h"
#include "rapt/kernels/optimizer.h"
#include "rapt/optim/optimizer.h"

namespace rapt::optim {
namespace {

// Calls f with the element type's value, gradient and kept tensors of a piece.
template <class Piece, class F>
void with_type(const Piece& piece, const F& f) {
  const auto call = [&](auto tag) {
    using T = decltype(tag);
    f(static_cast<T*>(piece.value), static_cast<const T*>(piece.gradient),
      static_cast<T*>(piece.kept[0]), static_cast<T*>(piece.kept[1]));
  };
  piece.dtype == DType::f32 ? call(float{}) : call(double{});
}

class Sgd : public Optimizer {
 public:
  Sgd(std::vector<NamedParameter> parameters, const SgdOptions& options)
      : Optimizer(std::move(parameters), options.common,
                  options.momentum == 0 ? std::vector<std::string>{}
                                        : std::vector<std::string>{"momentum"},
                  false),
        options_(options) {
    RAPT_CHECK(std::isfinite(options.momentum) && options.momentum >= 0,
               "sgd: expected a momentum of at least 0, got {}", options.momentum);
    RAPT_CHECK(std::isfinite(options.dampening), "sgd: expected a finite dampening, got {}",
               options.dampening);
    RAPT_CHECK(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
               "sgd: nesterov needs a momentum above 0 and no dampening, got {} and {}",
               options.momentum, options.dampening);
  }

 private:
  void update(const Piece& piece) const override {
    const kernels::SgdStep step{.rate = piece.rate,
                                .momentum = options_.momentum,
                                .dampening = options_.dampening,
                                .weight_decay = piece.weight_decay,
                                .grad_scale = piece.gradient_scale,
                                .nesterov = options_.nesterov,
                                .first = piece.step == 1};
    with_type(piece, [&](auto* p, const auto* g, auto* m, auto*) {
      kernels::sgd(step, p, g, m, piece.twin, piece.count);
    });
  }

  SgdOptions options_;
};

class Adam : public Optimizer {
 public:
  Adam(const char* who, std::vector<NamedParameter> parameters, const AdamOptions& options,
       bool decoupled)
      : Optimizer(std::move(parameters), options.common, {"mean", "square"}, true),
        options_(options),
        decoupled_(decoupled) {
    RAPT_CHECK(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1,
               "{}: expected beta1 and beta2 in [0, 1), got {} and {}", who, options.beta1,
               options.beta2);
    RAPT_CHECK(std::isfinite(options.epsilon) && options.epsilon > 0,
               "{}: expected an epsilon above 0, got {}", who, options.epsilon);
  }

 private:
  void update(const Piece& piece) const override {
    const kernels::AdamStep step{.rate = piece.rate,
                                 .beta1 = options_.beta1,
                                 .beta2 = options_.beta2,
                                 .epsilon = options_.epsilon,
                                 .weight_decay = piece.weight_decay,
                                 .grad_scale = piece.gradient_scale,
                                 .decoupled = decoupled_,
                                 .t = piece.step};
    with_type(piece, [&](auto* p, const auto* g, auto* m, auto* v) {
      kernels::adam(step, p, g, m, v, piece.twin, piece.count);
    });
  }

  AdamOptions options_;
  bool decoupled_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(std::vector<NamedParameter> parameters,
                                    const SgdOptions& options) {
  return std::make_unique<Sgd>(std::move(parameters), options);
}

std::unique_ptr<Optimizer> make_adam(std::vector<NamedParameter> parameters,
                                     const AdamOptions& options) {
  return std::make_unique<Adam>("adam", std::move(parameters), options, false);
}

std::unique_ptr<Optimizer> make_adamw(std::vector<NamedParameter> parameters,
                                      const AdamOptions& options) {
  return std::make_unique<Adam>("adamw", std::move(parameters), options, true);
}

}  // namespace rapt::optim
