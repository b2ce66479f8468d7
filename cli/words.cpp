#include "cli/words.h"

#include "rapt/base/check.h"
#include "rapt/base/file.h"
#include "rapt/models/checkpoint.h"

namespace rapt::cli {
namespace {

text::Vocabulary read_vocabulary(const std::filesystem::path& path, int64_t size,
                                 const text::SpecialIds& special) {
  if (!std::filesystem::exists(path))
    fail(ErrorKind::model, "{}: the model has no vocabulary, expected one word a line",
         path.string());
  text::Vocabulary vocabulary = text::Vocabulary::read(path, special);
  if (vocabulary.size() > size) {
    fail(ErrorKind::model,
         "{}: expected at most {} words (the model's embeddings), got {}; the first without one is "
         "{}",
         path.string(), size, vocabulary.size(), vocabulary.word(size));
  }
  return vocabulary;
}

}  // namespace

Translator load_translator(const std::filesystem::path& folder) {
  const models::EncoderDecoderConfig config = models::read_config(folder);
  const text::SpecialIds source{.pad = config.pad_id, .unk = config.unk_id};
  const text::SpecialIds target{
      .pad = config.pad_id, .start = config.start_id, .end = config.end_id, .unk = config.unk_id};
  Translator translator;
  translator.source = read_vocabulary(folder / kSourceVocabulary, config.src_vocab_size, source);
  translator.target = read_vocabulary(folder / kTargetVocabulary, config.tgt_vocab_size, target);
  translator.model = models::load_encoder_decoder(folder, DType::f32);
  return translator;
}

void save_translator(const Translator& translator, const std::filesystem::path& folder) {
  write_folder(folder, [&](const std::filesystem::path& temporary) {
    models::save_encoder_decoder(*translator.model, temporary);
    translator.source.write(temporary / kSourceVocabulary);
    translator.target.write(temporary / kTargetVocabulary);
  });
}

}  // namespace rapt::cli
