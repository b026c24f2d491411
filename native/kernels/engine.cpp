#include "engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace shoal {

namespace {

std::vector<size_t> bytes_of(const shoal_leaf* leaves, int count) {
  std::vector<size_t> bytes;
  for (int k = 0; k < count; ++k) bytes.push_back(leaf_bytes(leaves[k]));
  return bytes;
}

template <class T>
int64_t first_nan(const char* column, size_t bytes, int64_t first, int64_t last) {
  const auto elements = static_cast<int64_t>(bytes / sizeof(T));
  const T* values = reinterpret_cast<const T*>(column);
  bool any = false;
  for (int64_t k = first * elements; k < last * elements; ++k) any |= std::isnan(values[k]);
  if (!any) return -1;
  for (int64_t k = first * elements;; ++k) {
    if (std::isnan(values[k])) return k / elements;
  }
}

/// Returns the first row in [first, last) that contains a NaN, or -1.
int64_t first_nan(const shoal_leaf& leaf, const char* column, int64_t first, int64_t last) {
  const size_t bytes = leaf_bytes(leaf);
  if (leaf.dtype == SHOAL_FLOAT64) return first_nan<double>(column, bytes, first, last);
  if (leaf.dtype == SHOAL_FLOAT32) return first_nan<float>(column, bytes, first, last);
  return -1;
}

}  // namespace

Engine::Engine(const shoal_kernel& kernel, const EngineOptions& options, const SlotColumns& columns,
               std::vector<char*> actions, std::vector<double> parameters)
    : kernel_(kernel),
      options_(options),
      columns_(columns),
      actions_(std::move(actions)),
      action_bytes_(bytes_of(kernel.actions, kernel.action_count)),
      observation_bytes_(bytes_of(kernel.observations, kernel.observation_count)),
      info_bytes_(bytes_of(kernel.infos, kernel.info_count)),
      parameters_(std::move(parameters)),
      states_(kernel.state_bytes * static_cast<size_t>(options.slots)),
      randoms_block_(sizeof(shoal_random) * static_cast<size_t>(options.slots)),
      randoms_(reinterpret_cast<shoal_random*>(randoms_block_.data())),
      begun_(static_cast<size_t>(options.slots)),
      buffer_observations_(observation_bytes_, options.slots),
      buffer_infos_(info_bytes_, options.slots),
      buffer_rewards_(sizeof(double) * static_cast<size_t>(options.slots)),
      buffer_terminated_(static_cast<size_t>(options.slots)),
      buffer_truncated_(static_cast<size_t>(options.slots)) {
  for (int k = 0; k < kernel.option_count; ++k) {
    option_defaults_.push_back(kernel.options[k].value);
  }
  if (options.statistics) ended_.resize(static_cast<size_t>(options.slots));
  if (options.mode == Autoreset::kSameStep) {
    final_observations_ = LeafColumns(observation_bytes_, options.slots);
    final_infos_ = LeafColumns(info_bytes_, options.slots);
  }
  identity_ = identity_of(kernel);
  result_buffer_.observations = buffer_observations_.data();
  result_buffer_.infos = buffer_infos_.data();
  for (int k = 0; k < kernel_.info_count; ++k) {
    if (!std::strcmp(kernel_.infos[k].name, SHOAL_REWARDS)) rewards_info_ = k;
  }
  result_buffer_.rewards = reinterpret_cast<double*>(buffer_rewards_.data());
  result_buffer_.terminated = reinterpret_cast<uint8_t*>(buffer_terminated_.data());
  result_buffer_.truncated = reinterpret_cast<uint8_t*>(buffer_truncated_.data());
}

