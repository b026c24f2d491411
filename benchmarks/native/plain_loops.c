/* The environments of the kernels as plain loops in C, the baseline of the kernels.
 *
 * Each loop steps many environments of one kind, with a time limit and autoreset, without checks
 * and threads. The results equal those of the kernels up to rounding.
 */
#include <math.h>
#include <shoal_kernel.h>
#include <string.h>

#define PI 3.14159265358979323846

typedef struct {
  int64_t count, limit;
  double* state;        /* four numbers per environment */
  int64_t* length;      /* steps of the current episode */
  uint8_t* done;        /* whether the next step resets */
  shoal_random* random; /* one PCG64 generator per environment, as in the kernels */
  const void* action;   /* int64_t, or float if continuous */
  void* observation;
  double* reward;
  uint8_t *terminated, *truncated;
  /* Tables of transitions: the outcomes of a pair begin at start[state * actions + action]. */
  int64_t actions, initial_count;
  const int64_t *start, *next;
  const double *cumulative, *rewards, *initial, *probabilities;
  const uint8_t* ends;
  const int8_t* masks; /* six per state, or NULL */
  double* probability; /* written in every step, like mask */
  int8_t* mask;
} vector;

static double clip(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}

static void finish(const vector* v, int64_t k, double reward, int terminated) {
  v->reward[k] = reward;
  v->terminated[k] = (uint8_t)terminated;
  v->truncated[k] = v->limit > 0 && ++v->length[k] >= v->limit;
  v->done[k] = v->terminated[k] | v->truncated[k];
}

static void restart(const vector* v, int64_t k) {
  v->reward[k] = 0.0;
  v->terminated[k] = v->truncated[k] = v->done[k] = 0;
  v->length[k] = 0;
}

void cartpole(const vector* v) {
  const int64_t* action = v->action;
  for (int64_t k = 0; k < v->count; ++k) {
    double* s = v->state + 4 * k;
    float* o = (float*)v->observation + 4 * k;
    if (v->done[k]) {
      for (int i = 0; i < 4; ++i) s[i] = shoal_random_uniform(&v->random[k], -0.05, 0.05);
      restart(v, k);
    } else {
      const double force = action[k] == 1 ? 10.0 : -10.0;
      const double c = cos(s[2]), n = sin(s[2]);
      const double push = (force + 0.05 * s[3] * s[3] * n) / 1.1;
      const double turn = (9.8 * n - c * push) / (0.5 * (4.0 / 3.0 - 0.1 * c * c / 1.1));
      const double pull = push - 0.05 * turn * c / 1.1;
      s[0] += 0.02 * s[1];
      s[1] += 0.02 * pull;
      s[2] += 0.02 * s[3];
      s[3] += 0.02 * turn;
      finish(v, k, 1.0, fabs(s[0]) > 2.4 || fabs(s[2]) > 12 * 2 * PI / 360);
    }
    for (int i = 0; i < 4; ++i) o[i] = (float)s[i];
  }
}

void mountain_car(const vector* v) {
  const int64_t* action = v->action;
  for (int64_t k = 0; k < v->count; ++k) {
    double* s = v->state + 4 * k;
    float* o = (float*)v->observation + 2 * k;
    if (v->done[k]) {
      s[0] = shoal_random_uniform(&v->random[k], -0.6, -0.4);
      s[1] = 0.0;
      restart(v, k);
    } else {
      s[1] = clip(s[1] + (double)(action[k] - 1) * 0.001 - cos(3 * s[0]) * 0.0025, -0.07, 0.07);
      s[0] = clip(s[0] + s[1], -1.2, 0.6);
      if (s[0] == -1.2 && s[1] < 0) s[1] = 0;
      finish(v, k, -1.0, s[0] >= 0.5 && s[1] >= 0);
    }
    o[0] = (float)s[0];
    o[1] = (float)s[1];
  }
}

void mountain_car_continuous(const vector* v) {
  const float* action = v->action;
  for (int64_t k = 0; k < v->count; ++k) {
    double* s = v->state + 4 * k;
    float* o = (float*)v->observation + 2 * k;
    if (v->done[k]) {
      s[0] = shoal_random_uniform(&v->random[k], -0.6, -0.4);
      s[1] = 0.0;
      restart(v, k);
    } else {
      const double a = action[k];
      s[1] = clip(s[1] + clip(a, -1, 1) * 0.0015 - 0.0025 * cos(3 * s[0]), -0.07, 0.07);
      s[0] = clip(s[0] + s[1], -1.2, 0.6);
      if (s[0] == -1.2 && s[1] < 0) s[1] = 0;
      const int arrived = s[0] >= 0.45 && s[1] >= 0;
      finish(v, k, (arrived ? 100.0 : 0.0) - a * a * 0.1, arrived);
    }
    o[0] = (float)s[0];
    o[1] = (float)s[1];
  }
}

void pendulum(const vector* v) {
  const float* action = v->action;
  for (int64_t k = 0; k < v->count; ++k) {
    double* s = v->state + 4 * k;
    float* o = (float*)v->observation + 3 * k;
    if (v->done[k]) {
      s[0] = shoal_random_uniform(&v->random[k], -PI, PI);
      s[1] = shoal_random_uniform(&v->random[k], -1.0, 1.0);
      restart(v, k);
    } else {
      const double u = clip(action[k], -2, 2);
      double angle = fmod(s[0] + PI, 2 * PI);
      if (angle < 0) angle += 2 * PI;
      angle -= PI;
      const double cost = angle * angle + 0.1 * s[1] * s[1] + 0.001 * u * u;
      s[1] = clip(s[1] + (15.0 * sin(s[0]) + 3.0 * u) * 0.05, -8, 8);
      s[0] += s[1] * 0.05;
      finish(v, k, -cost, 0);
    }
    o[0] = (float)cos(s[0]);
    o[1] = (float)sin(s[0]);
    o[2] = (float)s[1];
  }
}

