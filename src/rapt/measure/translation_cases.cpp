// The encoder-decoders of `rapt bench`: toy, small, base.
#include <algorithm>

#include "rapt/base/check.h"
#include "rapt/measure/training_case.h"
#include "rapt/models/checkpoint.h"
#include "rapt/models/safetensors.h"
#include "rapt/train/seq2seq.h"

namespace rapt::measure {
namespace {

using models::EncoderDecoder;
using models::EncoderDecoderConfig;

struct Sizes {
  EncoderDecoderConfig config;
  bool worked_example = false;  // its two sentences, SGD; else B drawn pairs, AdamW
  int64_t B = 0, T = 0;         // pairs of T source and T target tokens
};

EncoderDecoderConfig tied(int64_t V, int64_t C, int64_t F, int64_t nhead, int64_t layers) {
  EncoderDecoderConfig config = EncoderDecoderConfig::torch(V, V);
  config.d_model = C;
  config.nhead = nhead;
  config.dim_feedforward = F;
  config.num_encoder_layers = config.num_decoder_layers = layers;
  config.scale_embeddings = true;
  config.projection_bias = false;
  config.tie_embeddings = models::TieEmbeddings::three;
  return config;
}

std::optional<Sizes> sizes_of(const std::string& name) {
  if (name == "small") return Sizes{tied(8000, 256, 1024, 4, 3), false, 128, 24};
  if (name == "base") return Sizes{tied(32000, 512, 2048, 8, 6), false, 128, 32};
  if (name != "toy") return std::nullopt;
  EncoderDecoderConfig config = EncoderDecoderConfig::torch(10, 11);
  config.start_id = 8;
  config.end_id = 9;
  return Sizes{config, true, 2, 8};
}

// Rows of equal length; zeros at the end of a source are padding and are left out.
data::PairBatch batch_of(const Tensor& source, const Tensor& target) {
  RAPT_CHECK(source.rank() == 2 && target.rank() == 2 && source.dim(0) == target.dim(0) &&
                 target.dim(1) >= 1,
             "bench: expected source (B, T) and target (B, T), got {} and {}",
             source.shape().text(), target.shape().text());
  data::PairBatch batch;
  for (int64_t b = 0; b < source.dim(0); ++b) {
    const int32_t* from = source.data<int32_t>() + b * source.dim(1);
    const int32_t* end = std::find(from, from + source.dim(1), 0);
    batch.source.insert(batch.source.end(), from, end);
    batch.source_lengths.push_back(end - from);
    const int32_t* to = target.data<int32_t>() + b * target.dim(1);
    batch.target_in.insert(batch.target_in.end(), to, to + target.dim(1) - 1);
    batch.target_out.insert(batch.target_out.end(), to + 1, to + target.dim(1));
    batch.target_lengths.push_back(target.dim(1) - 1);
    batch.samples.push_back(static_cast<uint64_t>(b));
  }
  return batch;
}

data::PairBatch make_batch(const Sizes& sizes, const TrainingOptions& options, Rng& rng) {
  if (!options.init.empty()) {
    const models::SafetensorsFile file(options.init / "batch.safetensors");
    return batch_of(file.load(file.at("source"), DType::i32),
                    file.load(file.at("target"), DType::i32));
  }
  if (sizes.worked_example) {
    const std::vector<int32_t> source = {1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 8, 4, 9, 6, 7, 0},
                               target = {8, 1, 2, 3, 4, 5, 10, 9, 8, 1, 2, 6, 7, 5, 10, 9};
    return batch_of(Tensor::from(source, {2, 8}), Tensor::from(target, {2, 8}));
  }
  const Tensor source = drawn_ids({sizes.B, sizes.T}, sizes.config.src_vocab_size, rng);
  return batch_of(source, drawn_ids({sizes.B, sizes.T + 1}, sizes.config.tgt_vocab_size, rng));
}

double pairs(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

class TranslationCase : public TrainingCase {
 public:
  TranslationCase(const Sizes& sizes, const TrainingOptions& options, Rng& rng)
      : sizes_(sizes),
        batch_(make_batch(sizes, options, rng)),
        tensors_(train::to_tensors(batch_)) {
    if (options.dropout) sizes_.config.dropout = sizes_.config.position_dropout = *options.dropout;
    const bool loaded = !options.init.empty();
    model_ =
        std::make_unique<EncoderDecoder>(sizes_.config, nn::Init{.rng = loaded ? nullptr : &rng});
    if (loaded) {
      models::load_weights(*model_, options.init / "weights.safetensors",
                           models::layout(sizes_.config.layout));
    } else if (!sizes_.worked_example) {  // tied embeddings of unit variance give huge logits
      Tensor table = nn::parameters(*model_).front().value();
      for (int64_t i = 0; i < table.numel(); ++i) table.data<float>()[i] *= 0.02f;
    }
  }

  const nn::Module& model() const override { return *model_; }
  Loss loss(const Pass& pass) const override {
    return train::seq2seq_loss(*model_, tensors_, sizes_.worked_example ? 0 : 0.1, pass);
  }
  int64_t items() const override { return std::ssize(batch_.target_out); }

  double flops() const override {
    const EncoderDecoderConfig& c = sizes_.config;
    const double s = static_cast<double>(batch_.source.size()),
                 t = static_cast<double>(batch_.target_in.size()),
                 C = static_cast<double>(c.d_model), V = static_cast<double>(c.tgt_vocab_size);
    const double encoder = layer_flops(s, pairs(batch_.source_lengths, batch_.source_lengths),
                                       c.d_model, c.dim_feedforward);
    const double cross =
        2 * (2 * (s + t) * C * C + 2 * C * pairs(batch_.target_lengths, batch_.source_lengths));
    const double decoder =
        cross + layer_flops(t, 0.5 * pairs(batch_.target_lengths, batch_.target_lengths), c.d_model,
                            c.dim_feedforward);
    return 3 * (static_cast<double>(c.num_encoder_layers) * encoder +
                static_cast<double>(c.num_decoder_layers) * decoder + 2 * t * C * V);
  }

  std::unique_ptr<optim::Optimizer> optimizer() const override {
    if (!sizes_.worked_example) return TrainingCase::optimizer();
    return optim::make_sgd(nn::parameters(*model_),
                           {.momentum = 0.99, .common = {.check_finite = false}});
  }
  double rate() const override { return sizes_.worked_example ? 1e-3 : TrainingCase::rate(); }

 private:
  Sizes sizes_;
  data::PairBatch batch_;
  train::Seq2SeqBatch tensors_;
  std::unique_ptr<EncoderDecoder> model_;
};

}  // namespace

std::unique_ptr<TrainingCase> make_translation_case(const std::string& name,
                                                    const TrainingOptions& options) {
  const std::optional<Sizes> sizes = sizes_of(name);
  if (!sizes) return nullptr;
  Rng rng(options.seed);
  return std::make_unique<TranslationCase>(*sizes, options, rng);
}

}  // namespace rapt::measure
