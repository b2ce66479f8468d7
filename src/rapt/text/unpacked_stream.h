// A stream that owns the buffer that unpacks it. For sources only.
#pragma once

#include <istream>
#include <utility>

namespace rapt::text {

// Reading throws what the buffer does.
template <class Buffer>
class UnpackedStream : public std::istream {
 public:
  template <class... Args>
  explicit UnpackedStream(Args&&... args)
      : std::istream(nullptr), buffer_(std::forward<Args>(args)...) {
    rdbuf(&buffer_);
    exceptions(std::ios::badbit);
  }

 private:
  Buffer buffer_;
};

}  // namespace rapt::text
