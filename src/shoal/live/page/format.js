// Puts numbers into words: 45.2 k, 12 µs, 1:05:00. What is not known is a dash.

const DASH = "–";
const GAP = "\u202f"; // a narrow space that does not break

const PREFIXES = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

const minus = (text) => text.replaceAll("-", "−");

const unknown = (value) => value === null || value === undefined;

/** Three digits that count: 0.123, 12.3, 1230. */
function digits(value) {
  if (value === 0) return "0";
  const size = Math.abs(Number(value.toPrecision(3)));
  if (size < 0.001) return minus(value.toExponential(1));
  return minus(value.toFixed(Math.max(0, Math.min(3, 2 - Math.floor(Math.log10(size))))));
}

/** The same text without zeros at the end of a fraction, as marks of an axis have it. */
const trimmed = (text) => text.replace(/\.(\d*?)0+(?=\D|$)/, (_, kept) => (kept ? `.${kept}` : ""));

/** A number in short: 45.2 k. */
export function compact(value) {
  if (unknown(value)) return DASH;
  // What rounds up to the next prefix has it: 999 950 is 1.00 M.
  const size = Math.abs(value) * (1 + 5e-4);
  for (const [unit, prefix] of PREFIXES)
    if (size >= unit) return digits(value / unit) + GAP + prefix;
  return digits(value);
}

/** A mark of an axis: 20 k. */
export const mark = (value) => trimmed(compact(Number(value.toPrecision(6))));

/** A number that is counted, in full: 1 234 567. */
export function whole(value) {
  if (unknown(value)) return DASH;
  if (Math.abs(value) >= 1e10) return compact(value);
  return minus(String(value)).replace(/\B(?=(\d{3})+$)/g, GAP);
}

/** A mean or a loss: 21.5. */
export function figure(value) {
  if (unknown(value)) return DASH;
  if (Math.abs(value) >= 1e5) return compact(value);
  return digits(value);
}

/** How long something took: 12.0 µs. */
export function span(seconds) {
  if (unknown(seconds)) return DASH;
  const size = seconds * (1 + 5e-4);
  if (size < 1e-6) return digits(seconds * 1e9) + GAP + "ns";
  if (size < 1e-3) return digits(seconds * 1e6) + GAP + "µs";
  if (size < 1) return digits(seconds * 1e3) + GAP + "ms";
  return digits(seconds) + GAP + "s";
}

/** A mark of an axis of times: 10 µs. */
export const spanMark = (seconds) => trimmed(span(seconds));

/** Hours, minutes and seconds, as a clock shows them: 1:05:00. */
export function clock(seconds) {
  if (unknown(seconds)) return DASH;
  const all = Math.max(0, Math.floor(seconds));
  const two = (value) => String(value).padStart(2, "0");
  const [hours, minutes] = [Math.floor(all / 3600), Math.floor(all / 60) % 60];
  return hours ? `${hours}:${two(minutes)}:${two(all % 60)}` : `${minutes}:${two(all % 60)}`;
}

/** The time of day of a moment in unix seconds: 14:05:09. */
export function timeOfDay(moment) {
  return new Date(moment * 1000).toLocaleTimeString("en-GB");
}

/** A share of one, in percent: 83 %, and 0.8 % where that is little. */
export function percent(share) {
  if (unknown(share)) return DASH;
  const value = share * 100;
  return (Math.abs(value) < 9.95 && value !== 0 ? value.toFixed(1) : value.toFixed(0)) + GAP + "%";
}

/** Numbers of slots, first to last: 0–31. */
export function slotRange([first, last]) {
  return first === last ? String(first) : `${first}–${last}`;
}

/** A count with its noun: 1 restart, 2 restarts. */
export function several(count, noun) {
  return `${whole(count)} ${noun}${count === 1 ? "" : "s"}`;
}