/// The arguments of a kernel function for a run of slots.
class Engine::Run {
 public:
  // Assigns only what is needed, because a run may contain only a few slots.
  Run(const Engine& engine, int64_t first, int64_t last, const Rows& rows) {
    const auto start = static_cast<size_t>(first);
    for (size_t k = 0; k < engine.actions_.size(); ++k) {
      pointers_[0][k] = engine.actions_[k] + start * engine.action_bytes_[k];
    }
    for (size_t k = 0; k < rows.observations.size(); ++k) {
      pointers_[1][k] = rows.observations[k] + start * engine.observation_bytes_[k];
    }
    for (size_t k = 0; k < rows.infos.size(); ++k) {
      pointers_[2][k] = rows.infos[k] + start * engine.info_bytes_[k];
    }
    slots_.first = first;
    slots_.count = last - first;
    slots_.state = engine.states_.data() + start * engine.kernel_.state_bytes;
    slots_.random = engine.randoms_ + first;
    slots_.actions = nullptr;
    slots_.observations = pointers_[1];
    slots_.rewards = nullptr;
    slots_.terminated = slots_.truncated = nullptr;
    slots_.infos = pointers_[2];
    slots_.parameters = engine.parameters(first);
    slots_.options = nullptr;
    slots_.tables = engine.kernel_.tables;
    slots_.message = message_;
    message_[0] = '\0';
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  shoal_slots& slots() { return slots_; }
  const void* const* actions() const { return pointers_[0]; }
  const char* message() const { return message_; }

 private:
  shoal_slots slots_;
  void* pointers_[3][kMaxLeaves];
  char message_[SHOAL_MESSAGE_BYTES];
};

/// Records a failure. The state of a failed slot is undefined, so it must be reset.
void Engine::fail(int64_t slot, const char* method, std::string message,
                  std::vector<int64_t>& failed, JobReport& report) {
  failed.push_back(slot);
  const std::lock_guard lock(report.mutex);
  report.failures.push_back({slot, method, std::move(message)});
}

void Engine::mark(const std::vector<int64_t>& failed) {
  for (const int64_t slot : failed) columns_.finished[slot] = 1;
}

/// Calls a kernel function for a run of slots; after a failed slot, again for the rest of the run.
template <class Function>
void Engine::call(int64_t first, int64_t last, const Rows& rows, const char* method,
                  std::vector<int64_t>& failed, JobReport& report, const Function& function) {
  while (first < last) {
    Run run(*this, first, last, rows);
    int64_t row = SHOAL_OK;
    std::string message;
    try {
      row = function(run);
      if (row == SHOAL_OK) return;
      message = run.message();
      if (row < 0 || row >= last - first) {
        message = "the kernel returned " + std::to_string(row) +
                  ", expected SHOAL_OK or a row below " + std::to_string(last - first);
        row = SHOAL_OK;
      }
    } catch (const std::exception& error) {
      message = std::string("the kernel threw: ") + error.what();
    } catch (...) {
      message = "the kernel threw an exception that is not a std::exception";
    }
    if (row == SHOAL_OK) {
      // It is unknown which slots were completed.
      for (int64_t slot = first; slot < last; ++slot) fail(slot, method, message, failed, report);
      return;
    }
    fail(first + row, method, message, failed, report);
    first += row + 1;
  }
}

const double* Engine::parameters(int64_t slot) const {
  if (slot_parameters_.empty()) return parameters_.data();
  return slot_parameters_.data() + static_cast<size_t>(slot) * parameters_.size();
}

void Engine::set_parameter(int64_t slot, size_t number, double value) {
  if (slot_parameters_.empty()) {
    for (int64_t k = 0; k < options_.slots; ++k) {
      slot_parameters_.insert(slot_parameters_.end(), parameters_.begin(), parameters_.end());
    }
  }
  slot_parameters_[static_cast<size_t>(slot) * parameters_.size() + number] = value;
  // If all slots have equal parameters again, share them: runs can then be long. Checked only for
  // the last slot, because a caller that sets all slots sets it last.
  if (slot != options_.slots - 1) return;
  const auto row = slot_parameters_.end() - static_cast<std::ptrdiff_t>(parameters_.size());
  for (size_t k = 0; k < slot_parameters_.size(); ++k) {
    if (slot_parameters_[k] != row[static_cast<std::ptrdiff_t>(k % parameters_.size())]) return;
  }
  parameters_.assign(row, slot_parameters_.end());
  slot_parameters_.clear();
}

/// Returns the end of the run that starts at `first`: its slots are all stepped or all reset, with
/// the same parameters.
int64_t Engine::run_end(int64_t first, int64_t last, bool resets) const {
  int64_t end = first + 1;
  if (!slot_parameters_.empty() && (resets || !kernel_.only_reset_has_parameters)) return end;
  if (options_.mode == Autoreset::kDisabled) return last;
  while (end < last && (columns_.finished[end] != 0) == resets) ++end;
  return end;
}

void Engine::step(int64_t first, int64_t last, const Rows& rows, JobReport& report) {
  const auto count = static_cast<size_t>(last - first);
  std::memset(rows.rewards + first, 0, count * sizeof(double));
  std::memset(rows.terminated + first, 0, count);
  std::memset(rows.truncated + first, 0, count);
  std::vector<int64_t> failed;
  for (int64_t slot = first; slot < last;) {
    // In same-step mode, only failed slots are still finished.
    const bool resets = options_.mode != Autoreset::kDisabled && columns_.finished[slot] != 0;
    const int64_t end = run_end(slot, last, resets);
    if (resets) {
      begin_run(slot, end, option_defaults_.data(), rows, failed, report);
      // settle() counts this step, but a reset is not a step of the episode.
      std::fill_n(columns_.episode_length + slot, end - slot, int64_t{-1});
    } else {
      step_run(slot, end, rows, failed, report);
    }
    slot = end;
  }
  settle(first, last, rows, report);
  if (options_.mode == Autoreset::kSameStep) restart_ended(first, last, rows, failed, report);
  mark(failed);
  keep_newest(first, last, rows);
}

void Engine::reset(int64_t first, int64_t last, const Seeds& seeds, size_t position,
                   const double* options, const Rows& rows, JobReport& report) {
  for (int64_t slot = first; slot < last; ++slot) {
    const size_t k = position + static_cast<size_t>(slot - first);
    if (seeds.count(k) == 0) continue;
    randoms_[slot] =
        seeded(options_.generator, seeds.words.data() + seeds.begin(k), seeds.count(k));
    std::memset(states_.data() + static_cast<size_t>(slot) * kernel_.state_bytes, 0,
                kernel_.state_bytes);
    begun_[static_cast<size_t>(slot)] |= kSeeded;
  }
  std::vector<int64_t> failed;
  const int64_t run = slot_parameters_.empty() ? last - first : 1;
  for (int64_t slot = first; slot < last; slot += run) {
    begin_run(slot, slot + run, options, rows, failed, report);
  }
  mark(failed);
  keep_newest(first, last, rows);
}

void Engine::step_run(int64_t first, int64_t last, const Rows& rows, std::vector<int64_t>& failed,
                      JobReport& report) {
  call(first, last, rows, "step", failed, report, [&](Run& run) {
    shoal_slots& slots = run.slots();
    const int64_t row = slots.first;
    slots.actions = run.actions();
    slots.rewards = rows.rewards + row;
    slots.terminated = rows.terminated + row;
    slots.truncated = rows.truncated + row;
    return kernel_.step(&slots);
  });
  if (options_.check_nan) report_nan(first, last, rows, true, failed, report);
}

void Engine::begin_run(int64_t first, int64_t last, const double* options, const Rows& rows,
                       std::vector<int64_t>& failed, JobReport& report) {
  const double time = options_.statistics ? now() : 0.0;
  for (int64_t slot = first; slot < last; ++slot) {
    columns_.finished[slot] = 0;
    columns_.episode_length[slot] = 0;
    columns_.episode_return[slot] = 0.0;
    columns_.episode_start[slot] = time;
    begun_[static_cast<size_t>(slot)] |= kBegun;
    rows.rewards[slot] = 0.0;
    rows.terminated[slot] = rows.truncated[slot] = 0;
  }
  call(first, last, rows, "reset", failed, report, [&](Run& run) {
    run.slots().options = options;
    return kernel_.reset(&run.slots());
  });
  if (options_.check_nan) report_nan(first, last, rows, false, failed, report);
}

/// Updates lengths, time limits, flags and statistics after a step. The loops are separate so that
/// compilers vectorize them.
void Engine::settle(int64_t first, int64_t last, const Rows& rows, JobReport& report) {
  int64_t* lengths = columns_.episode_length;
  for (int64_t slot = first; slot < last; ++slot) lengths[slot] += 1;
  if (const int64_t limit = options_.max_episode_steps; limit > 0) {
    for (int64_t slot = first; slot < last; ++slot) rows.truncated[slot] |= lengths[slot] >= limit;
  }
  uint8_t* terminated = rows.terminated;
  uint8_t* truncated = rows.truncated;
  uint8_t* finished = columns_.finished;
  uint8_t any_ended = 0;
  for (int64_t slot = first; slot < last; ++slot) {
    // A kernel may write any nonzero number for true.
    terminated[slot] = terminated[slot] != 0;
    truncated[slot] = truncated[slot] != 0;
    finished[slot] = terminated[slot] | truncated[slot];
    any_ended |= finished[slot];
  }
  if (any_ended) report.any_ended.store(true, std::memory_order_relaxed);
  if (!options_.statistics) return;
  for (int64_t slot = first; slot < last; ++slot) {
    columns_.episode_return[slot] += rows.rewards[slot];
  }
  if (!any_ended) return;
  const double time = now();
  for (int64_t slot = first; slot < last; ++slot) {
    if (!(rows.terminated[slot] | rows.truncated[slot])) continue;
    const double seconds = time - columns_.episode_start[slot];
    ended_[static_cast<size_t>(slot)] = {columns_.episode_return[slot],
                                         columns_.episode_length[slot],
                                         std::rint(seconds * 1e6) / 1e6};
  }
}

void Engine::report_nan(int64_t first, int64_t last, const Rows& rows, bool stepped,
                        std::vector<int64_t>& failed, JobReport& report) {
  const char* method = stepped ? "step" : "reset";
  auto report_rows = [&](const shoal_leaf& leaf, const char* column, const std::string& what) {
    for (int64_t row = first; (row = first_nan(leaf, column, row, last)) >= 0; ++row) {
      // The outputs of a failed slot are undefined.
      if (std::find(failed.begin(), failed.end(), row) != failed.end()) continue;
      fail(row, method, "the kernel wrote NaN into " + what, failed, report);
    }
  };
  if (stepped) {
    const shoal_leaf reward{nullptr, SHOAL_FLOAT64, 0, {}, SHOAL_BOX, 0, 0, nullptr, nullptr, 0};
    report_rows(reward, reinterpret_cast<const char*>(rows.rewards), "the reward");
  }
  for (int k = 0; k < kernel_.observation_count; ++k) {
    const shoal_leaf& leaf = kernel_.observations[k];
    report_rows(
        leaf, rows.observations[static_cast<size_t>(k)],
        leaf.name == nullptr ? "the observation" : std::string("observation '") + leaf.name + "'");
  }
}

void Engine::restart_ended(int64_t first, int64_t last, const Rows& rows,
                           std::vector<int64_t>& failed, JobReport& report) {
  auto copy_row = [](const std::vector<char*>& from, const std::vector<char*>& to,
                     const std::vector<size_t>& bytes, size_t row) {
    for (size_t k = 0; k < bytes.size(); ++k) {
      std::memcpy(to[k] + row * bytes[k], from[k] + row * bytes[k], bytes[k]);
    }
  };
  for (int64_t slot = first; slot < last; ++slot) {
    const uint8_t terminated = rows.terminated[slot], truncated = rows.truncated[slot];
    const double reward = rows.rewards[slot];
    if (!(terminated | truncated)) continue;
    const auto row = static_cast<size_t>(slot);
    copy_row(rows.observations, final_observations_.data(), observation_bytes_, row);
    copy_row(rows.infos, final_infos_.data(), info_bytes_, row);
    begin_run(slot, slot + 1, option_defaults_.data(), rows, failed, report);
    rows.rewards[slot] = reward;
    if (rewards_info_ >= 0) {
      const auto k = static_cast<size_t>(rewards_info_);
      std::memcpy(rows.infos[k] + row * info_bytes_[k],
                  final_infos_.data()[k] + row * info_bytes_[k], info_bytes_[k]);
    }
    rows.terminated[slot] = terminated;
    rows.truncated[slot] = truncated;
  }
}

void Engine::keep_newest(int64_t first, int64_t last, const Rows& rows) {
  const auto start = static_cast<size_t>(first), count = static_cast<size_t>(last - first);
  for (size_t k = 0; k < observation_bytes_.size(); ++k) {
    const size_t bytes = observation_bytes_[k];
    if (rows.observations[k] == result_buffer_.observations[k]) continue;
    std::memcpy(result_buffer_.observations[k] + start * bytes,
                rows.observations[k] + start * bytes, count * bytes);
  }
}

void Engine::draw(int64_t slot, shoal_canvas& canvas) const {
  Run run(*this, slot, slot + 1, result_buffer_);
  kernel_.draw(&run.slots(), &canvas);
}

}  // namespace shoal
