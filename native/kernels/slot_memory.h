// Memory with a row for every slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "shoal_kernel.h"

namespace shoal {

/// The size of a leaf's row in bytes.
size_t leaf_bytes(const shoal_leaf& leaf);

/// Zeroed memory, aligned to a cache line.
class Block {
 public:
  Block() = default;
  explicit Block(size_t bytes);
  char* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(char* memory) const;
  };
  std::unique_ptr<char, Free> data_;
};

/// A column per leaf, each with a row for every slot.
class LeafColumns {
 public:
  LeafColumns() = default;
  LeafColumns(const std::vector<size_t>& bytes, int64_t slots);
  const std::vector<char*>& data() const { return data_; }

 private:
  std::vector<Block> blocks_;
  std::vector<char*> data_;
};

}  // namespace shoal
