// A model folder in another type or layout.
#pragma once

#include <filesystem>
#include <string>

namespace rapt::decode {

struct ConvertOptions {
  bool int8 = false;        // the matrices of products, as docs/int8.md describes
  std::string layout = {};  // hand_built, torch or rapt; empty: as it is
};

// Reads the model of a folder and writes it to another one, with the vocabularies or subwords as
// they are. What stood there is replaced when all is written. Throws Error (model) for a folder
// without a model or with one in int8, Error (usage) where nothing would change, where both are the
// same folder and as check_model_folder does, and where the model cannot have the layout.
void convert(const std::filesystem::path& from, const std::filesystem::path& to,
             const ConvertOptions& options);

}  // namespace rapt::decode