static void acrobot_slope(const double* s, double torque, double* d) {
  const double c = cos(s[1]), n = sin(s[1]);
  const double d1 = 0.25 + 1.25 + c + 2.0, d2 = 0.25 + 0.5 * c + 1.0;
  const double p2 = 4.9 * cos(s[0] + s[1] - PI / 2);
  const double p1 = -0.5 * s[3] * s[3] * n - s[3] * s[2] * n + 14.7 * cos(s[0] - PI / 2) + p2;
  d[0] = s[2];
  d[1] = s[3];
  d[3] = (torque + d2 / d1 * p1 - 0.5 * s[2] * s[2] * n - p2) / (1.25 - d2 * d2 / d1);
  d[2] = -(d2 * d[3] + p1) / d1;
}

void acrobot(const vector* v) {
  const int64_t* action = v->action;
  for (int64_t k = 0; k < v->count; ++k) {
    double* s = v->state + 4 * k;
    float* o = (float*)v->observation + 6 * k;
    if (v->done[k]) {
      for (int i = 0; i < 4; ++i) s[i] = shoal_random_uniform(&v->random[k], -0.1, 0.1);
      restart(v, k);
    } else {
      const double torque = (double)(action[k] - 1);
      double y[4], k1[4], k2[4], k3[4], k4[4];
      acrobot_slope(s, torque, k1);
      for (int i = 0; i < 4; ++i) y[i] = s[i] + 0.1 * k1[i];
      acrobot_slope(y, torque, k2);
      for (int i = 0; i < 4; ++i) y[i] = s[i] + 0.1 * k2[i];
      acrobot_slope(y, torque, k3);
      for (int i = 0; i < 4; ++i) y[i] = s[i] + 0.2 * k3[i];
      acrobot_slope(y, torque, k4);
      for (int i = 0; i < 4; ++i) s[i] += 0.2 / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
      for (int i = 0; i < 2; ++i) {
        while (s[i] > PI) s[i] -= 2 * PI;
        while (s[i] < -PI) s[i] += 2 * PI;
      }
      s[2] = clip(s[2], -4 * PI, 4 * PI);
      s[3] = clip(s[3], -9 * PI, 9 * PI);
      const int up = -cos(s[0]) - cos(s[1] + s[0]) > 1.0;
      finish(v, k, up ? 0.0 : -1.0, up);
    }
    o[0] = (float)cos(s[0]);
    o[1] = (float)sin(s[0]);
    o[2] = (float)cos(s[1]);
    o[3] = (float)sin(s[1]);
    o[4] = (float)s[2];
    o[5] = (float)s[3];
  }
}

/* A hand of cards: the sum with aces counted as 1, and whether it has an ace. */
static int64_t value(const double* hand) {
  return (int64_t)(hand[1] != 0 && hand[0] <= 11 ? hand[0] + 10 : hand[0]);
}

static void take(double* hand, shoal_random* random) {
  const int card = 1 + (int)shoal_random_below(random, 13);
  hand[0] += card < 10 ? card : 10;
  if (card == 1) hand[1] = 1;
}

void blackjack(const vector* v) {
  const int64_t* action = v->action;
  int64_t* observation = v->observation;
  for (int64_t k = 0; k < v->count; ++k) {
    double *player = v->state + 4 * k, *dealer = player + 2;
    if (v->done[k]) {
      player[0] = player[1] = dealer[0] = dealer[1] = 0;
      take(dealer, &v->random[k]);
      observation[v->count + k] = (int64_t)dealer[0];
      take(dealer, &v->random[k]);
      take(player, &v->random[k]);
      take(player, &v->random[k]);
      restart(v, k);
    } else if (action[k] != 0) {
      take(player, &v->random[k]);
      finish(v, k, value(player) > 21 ? -1.0 : 0.0, value(player) > 21);
    } else {
      while (value(dealer) < 17) take(dealer, &v->random[k]);
      const int64_t mine = value(player), theirs = value(dealer) > 21 ? 0 : value(dealer);
      finish(v, k, (double)(mine > theirs) - (double)(mine < theirs), 1);
    }
    observation[k] = value(player);
    observation[2 * v->count + k] = player[1] != 0 && player[0] <= 11;
  }
}

static int64_t chosen(const double* cumulative, int64_t count, double number) {
  for (int64_t i = 0; i < count; ++i) {
    if (cumulative[i] > number) return i;
  }
  return 0;
}

void table(const vector* v) {
  const int64_t* action = v->action;
  int64_t* s = v->observation;
  for (int64_t k = 0; k < v->count; ++k) {
    const double number = shoal_random_double(&v->random[k]);
    if (v->done[k]) {
      s[k] = chosen(v->initial, v->initial_count, number);
      v->probability[k] = 1.0;
      restart(v, k);
      continue;
    }
    const int64_t pair = s[k] * v->actions + action[k], first = v->start[pair];
    const int64_t i = first + chosen(v->cumulative + first, v->start[pair + 1] - first, number);
    s[k] = v->next[i];
    v->probability[k] = v->probabilities[i];
    if (v->masks) memcpy(v->mask + 6 * k, v->masks + 6 * s[k], 6);
    finish(v, k, v->rewards[i], v->ends[i]);
  }
}
