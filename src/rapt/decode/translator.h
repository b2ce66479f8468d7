// A translator: an encoder-decoder with the tokenizers of its two sides, kept in one folder:
// config.json, model.safetensors, and for words source_vocabulary.txt and target_vocabulary.txt,
// for subwords source_subwords.model and target_subwords.model, or subwords.model for both.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "rapt/models/encoder_decoder.h"
#include "rapt/text/tokenizer.h"

namespace rapt::decode {

inline constexpr const char* kSourceVocabulary = "source_vocabulary.txt";
inline constexpr const char* kTargetVocabulary = "target_vocabulary.txt";
inline constexpr const char* kSourceSubwords = "source_subwords.model";
inline constexpr const char* kTargetSubwords = "target_subwords.model";
inline constexpr const char* kJointSubwords = "subwords.model";

struct Translator {
  std::unique_ptr<models::EncoderDecoder> model;
  text::Tokenizer source, target;
};

// What a model multiplies in: f32, with weights that anything can be done with; for translating
// alone bf16, or int8, quantised while it is read; or what the folder holds.
enum class Weights { f32, bf16, int8, stored };

// Throws Error (model) where the folder has no model or no vocabularies, where a vocabulary has
// more words than the model has embeddings, and for f32 or bf16 where the folder holds int8.
Translator load_translator(const std::filesystem::path& folder, Weights weights = Weights::f32);

// Writes a folder with the model and its vocabularies at once; an older model that stood there is
// replaced when all is written, and intact if anything fails. Throws Error as check_model_folder
// does and where writing fails.
void save_translator(const Translator& translator, const std::filesystem::path& folder);

// Writes the same files into a folder that exists, one after the other.
void write_translator(const Translator& translator, const std::filesystem::path& folder);

// Throws Error (usage) unless save_translator may write there: nothing stands there, or an empty
// folder, or one with the files of a model and of the run that made it alone. Anything else would
// be lost with the old folder. Throws Error (failure) where the folder above it cannot be written
// to.
void check_model_folder(const std::filesystem::path& folder);

// What the decoder reads while it writes `target`: the start token and its words, as many as the
// model has positions.
std::vector<int32_t> decoder_input(const Translator& translator,
                                   const std::vector<int32_t>& target);

// The attention weights of one sentence, source (S), and of what the decoder reads, (T): a tensor a
// layer, (1, H, S, S) of the encoder, (1, H, T, T) and (1, H, T, S) of the decoder.
models::Attentions attentions_of(const Translator& translator, const std::vector<int32_t>& source,
                                 const std::vector<int32_t>& read);

// The spellings of ids, control entries included.
std::vector<std::string> spellings(const text::Tokenizer& tokenizer,
                                   const std::vector<int32_t>& ids);

}  // namespace rapt::decode
