// Blackjack with an infinite deck, as in gymnasium.envs.toy_text.blackjack.
#include <cstdio>

#include "../builtin_kernels.h"
#include "../kernel_builder.h"

namespace shoal {

namespace {

/// The relevant properties of a hand of cards.
struct Hand {
  int64_t sum;  // counting aces as one
  int64_t cards;
  int64_t has_ace;

  void take(int64_t card) {
    sum += card;
    cards += 1;
    has_ace |= card == 1;
  }
  bool has_usable_ace() const { return has_ace && sum + 10 <= 21; }
  int64_t value() const { return has_usable_ace() ? sum + 10 : sum; }
  bool is_bust() const { return value() > 21; }
  int64_t score() const { return is_bust() ? 0 : value(); }
  bool is_natural() const { return cards == 2 && has_ace && sum == 11; }
};

struct State {
  Hand player, dealer;
  int64_t shown;       // the dealer's first card
  int64_t suit, face;  // of that card, for rendering: "CDHS"[suit]; for a ten "JQK"[face]
};

struct Parameters {
  double natural, sab;
};

int64_t draw_card_value(shoal_random* random) {
  const auto card = static_cast<int64_t>(shoal_random_below(random, 13)) + 1;
  return card < 10 ? card : 10;
}

void observe(const State& state, const shoal_slots* slots, int64_t k) {
  static_cast<int64_t*>(slots->observations[0])[k] = state.player.value();
  static_cast<int64_t*>(slots->observations[1])[k] = state.shown;
  static_cast<int64_t*>(slots->observations[2])[k] = state.player.has_usable_ace();
}

int64_t reset(const shoal_slots* slots) {
  auto* states = static_cast<State*>(slots->state);
  for (int64_t k = 0; k < slots->count; ++k) {
    shoal_random* random = slots->random + k;
    State s{};
    s.shown = draw_card_value(random);
    s.dealer.take(s.shown);
    s.dealer.take(draw_card_value(random));
    s.player.take(draw_card_value(random));
    s.player.take(draw_card_value(random));
    s.suit = static_cast<int64_t>(shoal_random_below(random, 4));
    if (s.shown == 10) s.face = static_cast<int64_t>(shoal_random_below(random, 3));
    states[k] = s;
    observe(s, slots, k);
  }
  return SHOAL_OK;
}

double finish_hand(State& s, shoal_random* random, const Parameters& p) {
  while (s.dealer.value() < 17) s.dealer.take(draw_card_value(random));
  const int64_t player_score = s.player.score(), dealer_score = s.dealer.score();
  const double reward = static_cast<double>(player_score > dealer_score) -
                        static_cast<double>(player_score < dealer_score);
  if (!s.player.is_natural()) return reward;
  if (p.sab != 0.0) return s.dealer.is_natural() ? reward : 1.0;
  return p.natural != 0.0 && reward == 1.0 ? 1.5 : reward;
}

int64_t step(const shoal_slots* slots) {
  auto* states = static_cast<State*>(slots->state);
  const auto* actions = static_cast<const int64_t*>(slots->actions[0]);
  const auto& p = *reinterpret_cast<const Parameters*>(slots->parameters);
  for (int64_t k = 0; k < slots->count; ++k) {
    State& s = states[k];
    if (actions[k] != 0) {
      s.player.take(draw_card_value(slots->random + k));
      slots->terminated[k] = s.player.is_bust();
      slots->rewards[k] = s.player.is_bust() ? -1.0 : 0.0;
    } else {
      slots->terminated[k] = 1;
      slots->rewards[k] = finish_hand(s, slots->random + k, p);
    }
    observe(s, slots, k);
  }
  return SHOAL_OK;
}

void draw_card(shoal_canvas* canvas, double x, double y, double width, uint32_t colour) {
  const double height = width * 1.4;
  const double edge[] = {x, y, x + width, y, x + width, y + height, x, y + height};
  canvas->polygon(canvas, edge, 4, 0x303030);
  const double inside[] = {x + 2.0,         y + 2.0,          x + width - 2.0, y + 2.0,
                           x + width - 2.0, y + height - 2.0, x + 2.0,         y + height - 2.0};
  canvas->polygon(canvas, inside, 4, colour);
}

void draw(const shoal_slots* slots, shoal_canvas* canvas) {
  const auto& s = *static_cast<const State*>(slots->state);
  const double unit = canvas->width / 24.0, card = 6.0 * unit;
  char text[32];
  canvas->fill(canvas, 0xc4d89e);
  std::snprintf(text, sizeof text, "DEALER %lld", static_cast<long long>(s.shown));
  canvas->text(canvas, 2.0 * unit, 1.5 * unit, 1.4 * unit, text, 0x304020);

  draw_card(canvas, 5.0 * unit, 4.0 * unit, card, 0xfafafa);
  draw_card(canvas, 12.5 * unit, 4.0 * unit, card, 0x7a8fc0);
  const char face = s.shown == 1    ? 'A'
                    : s.shown == 10 ? "JQK"[s.face]
                                    : '0' + static_cast<char>(s.shown);
  const uint32_t ink = s.suit == 1 || s.suit == 2 ? 0xc03030 : 0x202020;
  std::snprintf(text, sizeof text, "%c", face);
  canvas->text(canvas, 5.8 * unit, 4.8 * unit, 2.0 * unit, text, ink);
  std::snprintf(text, sizeof text, "%c", "CDHS"[s.suit]);
  canvas->text(canvas, 8.4 * unit, 8.8 * unit, 2.0 * unit, text, ink);

  canvas->text(canvas, 2.0 * unit, 13.5 * unit, 1.4 * unit, "PLAYER", 0x304020);
  std::snprintf(text, sizeof text, "%lld", static_cast<long long>(s.player.value()));
  canvas->text(canvas, 10.0 * unit, 16.0 * unit, 4.0 * unit, text, 0x202020);
  if (s.player.has_usable_ace()) {
    canvas->text(canvas, 7.0 * unit, 21.0 * unit, 1.2 * unit, "USABLE ACE", 0x304020);
  }
}

constexpr shoal_leaf kObservation[] = {number(SHOAL_INT64), number(SHOAL_INT64),
                                       number(SHOAL_INT64)};
constexpr shoal_leaf kAction[] = {number(SHOAL_INT64)};
constexpr shoal_leaf kFields[] = {
    field("player_sum", SHOAL_INT64, offsetof(State, player) + offsetof(Hand, sum)),
    field("player_cards", SHOAL_INT64, offsetof(State, player) + offsetof(Hand, cards)),
    field("player_has_ace", SHOAL_INT64, offsetof(State, player) + offsetof(Hand, has_ace)),
    field("dealer_sum", SHOAL_INT64, offsetof(State, dealer) + offsetof(Hand, sum)),
    field("dealer_cards", SHOAL_INT64, offsetof(State, dealer) + offsetof(Hand, cards)),
    field("dealer_has_ace", SHOAL_INT64, offsetof(State, dealer) + offsetof(Hand, has_ace)),
    field("shown", SHOAL_INT64, offsetof(State, shown)),
};
constexpr shoal_number kParameters[] = {{"natural", 0.0}, {"sab", 0.0}};

}  // namespace

const shoal_kernel kBlackjack = KernelBuilder("Blackjack", sizeof(State))
                                    .observations(kObservation)
                                    .actions(kAction)
                                    .fields(kFields)
                                    .parameters(kParameters)
                                    .functions(reset, step)
                                    .images(draw, 384, 376, 4);

}  // namespace shoal
