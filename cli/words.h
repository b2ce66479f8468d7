// A model folder as the verbs for text use it: the model and its two vocabularies.
#pragma once

#include <filesystem>
#include <memory>

#include "rapt/models/encoder_decoder.h"
#include "rapt/text/vocabulary.h"

namespace rapt::cli {

inline constexpr const char* kSourceVocabulary = "source_vocabulary.txt";
inline constexpr const char* kTargetVocabulary = "target_vocabulary.txt";

struct Translator {
  std::unique_ptr<models::EncoderDecoder> model;
  text::Vocabulary source, target;
};

// Throws Error (model) where the folder has no model or no vocabularies, or their sizes differ from
// the configuration.
Translator load_translator(const std::filesystem::path& folder);

// Writes a folder with the model and its vocabularies at once; what stood there is replaced when
// all is written.
void save_translator(const Translator& translator, const std::filesystem::path& folder);

}  // namespace rapt::cli
