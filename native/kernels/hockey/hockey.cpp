// The kernels of laser hockey, one per shape of actions.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "../builtin_kernels.h"
#include "../kernel_builder.h"
#include "batch_step.h"
#include "drawing.h"
#include "rules.h"
#include "scripted_policy.h"

namespace shoal {

using namespace hockey;

namespace {

struct Parameters {
  double mode, keep_mode, opponent;
};

struct Options {
  double mode, one_starting;  // negative: the mode of the parameter; alternate
};

/// The players whose actions the caller provides. With kOne, the second one is scripted or idle.
enum Players { kOne = 1, kBoth = 2 };

/// A continuous action; without shooting it has three elements.
template <int numbers>
struct Continuous {
  using Number = float;
  static constexpr int kCount = numbers;

  static bool is_valid(const float* action) {
    return are_within<numbers>(action, std::numeric_limits<float>::infinity());
  }
  static constexpr const char* kInvalid = "an action is not a finite number";

  static PlayerAction decode(const float* action) {
    return {action[0], action[1], action[2], numbers > 3 ? action[3] : 0.0f};
  }
};

/// A discrete action: nothing, x-, x+, y-, y+, turn-, turn+ or shoot.
struct Discrete {
  using Number = int64_t;
  static constexpr int kCount = 1;

  static bool is_valid(const int64_t* action) { return *action >= 0 && *action < 8; }
  static constexpr const char* kInvalid = "an action is not an integer from 0 to 7";

