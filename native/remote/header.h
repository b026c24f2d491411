// The fixed header of a message on the wire: little-endian, packed.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

namespace shoal {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "headers are copied to the wire as is");

/// The fields are documented in shoal/remote/_wire.py.
struct Header {
  uint8_t kind = 0;
  uint8_t flags = 0;
  uint32_t rows = 0;
  uint32_t meta = 0;
  uint32_t micros = 0;
  uint64_t number = 0;
  uint64_t ack = 0;
  uint64_t reply_to = 0;
  uint64_t body = 0;

  static constexpr size_t kBytes = 52;
  static constexpr size_t kReserved = 2;  // bytes after the flags, sent as 0 and ignored

  std::array<char, kBytes> packed() const {
    std::array<char, kBytes> bytes{'S', 'H', 'O', 'L'};
    size_t offset = 4;
    auto put = [&](const auto& value) {
      std::memcpy(bytes.data() + offset, &value, sizeof(value));
      offset += sizeof(value);
    };
    put(kind);
    put(flags);
    offset += kReserved;
    put(rows);
    put(meta);
    put(micros);
    put(number);
    put(ack);
    put(reply_to);
    put(body);
    return bytes;
  }

  /// Parses a header; returns nothing if the bytes do not start with the magic number.
  static std::optional<Header> read(const char* bytes) {
    if (std::memcmp(bytes, "SHOL", 4) != 0) return std::nullopt;
    Header header;
    size_t offset = 4;
    auto get = [&](auto& value) {
      std::memcpy(&value, bytes + offset, sizeof(value));
      offset += sizeof(value);
    };
    get(header.kind);
    get(header.flags);
    offset += kReserved;
    get(header.rows);
    get(header.meta);
    get(header.micros);
    get(header.number);
    get(header.ack);
    get(header.reply_to);
    get(header.body);
    return header;
  }
};

}  // namespace shoal
