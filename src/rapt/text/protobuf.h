// The wire format of protocol buffers, read field by field. For sources only.
//
// Every length is checked against what is left before it is used; nothing is copied.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rapt::text {

// One field of a message. Numbers are in `number` (of fixed 32 and 64 bits as they stand), strings
// and inner messages in `bytes`.
struct ProtobufField {
  enum class Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
  uint32_t id = 0;
  Wire wire = Wire::varint;
  uint64_t number = 0;
  std::string_view bytes{};

  // What the field should be, else throws Error (data) naming the message that it stands in.
  std::string_view text(const std::string& where) const;
  bool boolean(const std::string& where) const;
  int32_t integer(const std::string& where) const;
  float real(const std::string& where) const;
};

// A number of at most 64 bits that is stored with its low byte first.
uint64_t little_endian(std::string_view bytes);

class ProtobufReader {
 public:
  // `where` names the message in errors ("t5.model, piece 7"); `message` must outlive the reader.
  ProtobufReader(std::string_view message, std::string where);

  // The next field; false at the end. Throws Error (data) where the message is cut off or broken:
  // an endless number, field 0, a group, a length beyond the end.
  bool next(ProtobufField& field);

 private:
  uint64_t varint();
  std::string_view take(uint64_t count);

  std::string_view message_;
  size_t at_ = 0;
  std::string where_;
};

}  // namespace rapt::text
