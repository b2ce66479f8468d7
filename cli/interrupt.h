// SIGINT and SIGTERM as a wish that a run asks for between two steps.
#pragma once

namespace rapt::cli {

// While it lives, the first of these signals is kept, and a second one ends the process as usual.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // The signal that came, or 0.
  int signal() const;
};

}  // namespace rapt::cli
