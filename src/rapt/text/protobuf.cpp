#include "rapt/text/protobuf.h"

#include <bit>
#include <utility>

#include "rapt/base/check.h"

namespace rapt::text {
namespace {

[[noreturn]] void refuse_type(const ProtobufField& field, const std::string& where,
                              const char* expected) {
  fail(ErrorKind::data, "{}: expected {} in field {}, got wire type {}", where, expected, field.id,
       static_cast<int>(field.wire));
}

}  // namespace

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

std::string_view ProtobufField::text(const std::string& where) const {
  if (wire != Wire::bytes) refuse_type(*this, where, "text");
  return bytes;
}

bool ProtobufField::boolean(const std::string& where) const {
  if (wire != Wire::varint) refuse_type(*this, where, "a boolean");
  return number != 0;
}

int32_t ProtobufField::integer(const std::string& where) const {
  if (wire != Wire::varint) refuse_type(*this, where, "a whole number");
  return static_cast<int32_t>(static_cast<uint32_t>(number));  // negative ones have 10 bytes
}

float ProtobufField::real(const std::string& where) const {
  if (wire != Wire::fixed32) refuse_type(*this, where, "a number of 32 bits");
  return std::bit_cast<float>(static_cast<uint32_t>(number));
}

ProtobufReader::ProtobufReader(std::string_view message, std::string where)
    : message_(message), where_(std::move(where)) {}

bool ProtobufReader::next(ProtobufField& field) {
  if (at_ == message_.size()) return false;
  const uint64_t tag = varint();
  if (tag >> 3 == 0 || tag > UINT32_MAX)
    fail(ErrorKind::data, "{}: expected a field at byte {}, got the tag {}", where_, at_, tag);
  field = {.id = static_cast<uint32_t>(tag >> 3),
           .wire = static_cast<ProtobufField::Wire>(tag & 7),
           .number = 0,
           .bytes = {}};
  switch (field.wire) {
    case ProtobufField::Wire::varint:
      field.number = varint();
      return true;
    case ProtobufField::Wire::fixed64:
      field.number = little_endian(take(8));
      return true;
    case ProtobufField::Wire::bytes:
      field.bytes = take(varint());
      return true;
    case ProtobufField::Wire::fixed32:
      field.number = little_endian(take(4));
      return true;
  }
  fail(ErrorKind::data, "{}: field {} has wire type {}, which no such file uses", where_, field.id,
       tag & 7);
}

uint64_t ProtobufReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1)[0]);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  fail(ErrorKind::data, "{}: the number before byte {} does not end", where_, at_);
}

std::string_view ProtobufReader::take(uint64_t count) {
  if (count > message_.size() - at_) {
    fail(ErrorKind::data, "{}: cut off: expected {} bytes at byte {}, got {}", where_, count, at_,
         message_.size() - at_);
  }
  const std::string_view taken = message_.substr(at_, static_cast<size_t>(count));
  at_ += taken.size();
  return taken;
}

}  // namespace rapt::text
