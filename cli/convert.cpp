// rapt convert: a model folder in another type or layout.
#include "rapt/decode/convert.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/program.h"
#include "rapt/base/check.h"
#include "rapt/train/run.h"

namespace rapt::cli {
namespace {

struct Options {
  std::string from, to;
  decode::ConvertOptions convert;
};

}  // namespace

void add_convert(CLI::App& app, Globals& globals, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("convert", "Write a model folder in another type or layout");
  verb->add_option("from", options->from, "A model folder, as train writes it")
      ->type_name("IN")
      ->required();
  verb->add_option("to", options->to, "The folder to write, or to replace if it is a model's")
      ->type_name("OUT")
      ->required();
  verb->add_flag("--int8", options->convert.int8,
                 "Store the matrices in 8 bits, for translating alone: a quarter of the size");
  verb->add_option("--layout", options->convert.layout,
                   "Names of the tensors: hand_built, torch or rapt")
      ->type_name("NAME")
      ->check(one_of({"hand_built", "torch", "rapt"}));
  verb->footer("Example:\n  rapt convert model model-int8 --int8");
  verb->callback([options, &globals, &action] {
    action = [options, &globals] {
      if (train::holds_run(options->to)) {
        fail(ErrorKind::usage,
             "{}: a run's checkpoints or its metrics are there, and would be lost; name another "
             "folder",
             options->to);
      }
      decode::convert(options->from, options->to, options->convert);
      say(globals, "wrote " + options->to);
      return 0;
    };
  });
}

}  // namespace rapt::cli
