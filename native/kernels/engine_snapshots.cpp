// Snapshots of slots: everything that a slot needs to continue, as bytes.
#include <chrono>
#include <cstring>

#include "engine.h"

namespace shoal {

namespace {

/// The fixed-size beginning of a snapshot. The state and the observation follow.
struct SavedSlot {
  uint64_t kernel;  // Engine::identity_
  shoal_random random;
  double episode_return, episode_start;
  int64_t episode_length;
  uint8_t finished, begun;
};

}  // namespace

double Engine::now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

uint64_t Engine::identity_of(const shoal_kernel& kernel) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  auto add = [&](uint64_t value) { hash = (hash ^ value) * UINT64_C(0x100000001b3); };
  for (const char* letter = kernel.name; *letter != '\0'; ++letter)
    add(static_cast<uint8_t>(*letter));
  add(kernel.state_bytes);
  for (int k = 0; k < kernel.observation_count; ++k) add(leaf_bytes(kernel.observations[k]));
  return hash;
}

size_t Engine::snapshot_bytes() const {
  size_t bytes = sizeof(SavedSlot) + kernel_.state_bytes;
  for (const size_t leaf : observation_bytes_) bytes += leaf;
  return bytes;
}

void Engine::save(int64_t slot, char* snapshot) const {
  const auto row = static_cast<size_t>(slot);
  SavedSlot saved{};
  saved.kernel = identity_;
  saved.random = randoms_[slot];
  saved.episode_return = columns_.episode_return[slot];
  // Relative to now, because a snapshot may be restored by another process or after a reboot.
  if (options_.statistics) saved.episode_start = now() - columns_.episode_start[slot];
  saved.episode_length = columns_.episode_length[slot];
  saved.finished = columns_.finished[slot];
  saved.begun = begun_[row];
  std::memcpy(snapshot, &saved, sizeof saved);
  snapshot += sizeof saved;
  std::memcpy(snapshot, states_.data() + row * kernel_.state_bytes, kernel_.state_bytes);
  snapshot += kernel_.state_bytes;
  for (size_t k = 0; k < observation_bytes_.size(); ++k) {
    const size_t bytes = observation_bytes_[k];
    std::memcpy(snapshot, result_buffer_.observations[k] + row * bytes, bytes);
    snapshot += bytes;
  }
}

bool Engine::restore(int64_t slot, const char* snapshot) {
  const auto row = static_cast<size_t>(slot);
  SavedSlot saved;
  std::memcpy(&saved, snapshot, sizeof saved);
  if (saved.kernel != identity_) return false;
  snapshot += sizeof saved;
  randoms_[slot] = saved.random;
  columns_.episode_return[slot] = saved.episode_return;
  columns_.episode_start[slot] = now() - saved.episode_start;
  columns_.episode_length[slot] = saved.episode_length;
  columns_.finished[slot] = saved.finished;
  begun_[row] = saved.begun;
  std::memcpy(states_.data() + row * kernel_.state_bytes, snapshot, kernel_.state_bytes);
  snapshot += kernel_.state_bytes;
  for (size_t k = 0; k < observation_bytes_.size(); ++k) {
    const size_t bytes = observation_bytes_[k];
    std::memcpy(result_buffer_.observations[k] + row * bytes, snapshot, bytes);
    snapshot += bytes;
  }
  return true;
}

}  // namespace shoal
