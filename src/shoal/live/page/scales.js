// Scales of axes, and the values to mark on them.

/** A scale from `[low, high]` to `[from, to]`. */
export function linear([low, high], [from, to]) {
  const factor = high > low ? (to - from) / (high - low) : 0;
  return (value) => from + (value - low) * factor;
}

/** Returns 1, 2 or 5 times a power of ten, such that there are about `wanted` steps in `length`. */
function niceStep(length, wanted) {
  const rough = length / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  for (const factor of [1, 2, 5]) if (rough <= factor * power) return factor * power;
  return 10 * power;
}

const TIME_STEPS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
];

/** Returns a round duration in seconds: 5 s, 30 s, 2 minutes. */
function timeStep(length, wanted) {
  return (
    TIME_STEPS.find((step) => length / step <= wanted) ?? niceStep(length / 86400, wanted) * 86400
  );
}

function multiples(step, low, high) {
  const values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1)
    values.push(k * step);
  return values;
}

/** Returns about `wanted` round numbers between `low` and `high`. */
export function marks(low, high, wanted) {
  return high > low ? multiples(niceStep(high - low, wanted), low, high) : [low];
}

/** Returns about `wanted` round durations, in seconds. */
export function timeMarks(low, high, wanted) {
  return high > low ? multiples(timeStep(high - low, wanted), low, high) : [low];
}

/** Returns round numbers from at most `low` to at least `high`, so that the axis rarely changes. */
export function marksAround(low, high, wanted) {
  if (high <= low) [low, high] = low < 0 ? [low - 1, high + 1] : [0, high * 2 || 1];
  const step = niceStep(high - low, wanted);
  return multiples(
    step,
    Math.floor(low / step + 1e-9) * step,
    Math.ceil(high / step - 1e-9) * step,
  );
}

/** Returns powers of ten between `low` and `high`; in a small range also their 2- and 5-fold. */
export function logMarks(low, high) {
  const factors = high / low < 30 ? [1, 2, 5] : [1];
  const values = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1) {
    for (const factor of factors) {
      const value = factor * 10 ** power;
      if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) values.push(value);
    }
  }
  return values;
}
