// Times as people read them. A tick is an integer, or a microsecond since 1970.

const STEPS = [1, 2, 5];
const UNITS = [
  1, 10, 100, 1_000, 10_000, 100_000, 1e6, 2e6, 5e6, 10e6, 30e6, 60e6, 120e6, 300e6, 600e6, 1800e6,
  3600e6, 7200e6, 21600e6, 43200e6, 86400e6, 172800e6, 604800e6, 2592000e6, 7776000e6, 31536000e6,
];

export const isMoment = (type) => type.startsWith("timestamp");

// The step between two marks, so that there are at most so many.
export function stepOf(span, most, moments) {
  const least = span / most;
  if (moments) return UNITS.find((unit) => unit >= least) ?? Math.ceil(least);
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [...STEPS, 10].map((n) => n * power).find((step) => step >= least) ?? power * 10;
}

export function moment(time, step = 1) {
  const date = new Date(Math.floor(time / 1000));
  if (Number.isNaN(date.getTime())) return String(time);
  const iso = date.toISOString();
  if (step >= 86400e6) return iso.slice(0, 10);
  if (step >= 60e6) return iso.slice(11, 16);
  return step >= 1e6 ? iso.slice(11, 19) : iso.slice(11, 23);
}

export function timeText(time, moments) {
  if (time === null) return "no time";
  if (!moments) return time.toLocaleString("en-US");
  const date = new Date(Math.floor(time / 1000));
  if (Number.isNaN(date.getTime())) return String(time);
  const text = date.toISOString().replace("T", " ").slice(0, 23);
  return text.endsWith(".000") ? text.slice(0, 19) : text;
}

export function spanText(span, moments) {
  if (!moments) return span.toLocaleString("en-US");
  const seconds = span / 1e6;
  if (seconds < 1) return `${(span / 1000).toLocaleString("en-US")} ms`;
  if (seconds < 60) return `${Math.round(seconds * 10) / 10} s`;
  if (seconds < 3600) return `${Math.round(seconds / 6) / 10} min`;
  if (seconds < 86400) return `${Math.round(seconds / 360) / 10} h`;
  return `${Math.round(seconds / 8640) / 10} d`;
}
