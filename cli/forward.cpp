// rapt forward: runs a model on the tensors of a file.
#include <fmt/format.h>

#include "cli/flags.h"
#include "cli/program.h"
#include "rapt/models/run.h"
#include "rapt/models/safetensors.h"

namespace rapt::cli {
namespace {

struct Options {
  std::string folder, in, out, args = "{}";
  bool grad = false;
  std::optional<uint64_t> train;
};

int forward(const Options& options) {
  const models::NamedTensors outputs = models::run_folder(options.folder, options.in, options.args,
                                                          {.gradients = options.grad,
                                                           .training = options.train.has_value(),
                                                           .seed = options.train.value_or(0)});
  std::vector<models::TensorSource> sources;
  for (const auto& [name, tensor] : outputs) sources.push_back(models::source_of(name, tensor));
  models::write_safetensors(options.out, sources);
  return 0;
}

}  // namespace

void add_forward(CLI::App& app, Globals&, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "forward", "Run a model or an official module on the tensors of a safetensors file");
  verb->add_option("folder", options->folder, "A model folder: config.json and model.safetensors")
      ->type_name("DIR")
      ->required();
  verb->add_option(
          "--in", options->in,
          "Inputs by name: src and tgt, ids (B, Ts) and (B, Tt), or the tensors of an official "
          "module's forward (query, src_mask, ...); with --grad also d_output")
      ->type_name("FILE")
      ->required();
  verb->add_option(
          "--out", options->out,
          "Where the outputs go: logits (B, Tt, V), or output, and what else was asked for")
      ->type_name("FILE")
      ->required();
  verb->add_option(
          "--args", options->args,
          "JSON: {\"attentions\": true} adds the weights of all attentions; of an official "
          "module forward's other arguments, such as {\"need_weights\": false}")
      ->type_name("JSON");
  verb->add_flag("--grad", options->grad,
                 "Add grad.NAME of every parameter and d.NAME of every float input, from d_output");
  verb->add_option("--train", options->train, "With dropout, by this seed")
      ->type_name("SEED")
      ->check(whole(0));
  verb->footer(
      "The type of the float inputs decides what is computed in; where all inputs are ids, the "
      "type of the weights does.\n"
      "Keys are hidden where id == pad_id.\n"
      "An official module is a config.json with {\"model_type\": \"torch.nn.MultiheadAttention\", "
      "\"embed_dim\": 8, ...} and its state_dict as model.safetensors.\n"
      "Example:\n  rapt forward model --in x.safetensors --out y.safetensors --args "
      "'{\"attentions\": true}'");
  verb->callback([options, &action] { action = [options] { return forward(*options); }; });
}

}  // namespace rapt::cli
