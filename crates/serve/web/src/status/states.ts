/** The states that `backstory status` prints, and how the page shows each. */
export function toneOf(state: string): "good" | "bad" | "warn" | "quiet" {
  switch (state) {
    case "current":
      return "good";
    case "outdated":
    case "modified":
      return "warn";
    case "missing":
    case "failed":
      return "bad";
    default:
      return "quiet";
  }
}

const ORDER = ["missing", "failed", "outdated", "modified"];

/** The order of the states: those that need attention come first. */
export function orderOf(state: string): number {
  const at = ORDER.indexOf(state);
  return at >= 0 ? at : state === "current" ? 9 : 5;
}
