// The encoder-decoder of Vaswani et al. 2017: embeddings with sinusoidal positions, a stack of
// encoder layers, a stack of decoder layers, a projection to the target vocabulary.
//
// Sizes: Ns source tokens and Nt target tokens of a packed batch, C model width, V target
// vocabulary.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/nn/attentions.h"
#include "rapt/nn/decoder.h"
#include "rapt/nn/embedding.h"
#include "rapt/nn/encoder.h"
#include "rapt/ops/projection_loss.h"

namespace rapt::models {

// How many of the three matrices (source embedding, target embedding, projection) are one.
enum class TieEmbeddings {
  none,
  two,    // target embedding and projection
  three,  // all; source and target share a vocabulary
};
std::string_view name_of(TieEmbeddings tie);           // none, two, three
TieEmbeddings parse_tie_embeddings(std::string_view);  // throws Error for another name

// Every field stands under its name in config.json.
struct EncoderDecoderConfig {
  std::string layout = "rapt";  // names of the tensors in the file: hand_built, torch or rapt
  int64_t src_vocab_size = 0, tgt_vocab_size = 0;
  int64_t d_model = 512;
  int64_t nhead = 8;
  int64_t d_qk = 0, d_v = 0;  // of a head; 0: d_model / nhead
  int64_t dim_feedforward = 2048;
  int64_t num_encoder_layers = 6, num_decoder_layers = 6;
  std::string activation = "relu";
  bool norm_first = false;
  bool final_norm = true;  // a norm after the last layer of each stack
  double layer_norm_eps = 1e-5;
  double position_dropout = 0.1;  // of the sum of embedding and position
  double dropout = 0.1;           // inside the layers: of sublayers' outputs, and of the next two
  std::optional<double> attention_dropout{};   // of attention weights; unset: dropout
  std::optional<double> activation_dropout{};  // of hidden units; unset: dropout
  int64_t max_len = 5000;                      // positions
  bool scale_embeddings = false;               // by sqrt(d_model)
  bool projection_bias = true;
  TieEmbeddings tie_embeddings = TieEmbeddings::none;
  int32_t pad_id = 0, start_id = 1, end_id = 2;
  std::optional<int32_t> unk_id{};  // of unknown words, in both vocabularies

  // The hand-built spelling: no norm after the stacks, no dropout inside the layers.
  static EncoderDecoderConfig hand_built(int64_t src_vocab_size, int64_t tgt_vocab_size);
  // The official spelling, as torch.nn.Transformer has it by default.
  static EncoderDecoderConfig torch(int64_t src_vocab_size, int64_t tgt_vocab_size);

  // Throws Error that names the field that cannot be, or those that contradict each other.
  void check() const;

  // The elements of all parameters, tied ones once. Throws Error where that is too large a number.
  int64_t count_parameters() const;
};

using nn::Attentions;

class EncoderDecoder : public nn::Module {
 public:
  // Weights as PyTorch initialises the two spellings: hand_built (and rapt) by each module's
  // default; torch with Xavier uniform matrices in the core and zero biases of its attentions. With
  // scale_embeddings the tables have deviation 1 / sqrt(d_model). With init.rng null all weights
  // are zero, to be loaded.
  EncoderDecoder(const EncoderDecoderConfig& config, const nn::Init& init);

  // source (Ns) and target (Nt) i32 ids -> logits (Nt, V). `source_mask` hides source tokens from
  // the encoder and from the target, `target_mask` target tokens from later ones; packed batches
  // need neither. Throws Error for ids beyond the vocabulary and sentences longer than max_len.
  Tensor forward(const Tensor& source, const Rows& source_rows, const Tensor& target,
                 const Rows& target_rows, const Pass& pass, const Mask& source_mask = {},
                 const Mask& target_mask = {}) const;

  // The same, with the weights that the logits were made with. The pass must not capture weights
  // itself.
  Tensor forward(const Tensor& source, const Rows& source_rows, const Tensor& target,
                 const Rows& target_rows, Attentions& attentions, const PassOptions& pass = {},
                 const Mask& source_mask = {}, const Mask& target_mask = {}) const;

  // The parts of forward: source (Ns) -> memory (Ns, C); target (Nt) -> hidden (Nt, C); hidden ->
  // logits (Nt, V).
  nn::Memory encode(const Tensor& source, const Rows& rows, const Pass& pass,
                    const Mask& mask = {}) const;
  Tensor decode(const Tensor& target, const Rows& rows, const nn::Memory& memory, const Pass& pass,
                const Mask& mask = {}) const;
  Tensor project(const Tensor& hidden, const Pass& pass) const;
  // The loss of project(hidden), whose logits never stand whole: targets (Nt) i32; see
  // projection_loss.
  Loss loss(const Tensor& hidden, const Tensor& targets, const CrossEntropyOptions& options,
            const Pass& pass) const;

  // Decoding with a cache: target (N) are the new tokens of each sentence, their positions going on
  // -> logits (N, V). With `beams` for each sentence, `rows` are those of the beams, and `sources`
  // the same tokens by sentences of the memory.
  std::vector<nn::DecoderLayerState> start(const nn::Memory& memory, const Pass& pass,
                                           int64_t beams = 1) const;
  Tensor step(const Tensor& target, const Rows& rows, const nn::Memory& memory,
              std::vector<nn::DecoderLayerState>& state, const Pass& pass) const {
    return step(target, rows, rows, memory, state, pass);
  }
  Tensor step(const Tensor& target, const Rows& rows, const Rows& sources, const nn::Memory& memory,
              std::vector<nn::DecoderLayerState>& state, const Pass& pass) const;

  void visit(const nn::Visitor& visitor, const std::string& prefix) const override;

  const EncoderDecoderConfig& config() const { return config_; }
  const Tensor& positions() const { return positions_; }  // (max_len, C), a buffer
  void set_positions(const Tensor& positions);            // throws Error for another shape or type

  // Freezes the model for inference in bf16: its matrices are rounded, and activations are bf16
  // from the embeddings to the logits, which are f32. Throws Error for a model in f64.
  void make_bf16();
  // Freezes the model for inference in int8: every matrix that has none yet gets its int8 form, in
  // place of the f32 values. Throws Error for a model in f64, or in bf16.
  void make_int8();

 private:
  Tensor embed(const nn::Embedding& embedding, const Tensor& ids, const Rows& rows,
               const Pass& pass) const;

  EncoderDecoderConfig config_;
  Tensor positions_;
  nn::Embedding source_embedding_, target_embedding_;
  nn::Encoder encoder_;
  nn::Decoder decoder_;
  nn::Linear projection_;
};

}  // namespace rapt::models
