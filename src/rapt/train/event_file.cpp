#include "rapt/train/event_file.h"

#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rapt/base/error.h"
#include "rapt/base/file.h"
#include "rapt/text/protobuf.h"
#include "rapt/train/append_file.h"

namespace rapt::train {
namespace {

namespace fs = std::filesystem;
using text::ProtobufField;
using text::ProtobufReader;

// Fields of tensorflow.Event, of its Summary, and of the Summary's values.
constexpr uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;
constexpr uint32_t kValue = 1;
constexpr uint32_t kTag = 1, kSimpleValue = 2;
constexpr std::string_view kValidTags = "valid/";

// CRC-32C (Castagnoli), low bit first.
uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t rest = i;
      for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? 0x82f63b78 : 0);
      table[i] = rest;
    }
    return table;
  }();
  uint32_t crc = ~uint32_t{0};
  for (const char c : bytes) crc = kTable[(crc ^ static_cast<unsigned char>(c)) & 255] ^ (crc >> 8);
  return ~crc;
}

// As TensorFlow stores it, so that a checksum of data that hold checksums is none of them.
uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8; }

template <class Number>
void put_number(std::string& out, Number number) {
  for (size_t i = 0; i < sizeof number; ++i) out += static_cast<char>((number >> (8 * i)) & 255);
}

void put_varint(std::string& out, uint64_t number) {
  for (; number > 127; number >>= 7) out += static_cast<char>((number & 127) | 128);
  out += static_cast<char>(number);
}

void put_field(std::string& out, uint32_t id, ProtobufField::Wire wire) {
  put_varint(out, (id << 3) | static_cast<uint32_t>(wire));
}

void put_bytes(std::string& out, uint32_t id, std::string_view bytes) {
  put_field(out, id, ProtobufField::Wire::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

// An Event of now, without what it tells.
std::string event_at(int64_t step) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  std::string event;
  put_field(event, kWallTime, ProtobufField::Wire::fixed64);
  put_number(event, std::bit_cast<uint64_t>(now.count()));
  put_field(event, kStep, ProtobufField::Wire::varint);
  put_varint(event, static_cast<uint64_t>(step));
  return event;
}

std::string framed(std::string_view event) {
  std::string record;
  put_number(record, uint64_t{event.size()});
  put_number(record, masked_crc(record));
  record += event;
  put_number(record, masked_crc(event));
  return record;
}

// The event of the record that `rest` begins with, which is taken away; nothing where it is cut off
// or damaged.
std::optional<std::string_view> take_event(std::string_view& rest) {
  constexpr size_t kHead = 12, kTail = 4;
  if (rest.size() < kHead + kTail) return std::nullopt;
  const uint64_t length = text::little_endian(rest.substr(0, 8));
  if (masked_crc(rest.substr(0, 8)) != text::little_endian(rest.substr(8, 4)) ||
      length > rest.size() - kHead - kTail)
    return std::nullopt;
  const std::string_view event = rest.substr(kHead, length);
  if (masked_crc(event) != text::little_endian(rest.substr(kHead + length, kTail)))
    return std::nullopt;
  rest.remove_prefix(kHead + length + kTail);
  return event;
}

struct Known {
  int64_t step = 0;
  bool is_validation = false;
};

// Throws Error (data) where it is no Event.
Known known_of(std::string_view event) {
  Known known;
  ProtobufReader reader(event, "event");
  for (ProtobufField field; reader.next(field);) {
    if (field.id == kStep) known.step = static_cast<int64_t>(field.number);
    if (field.id != kSummary) continue;
    ProtobufReader summary(field.bytes, "summary");
    for (ProtobufField value; summary.next(value);) {
      ProtobufReader scalar(value.bytes, "value");
      for (ProtobufField part; scalar.next(part);)
        known.is_validation |= part.id == kTag && part.bytes.starts_with(kValidTags);
    }
  }
  return known;
}

// The bytes of the events that stay.
size_t kept_of(const std::string& file, int64_t step, int64_t validated) {
  std::string_view rest = file;
  size_t kept = 0;
  try {
    while (const auto event = take_event(rest)) {
      const Known known = known_of(*event);
      if (known.step > (known.is_validation ? validated : step)) break;
      kept = file.size() - rest.size();
    }
  } catch (const Error&) {  // damaged from there on
  }
  return kept;
}

struct Scalar {
  std::string_view tag;
  double value;
};

}  // namespace

struct EventFile::State {
  explicit State(const fs::path& path) : file(path) {}

  void add(int64_t step, const std::vector<Scalar>& scalars) {
    std::string summary;
    for (const Scalar& scalar : scalars) {
      if (!std::isfinite(scalar.value)) continue;
      std::string value;
      put_bytes(value, kTag, scalar.tag);
      put_field(value, kSimpleValue, ProtobufField::Wire::fixed32);
      put_number(value, std::bit_cast<uint32_t>(static_cast<float>(scalar.value)));
      put_bytes(summary, kValue, value);
    }
    std::string event = event_at(step);
    put_bytes(event, kSummary, summary);
    file.write(framed(event));
  }

  AppendFile file;
};

EventFile::EventFile(const fs::path& path, int64_t step, int64_t validated)
    : state_(std::make_unique<State>(path)) {
  const size_t kept = step > 0 ? kept_of(read_file(path), step, validated) : 0;
  state_->file.cut(kept);
  if (kept > 0) return;
  std::string event = event_at(0);
  put_bytes(event, kFileVersion, "brain.Event:2");
  state_->file.write(framed(event));
}

EventFile::~EventFile() = default;

void EventFile::trained(const MetricsFile::Trained& line) {
  state_->add(line.step, {{"train/loss", line.loss},
                          {"train/learning_rate", line.rate},
                          {"train/gradient_norm", line.norm},
                          {"train/tokens_per_s", line.tokens_per_second}});
}

void EventFile::validated(int64_t step, const Validation& v) {
  std::vector<Scalar> scalars = {{"valid/loss", v.loss}, {"valid/perplexity", v.perplexity()}};
  if (v.bleu) scalars.push_back({"valid/bleu", *v.bleu});
  if (v.chrf) scalars.push_back({"valid/chrf", *v.chrf});
  state_->add(step, scalars);
}

void EventFile::sync() { state_->file.sync(); }

}  // namespace rapt::train
