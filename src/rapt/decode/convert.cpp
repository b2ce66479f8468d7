#include "rapt/decode/convert.h"

#include "rapt/base/check.h"
#include "rapt/base/file.h"
#include "rapt/decode/translator.h"
#include "rapt/models/checkpoint.h"

namespace rapt::decode {

namespace fs = std::filesystem;

void convert(const fs::path& from, const fs::path& to, const ConvertOptions& options) {
  if (!options.int8 && options.layout.empty())
    fail(ErrorKind::usage, "convert: expected --int8, a layout or both; nothing would change");
  models::expect_model(from);
  check_model_folder(to);
  std::error_code ignored;
  if (fs::equivalent(from, to, ignored))
    fail(ErrorKind::usage, "{}: expected another folder to write to than {}", to.string(),
         from.string());
  const auto model =
      models::load_encoder_decoder(from, options.int8 ? std::optional(DType::f32) : std::nullopt);
  write_folder(to, [&](const fs::path& temporary) {
    models::save_encoder_decoder(*model, temporary,
                                 {.int8 = options.int8, .layout = options.layout});
    for (const char* name :
         {kSourceVocabulary, kTargetVocabulary, kSourceSubwords, kTargetSubwords, kJointSubwords}) {
      if (fs::exists(from / name)) write_file(temporary / name, read_file(from / name));
    }
  });
}

}  // namespace rapt::decode
