// Uses an installed Rapt: translates a line with a model folder.
#include <rapt/rapt.h>

#include <iostream>

int main(int argc, char** argv) {
  try {
    const std::filesystem::path folder = argc > 1 ? argv[1] : "no-such-model";
    const auto model = rapt::models::load_encoder_decoder(folder);
    const auto source = rapt::text::Vocabulary::read(folder / "source_vocabulary.txt");
    const auto target = rapt::text::Vocabulary::read(folder / "target_vocabulary.txt");
    const std::vector<std::vector<int32_t>> sentences = {
        source.encode(argc > 2 ? argv[2] : "", "argument")};
    std::cout << target.decode(rapt::decode::greedy(*model, sentences).front().ids) << "\n";
  } catch (const rapt::Error& error) {
    std::cerr << error.what() << "\n";
    return static_cast<int>(error.kind());
  }
  return 0;
}
