#include "rapt/decode/translator.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "rapt/base/check.h"
#include "rapt/base/file.h"
#include "rapt/decode/sentences.h"
#include "rapt/models/checkpoint.h"

namespace rapt::decode {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFiles[] = {models::kConfigFile, models::kWeightsFile,
                                       kSourceVocabulary,   kTargetVocabulary,
                                       kSourceSubwords,     kTargetSubwords,
                                       kJointSubwords,      "metrics.jsonl",
                                       "train.yaml",        "events.out.tfevents.0.rapt",
                                       "checkpoints"};

// A tokenizer may have fewer tokens than the model has embeddings, never more.
template <class Tokens>
Tokens checked(Tokens tokens, const fs::path& path, int64_t size) {
  const text::Tokenizer tokenizer(tokens);
  if (tokenizer.size() > size) {
    fail(ErrorKind::model,
         "{}: expected at most {} {} (the model's embeddings), got {}; the first without one is {}",
         path.string(), size, tokenizer.unit(), tokenizer.size(), tokenizer.word(size));
  }
  return tokens;
}

text::Vocabulary read_vocabulary(const fs::path& path, int64_t size,
                                 const text::SpecialIds& special) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    fail(ErrorKind::model, "{}: the model has no vocabulary, expected one word a line",
         path.string());
  return checked(text::Vocabulary::read(path, special), path, size);
}

// The subwords of one side: its own file's, or the one of both sides; nothing where neither is.
std::optional<text::Subwords> read_subwords(const fs::path& folder, const char* own, int64_t size) {
  for (const char* name : {own, kJointSubwords}) {
    std::error_code ignored;
    if (fs::exists(folder / name, ignored))
      return checked(text::Subwords::read(folder / name), folder / name, size);
  }
  return std::nullopt;
}

// The folder that `folder` will stand in, or the lowest above it that exists, must take files.
void check_place(const fs::path& folder) {
  std::error_code problem;
  fs::path place = fs::weakly_canonical(fs::absolute(folder, problem), problem).parent_path();
  while (!fs::exists(place, problem) && place.has_relative_path()) place = place.parent_path();
  if (fs::is_directory(place, problem) && access(place.c_str(), W_OK | X_OK) == 0) return;
  fail(ErrorKind::failure, "cannot write {}: {} is {}", folder.string(), place.string(),
       fs::is_directory(place, problem) ? "a folder that this process may not write to"
                                        : "not a folder");
}

// A source vocabulary that was built beside a target has entries for start and end as well: at the
// target's ids, spelt as the target spells them. They are no words of a text.
text::Vocabulary with_start_and_end(const text::Vocabulary& source,
                                    const text::Vocabulary& target) {
  text::SpecialIds special = source.special();
  const auto shared = [&](int32_t id) -> std::optional<int32_t> {
    return source.entry(target.word(id)) == id ? std::optional(id) : std::nullopt;
  };
  special.start = shared(target.special().start.value());
  special.end = shared(target.special().end.value());
  return text::Vocabulary({source.words().begin(), source.words().end()}, special);
}

void write_tokenizer(const text::Tokenizer& tokenizer, const fs::path& words,
                     const fs::path& subwords) {
  tokenizer.subwords() ? write_file(subwords, tokenizer.subwords()->bytes())
                       : tokenizer.vocabulary()->write(words);
}

void write_tokenizers(const Translator& translator, const fs::path& folder) {
  const text::Subwords* source = translator.source.subwords();
  const text::Subwords* target = translator.target.subwords();
  if (source && target && source->bytes() == target->bytes())
    return write_file(folder / kJointSubwords, source->bytes());
  write_tokenizer(translator.source, folder / kSourceVocabulary, folder / kSourceSubwords);
  write_tokenizer(translator.target, folder / kTargetVocabulary, folder / kTargetSubwords);
}

}  // namespace

Translator load_translator(const fs::path& folder, Weights weights) {
  const models::EncoderDecoderConfig config = models::read_config(folder);
  const text::SpecialIds source{.pad = config.pad_id, .unk = config.unk_id};
  const text::SpecialIds target{
      .pad = config.pad_id, .start = config.start_id, .end = config.end_id, .unk = config.unk_id};
  Translator translator;
  if (auto subwords = read_subwords(folder, kTargetSubwords, config.tgt_vocab_size)) {
    translator.target = std::move(*subwords);
  } else {
    translator.target = read_vocabulary(folder / kTargetVocabulary, config.tgt_vocab_size, target);
  }
  if (auto subwords = read_subwords(folder, kSourceSubwords, config.src_vocab_size)) {
    translator.source = std::move(*subwords);
  } else {
    text::Vocabulary words =
        read_vocabulary(folder / kSourceVocabulary, config.src_vocab_size, source);
    const text::Vocabulary* beside = translator.target.vocabulary();
    translator.source = beside ? with_start_and_end(words, *beside) : std::move(words);
  }
  const bool int8 =
      weights == Weights::int8 || (weights == Weights::stored && models::holds_int8(folder));
  translator.model =
      int8 ? models::load_int8(folder) : models::load_encoder_decoder(folder, DType::f32);
  if (weights == Weights::bf16) translator.model->make_bf16();
  return translator;
}

void save_translator(const Translator& translator, const fs::path& folder) {
  check_model_folder(folder);
  write_folder(folder, [&](const fs::path& temporary) { write_translator(translator, temporary); });
}

void write_translator(const Translator& translator, const fs::path& folder) {
  models::save_encoder_decoder(*translator.model, folder);
  write_tokenizers(translator, folder);
}

void check_model_folder(const fs::path& folder) {
  std::error_code problem;
  const fs::file_status status = fs::status(folder, problem);
  if (folder.empty()) fail(ErrorKind::usage, "expected a folder for the model, got an empty name");
  check_place(folder);
  if (!fs::exists(status)) return;
  if (!fs::is_directory(status))
    fail(ErrorKind::usage, "{}: expected a folder for the model or nothing there, got a file",
         folder.string());
  fs::directory_iterator entry(folder, problem), end;
  for (; !problem && entry != end; entry.increment(problem)) {
    const std::string name = entry->path().filename().string();
    if (std::find(std::begin(kFiles), std::end(kFiles), name) == std::end(kFiles)) {
      fail(ErrorKind::usage,
           "{}: expected a folder that holds nothing but a model, since it will be replaced as a "
           "whole; it also holds {}",
           folder.string(), name);
    }
  }
  if (problem) fail(ErrorKind::failure, "cannot read {}: {}", folder.string(), problem.message());
}

std::vector<int32_t> decoder_input(const Translator& translator,
                                   const std::vector<int32_t>& target) {
  const auto positions = static_cast<size_t>(translator.model->config().max_len);
  std::vector<int32_t> read = {translator.model->config().start_id};
  read.insert(read.end(), target.begin(), target.end());
  read.resize(std::min(read.size(), positions));
  return read;
}

models::Attentions attentions_of(const Translator& translator, const std::vector<int32_t>& source,
                                 const std::vector<int32_t>& read) {
  const auto rows = [](const std::vector<int32_t>& values) {
    return Rows::packed({static_cast<int64_t>(values.size())});
  };
  models::Attentions attentions;
  translator.model->forward(as_tensor(source), rows(source), as_tensor(read), rows(read),
                            attentions);
  return attentions;
}

std::vector<std::string> spellings(const text::Tokenizer& tokenizer,
                                   const std::vector<int32_t>& ids) {
  std::vector<std::string> words;
  words.reserve(ids.size());
  for (const int32_t id : ids) words.push_back(tokenizer.word(id));
  return words;
}

}  // namespace rapt::decode
