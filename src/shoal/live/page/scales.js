// Where numbers lie on an axis, and which of them are marked.

/** A scale from `[low, high]` to `[from, to]`. */
export function linear([low, high], [from, to]) {
  const factor = high > low ? (to - from) / (high - low) : 0;
  return (value) => from + (value - low) * factor;
}

/** The step that is 1, 2 or 5 times a power of ten and makes about `wanted` steps of `length`. */
function niceStep(length, wanted) {
  const rough = length / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  for (const factor of [1, 2, 5]) if (rough <= factor * power) return factor * power;
  return 10 * power;
}

const CLOCK_STEPS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
];

/** The step that a clock would have: 5 s, 30 s, 2 minutes. */
function clockStep(length, wanted) {
  return (
    CLOCK_STEPS.find((step) => length / step <= wanted) ?? niceStep(length / 86400, wanted) * 86400
  );
}

function multiples(step, low, high) {
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1)
    found.push(k * step);
  return found;
}

/** Round numbers between `low` and `high`, about as many as wanted. */
export function marks(low, high, wanted) {
  return high > low ? multiples(niceStep(high - low, wanted), low, high) : [low];
}

/** Round times, in seconds. */
export function clockMarks(low, high, wanted) {
  return high > low ? multiples(clockStep(high - low, wanted), low, high) : [low];
}

/** Marks around `low` and `high`; an axis from the first to the last of them seldom moves. */
export function marksAround(low, high, wanted) {
  if (high <= low) [low, high] = low < 0 ? [low - 1, high + 1] : [0, high * 2 || 1];
  const step = niceStep(high - low, wanted);
  return multiples(
    step,
    Math.floor(low / step + 1e-9) * step,
    Math.ceil(high / step - 1e-9) * step,
  );
}

/** Powers of ten between `low` and `high`; with their doubles and fives where those are few. */
export function logMarks(low, high) {
  const factors = high / low < 30 ? [1, 2, 5] : [1];
  const found = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1) {
    for (const factor of factors) {
      const value = factor * 10 ** power;
      if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) found.push(value);
    }
  }
  return found;
}
