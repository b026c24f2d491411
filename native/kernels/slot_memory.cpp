#include "slot_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace shoal {

namespace {

constexpr size_t kCacheLine = 64;

size_t dtype_bytes(shoal_dtype dtype) {
  switch (dtype) {
    case SHOAL_FLOAT64:
    case SHOAL_INT64:
      return 8;
    case SHOAL_FLOAT32:
    case SHOAL_INT32:
      return 4;
    case SHOAL_INT16:
      return 2;
    default:
      return 1;
  }
}

}  // namespace

size_t leaf_bytes(const shoal_leaf& leaf) {
  size_t bytes = dtype_bytes(leaf.dtype);
  for (int k = 0; k < leaf.dimensions; ++k) bytes *= static_cast<size_t>(leaf.shape[k]);
  return bytes;
}

Block::Block(size_t bytes) {
  // Without padding, so that a sanitizer detects writes beyond the last row.
  void* memory = nullptr;
  if (posix_memalign(&memory, kCacheLine, std::max<size_t>(bytes, 1)) != 0) throw std::bad_alloc();
  std::memset(memory, 0, bytes);
  data_.reset(static_cast<char*>(memory));
}

void Block::Free::operator()(char* memory) const { std::free(memory); }

LeafColumns::LeafColumns(const std::vector<size_t>& bytes, int64_t slots) {
  for (const size_t row : bytes) {
    blocks_.emplace_back(row * static_cast<size_t>(slots));
    data_.push_back(blocks_.back().data());
  }
}

}  // namespace shoal
