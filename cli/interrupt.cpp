#include "cli/interrupt.h"

#include <signal.h>

#include <initializer_list>

namespace rapt::cli {
namespace {

volatile sig_atomic_t received = 0;

void receive(int number) { received = number; }

void handle(int number, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(number, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  received = 0;
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction before {};
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN)
      handle(number, receive, SA_RESTART | static_cast<int>(SA_RESETHAND));
  }
}

Interrupt::~Interrupt() {
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction now {};
    sigaction(number, nullptr, &now);
    if (now.sa_handler == receive) handle(number, SIG_DFL, 0);
  }
}

int Interrupt::signal() const { return received; }

}  // namespace rapt::cli
