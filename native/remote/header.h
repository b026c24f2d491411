// The fixed beginning of a message, as it lies on the wire: little-endian, without gaps.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

namespace shoal {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are sent as they lie in memory");

/// What the fields mean is said in shoal/remote/wire.py.
struct Header {
  uint8_t kind = 0;
  uint8_t flags = 0;
  uint8_t tray = 0;
  uint32_t rows = 0;
  uint32_t meta = 0;
  uint32_t micros = 0;
  uint64_t number = 0;
  uint64_t ack = 0;
  uint64_t about = 0;
  uint64_t body = 0;

  static constexpr size_t kBytes = 52;

  std::array<char, kBytes> packed() const {
    std::array<char, kBytes> bytes{'S', 'H', 'O', 'L'};
    size_t place = 4;
    auto put = [&](const auto& value) {
      std::memcpy(bytes.data() + place, &value, sizeof(value));
      place += sizeof(value);
    };
    put(kind);
    put(flags);
    put(tray);
    place += 1;  // for later
    put(rows);
    put(meta);
    put(micros);
    put(number);
    put(ack);
    put(about);
    put(body);
    return bytes;
  }

  /// Nothing where no message begins.
  static std::optional<Header> read(const char* bytes) {
    if (std::memcmp(bytes, "SHOL", 4) != 0) return std::nullopt;
    Header header;
    size_t place = 4;
    auto get = [&](auto& value) {
      std::memcpy(&value, bytes + place, sizeof(value));
      place += sizeof(value);
    };
    get(header.kind);
    get(header.flags);
    get(header.tray);
    place += 1;
    get(header.rows);
    get(header.meta);
    get(header.micros);
    get(header.number);
    get(header.ack);
    get(header.about);
    get(header.body);
    return header;
  }
};

}  // namespace shoal
