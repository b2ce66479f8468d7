// Uses an installed Rapt.
#include <rapt/base/cpu.h>
#include <rapt/base/error.h>

#include <iostream>

int main() {
  try {
    rapt::parse_isa("abacus");
  } catch (const rapt::Error& error) {
    std::cout << error.what() << "\n";
    return error.kind() == rapt::ErrorKind::usage ? 0 : 1;
  }
  return 1;
}