  static PlayerAction decode(const int64_t* action) {
    auto either = [&](int64_t less, int64_t more) {
      return *action == less ? -1.0f : *action == more ? 1.0f : 0.0f;
    };
    return {either(1, 2), either(3, 4), either(5, 6), *action == 7 ? 1.0f : 0.0f};
  }
};

/// Writes the results of a slot for one player.
template <Players players, int player>
void write_player_results(const shoal_slots* slots, int64_t row) {
  const State& state = static_cast<const State*>(slots->state)[row];
  const int64_t place = row * players + player;
  observe<player>(state, static_cast<float*>(slots->observations[0]) + place * kObservationSize);
  const Score score = hockey::score<player>(state);
  static_cast<int64_t*>(slots->infos[0])[place] = score.winner;
  static_cast<double*>(slots->infos[1])[place] = score.closeness;
  static_cast<double*>(slots->infos[2])[place] = score.touch;
  static_cast<double*>(slots->infos[3])[place] = score.direction;
  const bool is_step = slots->rewards != nullptr;
  if (players == kBoth) {
    static_cast<double*>(slots->infos[4])[place] = is_step ? score.reward() : 0.0;
  }
  if (player == 0 && is_step) slots->rewards[row] = score.reward();
}

template <Players players>
void write_results(const shoal_slots* slots, int64_t row) {
  write_player_results<players, 0>(slots, row);
  if constexpr (players == kBoth) write_player_results<players, 1>(slots, row);
}

template <Players players>
int64_t reset(const shoal_slots* slots) {
  auto* states = static_cast<State*>(slots->state);
  const auto& parameters = *reinterpret_cast<const Parameters*>(slots->parameters);
  const auto& options = *reinterpret_cast<const Options*>(slots->options);
  const double mode = options.mode < 0.0 ? parameters.mode : options.mode;
  const Start start{static_cast<Mode>(static_cast<int>(mode)), parameters.keep_mode != 0.0,
                    static_cast<Opponent>(static_cast<int>(parameters.opponent)),
                    options.one_starting < 0.0 ? -1 : options.one_starting == 0.0};
  for (int64_t k = 0; k < slots->count; ++k) {
    begin(states[k], start, slots->random[k]);
    states[k].phase = first_phase(slots->random[k]);
    write_results<players>(slots, k);
  }
  return SHOAL_OK;
}

/// Whether all numbers of a state are in range. Users can write arbitrary values.
bool is_in_range(const State& state) {
  constexpr float kMax = 1e5f;
  constexpr size_t kNumbers = offsetof(State, time) / sizeof(float);
  return are_within<kNumbers>(&state.rackets[0].x, kMax);
}

/// The action of a scripted second player.
PlayerAction opponent_action(State& state, shoal_random& random) {
  float observation[kObservationSize];
  observe<1>(state, observation);
  state.phase = next_phase(state.phase, random);
  return scripted_action(observation, state.opponent == Opponent::kWeak, state.phase);
}

/// The actions of both players of a match: the array from the caller if it already has this form,
/// otherwise `scratch`.
template <Players players, class Action>
const PlayerAction* player_actions(const typename Action::Number* action, State& state,
                                   shoal_random& random, PlayerAction (&scratch)[2]) {
  const bool is_scripted = state.opponent != Opponent::kNone;
  if constexpr (players == kBoth && std::is_same_v<Action, Continuous<4>>) {
    if (!is_scripted) return reinterpret_cast<const PlayerAction*>(action);
  }
  scratch[0] = Action::decode(action);
  scratch[1] = is_scripted        ? opponent_action(state, random)
               : players == kBoth ? Action::decode(action + Action::kCount)
                                  : PlayerAction{0.0f, 0.0f, 0.0f, 0.0f};
  return scratch;
}

/// The reason why a match cannot be stepped, or null.
template <Players players, class Action>
const char* rejection_reason(const typename Action::Number* action, const State& state) {
  if (!is_in_range(state)) return "the state has numbers that are out of range";
  const bool both_act = players == kBoth && state.opponent == Opponent::kNone;
  const bool is_valid =
      Action::is_valid(action) && (!both_act || Action::is_valid(action + Action::kCount));
  return is_valid ? nullptr : Action::kInvalid;
}

template <Players players, class Action>
int64_t step(const shoal_slots* slots) {
  auto* states = static_cast<State*>(slots->state);
  const auto* actions = static_cast<const typename Action::Number*>(slots->actions[0]);
  for (int64_t first = 0; first < slots->count; first += kLanes) {
    const int count = static_cast<int>(std::min<int64_t>(kLanes, slots->count - first));
    const PlayerAction* decoded[kLanes];
    PlayerAction scratch[kLanes][2];
    const char* reason = nullptr;
    int valid_count = 0;
    for (; valid_count < count; ++valid_count) {
      const int64_t row = first + valid_count;
      const auto* action = actions + row * players * Action::kCount;
      reason = rejection_reason<players, Action>(action, states[row]);
      if (reason != nullptr) break;
      decoded[valid_count] = player_actions<players, Action>(
          action, states[row], slots->random[row], scratch[valid_count]);
    }
    for (int k = valid_count; k < kLanes; ++k) decoded[k] = valid_count > 0 ? decoded[0] : nullptr;
    if (valid_count > 0) step_block(states + first, valid_count, decoded);
    for (int64_t row = first; row < first + valid_count; ++row) {
      State& state = states[row];
      state.time += 1;
      slots->terminated[row] = state.winner != 0;
      slots->truncated[row] = state.winner == 0 && state.time > max_steps(state.mode);
      write_results<players>(slots, row);
    }
    if (reason != nullptr) return shoal_fail(slots, first + valid_count, reason);
  }
  return SHOAL_OK;
}

constexpr shoal_leaf kObservationOfOne[] = {array(SHOAL_FLOAT32, kObservationSize)};
constexpr shoal_leaf kObservationOfBoth[] = {
    {nullptr, SHOAL_FLOAT32, 2, {2, kObservationSize}, SHOAL_BOX, 0.0, 0.0, nullptr, nullptr, 0}};
constexpr shoal_leaf kInfosOfOne[] = {
    number(SHOAL_INT64, "winner"),
    number(SHOAL_FLOAT64, "reward_closeness_to_puck"),
    number(SHOAL_FLOAT64, "reward_touch_puck"),
    number(SHOAL_FLOAT64, "reward_puck_direction"),
};
constexpr shoal_leaf kInfosOfBoth[] = {
    array(SHOAL_INT64, 2, "winner"),
    array(SHOAL_FLOAT64, 2, "reward_closeness_to_puck"),
    array(SHOAL_FLOAT64, 2, "reward_touch_puck"),
    array(SHOAL_FLOAT64, 2, "reward_puck_direction"),
    array(SHOAL_FLOAT64, 2, SHOAL_REWARDS),
};
constexpr shoal_leaf kFields[] = {
    {"observation", SHOAL_FLOAT32, 1, {kObservationSize}, SHOAL_BOX, 0, 0, nullptr, nullptr, 0},
    {"shot", SHOAL_FLOAT32, 1, {2}, SHOAL_BOX, 0, 0, nullptr, nullptr, offsetof(State, shot)},
    field("puck_spin", SHOAL_FLOAT32, offsetof(State, puck_spin)),
    field("time", SHOAL_INT32, offsetof(State, time)),
    field("touching", SHOAL_UINT8, offsetof(State, touching)),
    field("winner", SHOAL_INT8, offsetof(State, winner)),
};
constexpr shoal_number kParameters[] = {{"mode", 0.0}, {"keep_mode", 1.0}, {"opponent", 0.0}};
constexpr shoal_number kOptions[] = {{"mode", -1.0}, {"one_starting", -1.0}};

constexpr shoal_leaf kThreeNumbers[] = {array(SHOAL_FLOAT32, 3)};
constexpr shoal_leaf kFourNumbers[] = {array(SHOAL_FLOAT32, 4)};
constexpr shoal_leaf kSixNumbers[] = {array(SHOAL_FLOAT32, 6)};
constexpr shoal_leaf kEightNumbers[] = {array(SHOAL_FLOAT32, 8)};
constexpr shoal_leaf kOneChoice[] = {number(SHOAL_INT64)};
constexpr shoal_leaf kTwoChoices[] = {array(SHOAL_INT64, 2)};

template <Players players, class Action>
constexpr shoal_kernel kernel(const char* name, const shoal_leaf (&actions)[1]) {
  KernelBuilder made(name, sizeof(State));
  made.actions(actions).fields(kFields).parameters(kParameters).options(kOptions);
  made.functions(reset<players>, step<players, Action>)
      .images(draw, 600, 480, 50)
      .only_reset_has_parameters();
  if (players == kBoth) return made.observations(kObservationOfBoth).infos(kInfosOfBoth);
  return made.observations(kObservationOfOne).infos(kInfosOfOne);
}

}  // namespace

const shoal_kernel kHockeyKernels[6] = {
    kernel<kBoth, Continuous<4>>("Hockey", kEightNumbers),
    kernel<kBoth, Continuous<3>>("HockeyWithoutShots", kSixNumbers),
    kernel<kBoth, Discrete>("HockeyDiscrete", kTwoChoices),
    kernel<kOne, Continuous<4>>("HockeyOne", kFourNumbers),
    kernel<kOne, Continuous<3>>("HockeyOneWithoutShots", kThreeNumbers),
    kernel<kOne, Discrete>("HockeyOneDiscrete", kOneChoice),
};

}  // namespace shoal
