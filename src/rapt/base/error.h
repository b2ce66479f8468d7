// Errors: the one exception type of Rapt.
//
// A message says who complains, what was expected, what came and, where it helps, what to do:
//   "linear: expected 512 input channels, got 256 (the model and the weights differ)".
#pragma once

#include <stdexcept>
#include <string>

namespace rapt {

// What went wrong, in the classes that a caller may want to tell apart. The values are the exit
// codes of the program.
enum class ErrorKind {
  failure = 1,   // anything else: a wrong argument of a function, a full disk
  usage = 2,     // a wrong flag
  config = 3,    // settings that cannot be or contradict each other
  model = 4,     // a model folder or file that is missing, corrupt or unsupported
  data = 5,      // bad text, ids or tokenizer
  diverged = 6,  // training produced numbers that are not finite
  memory = 7,    // out of memory, or over the limit that was set
  network = 8,
};

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, ErrorKind kind = ErrorKind::failure)
      : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace rapt
