// Formats numbers: 45.2 k, 12 µs, 1:05:00. Unknown values are shown as a dash.

const DASH = "–";
const GAP = "\u202f"; // narrow no-break space

const PREFIXES = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

const minus = (text) => text.replaceAll("-", "−");

const isUnknown = (value) => value === null || value === undefined;

/** Three significant digits: 0.123, 12.3, 1230. */
function digits(value) {
  if (value === 0) return "0";
  const size = Math.abs(Number(value.toPrecision(3)));
  if (size < 0.001) return minus(value.toExponential(1));
  return minus(value.toFixed(Math.max(0, Math.min(3, 2 - Math.floor(Math.log10(size))))));
}

/** Removes trailing zeros of the fraction, for the marks of axes. */
const trimmed = (text) => text.replace(/\.(\d*?)0+(?=\D|$)/, (_, kept) => (kept ? `.${kept}` : ""));

/** A number with a unit prefix: 45.2 k. */
export function compact(value) {
  if (isUnknown(value)) return DASH;
  // Choose the prefix after rounding: 999 950 is 1.00 M.
  const size = Math.abs(value) * (1 + 5e-4);
  for (const [unit, prefix] of PREFIXES)
    if (size >= unit) return digits(value / unit) + GAP + prefix;
  return digits(value);
}

/** A mark of an axis: 20 k. */
export const mark = (value) => trimmed(compact(Number(value.toPrecision(6))));

/** A count with all digits: 1 234 567. */
export function whole(value) {
  if (isUnknown(value)) return DASH;
  if (Math.abs(value) >= 1e10) return compact(value);
  return minus(String(value)).replace(/\B(?=(\d{3})+$)/g, GAP);
}

/** A mean or a loss: 21.5. */
export function figure(value) {
  if (isUnknown(value)) return DASH;
  if (Math.abs(value) >= 1e5) return compact(value);
  return digits(value);
}

/** A duration: 12.0 µs. */
export function span(seconds) {
  if (isUnknown(seconds)) return DASH;
  const size = seconds * (1 + 5e-4);
  if (size < 1e-6) return digits(seconds * 1e9) + GAP + "ns";
  if (size < 1e-3) return digits(seconds * 1e6) + GAP + "µs";
  if (size < 1) return digits(seconds * 1e3) + GAP + "ms";
  return digits(seconds) + GAP + "s";
}

/** A mark of an axis of durations: 10 µs. */
export const spanMark = (seconds) => trimmed(span(seconds));

/** Hours, minutes and seconds: 1:05:00. */
export function clock(seconds) {
  if (isUnknown(seconds)) return DASH;
  const total = Math.max(0, Math.floor(seconds));
  const pad = (value) => String(value).padStart(2, "0");
  const [hours, minutes] = [Math.floor(total / 3600), Math.floor(total / 60) % 60];
  return hours
    ? `${hours}:${pad(minutes)}:${pad(total % 60)}`
    : `${minutes}:${pad(total % 60)}`;
}

/** The local time of day of a Unix time in seconds: 14:05:09. */
export function timeOfDay(moment) {
  return new Date(moment * 1000).toLocaleTimeString("en-GB");
}

/** A fraction as a percentage: 83 %; with one decimal below 10 %: 0.8 %. */
export function percent(share) {
  if (isUnknown(share)) return DASH;
  const value = share * 100;
  return (Math.abs(value) < 9.95 && value !== 0 ? value.toFixed(1) : value.toFixed(0)) + GAP + "%";
}

/** A range of slots: 0–31. */
export function slotRange([first, last]) {
  return first === last ? String(first) : `${first}–${last}`;
}

/** A count with a noun in singular or plural: 1 restart, 2 restarts. */
export function several(count, noun) {
  return `${whole(count)} ${noun}${count === 1 ? "" : "s"}`;
}
