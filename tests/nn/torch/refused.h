// What an error about an argument says.
#pragma once

#include <functional>
#include <string>

#include "tests/testing/testing.h"

namespace rapt::nn::torch {

// One error that names the argument, what was expected and what came.
inline void expect_refused(const std::string& argument, const std::function<void()>& call) {
  const std::string message = testing::error_of(call);
  EXPECT_NE(message.find(argument), std::string::npos) << argument << ": " << message;
  EXPECT_NE(message.find("expected"), std::string::npos) << argument << ": " << message;
  EXPECT_NE(message.find("got"), std::string::npos) << argument << ": " << message;
}

}  // namespace rapt::nn::torch
