// What a forward pass needs to know. Every forward takes one; there are no hidden modes.
//
// A Pass is cheap to copy and immutable: scope() makes one further down the path. The path names
// dropout sites, captured weights and profile rows: "encoder.layers.3.self_attention".
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/tensor/gradients.h"
#include "rapt/tensor/rows.h"

namespace rapt {

// The attention weights that a pass was asked for, in the order of computing.
struct AttentionCapture {
  struct Entry {
    std::string path;  // of the attention layer
    Tensor weights;    // (B, H, longest Tq, longest Tk); zero where a packed run has no rows
  };
  // Which attention layers are wanted, by path; unset: all.
  std::function<bool(std::string_view path)> wants;
  std::vector<Entry> entries;
};

struct PassOptions {
  bool training = false;           // dropout acts
  uint64_t seed = 0, step = 0;     // of dropout
  Gradients* gradients = nullptr;  // where gradients go; null: nothing is recorded
  AttentionCapture* capture = nullptr;
  // Of activations and their gradients: unset, the type of the parameters; or bf16 with f32 ones
  // that have twins.
  std::optional<DType> compute_type{};
  // Layers keep their input alone and are computed again when gradients come back (Chen et al.
  // 2016, "Training Deep Nets with Sublinear Memory Cost"). Gradients have the same bits.
  bool recompute = false;
};

class Pass {
 public:
  explicit Pass(const PassOptions& options = {}) : options_(options) {}

  // Passes for the usual purposes.
  static Pass inference() { return Pass(); }
  static Pass train(Gradients& gradients, uint64_t seed, uint64_t step,
                    std::optional<DType> compute_type = {}) {
    return Pass({.training = true,
                 .seed = seed,
                 .step = step,
                 .gradients = &gradients,
                 .compute_type = compute_type});
  }

  Pass scope(std::string_view name) const;
  Pass scope(std::string_view name, int64_t index) const;  // "name.index"
  const std::string& path() const { return path_; }

  bool training() const { return options_.training; }

  // Whether a layer with this input computes again: not where weights are captured.
  bool recomputes(const Tensor& input) const;
  Pass without_recomputing() const;  // the same pass, as such a layer runs

  // A weight for an op: a leaf if this pass has gradients. The second form is rows [begin, begin +
  // count).
  Tensor use(const Parameter& parameter) const;
  Tensor use(const Parameter& parameter, int64_t begin, int64_t count) const;

  // The same for a matrix of a product, in the compute type: in bf16 the parameter's twin, whose
  // gradient is the parameter's. Throws Error where there is none. Of a frozen model in bf16 the
  // twin, unless this pass has gradients: then it throws.
  Tensor use_matrix(const Parameter& parameter) const;
  Tensor use_matrix(const Parameter& parameter, int64_t begin, int64_t count) const;

  // The type of activations where parameters have this one. Throws Error where they do not go
  // together.
  DType compute_type(DType parameters) const;

  // Dropout at this path; probability 0 unless training. Throws Error outside [0, 1).
  kernels::Dropout dropout(double probability) const;
  // The same whether the pass trains or not: functions that take a probability apply it.
  kernels::Dropout any_dropout(double probability) const;

  // The same pass with another place for captured weights.
  Pass with_capture(AttentionCapture& capture) const;
  const AttentionCapture* capture() const { return options_.capture; }
  bool wants_weights() const;
  void give_weights(Tensor weights) const;

 private:
  PassOptions options_;
  std::string path_;
};

}  // namespace rapt
