/** The conditions that filter the list of runs. All of them are in the address. */
export const TEXT_FIELDS = [
  { name: "command", label: "Command", hint: "cc, or */bin/python*" },
  { name: "file", label: "File", hint: "/path/of/a/file, or *.csv" },
  { name: "name", label: "Name", hint: "nightly*" },
  { name: "note", label: "Note", hint: "words of a note" },
  { name: "job", label: "Job", hint: "id of mpirun, srun, …" },
  { name: "tag", label: "Tag", hint: "key, or key=value" },
] as const;

export const CHOICES = ["status", "complete", "host", "since", "until"] as const;

/** The filter's parameters, in the order in which they are shown. */
export const NARROWING: readonly string[] = ["text", ...TEXT_FIELDS.map((field) => field.name), ...CHOICES];

export type Filter = Record<string, string>;

export function filterOf(query: ReadonlyMap<string, string>): Filter {
  const filter: Filter = {};
  for (const name of NARROWING) {
    const value = query.get(name);
    if (value) filter[name] = value;
  }
  return filter;
}

/** The filter as the API takes it: days of the reader's time zone become seconds. */
export function asParameters(filter: Filter): Filter {
  const parameters = { ...filter };
  for (const name of ["since", "until"] as const) {
    const value = filter[name];
    if (value && /^\d{4}-\d{2}-\d{2}$/.test(value)) {
      const start = new Date(`${value}T00:00:00`).getTime() / 1000;
      parameters[name] = String(name === "until" ? start + 86_400 : start);
    }
  }
  return parameters;
}

/** The words for one condition, as on its mark above the list. */
export function words(name: string, value: string): string {
  switch (name) {
    case "text":
      return `“${value}”`;
    case "status":
      return value === "ok" ? "ended well" : value;
    case "complete":
      return value === "true" ? "complete" : "incomplete";
    case "since":
      return `since ${atTime(value)}`;
    case "until":
      return `until ${atTime(value)}`;
    default:
      return `${name}: ${value}`;
  }
}

function atTime(value: string): string {
  const seconds = Number(value);
  if (!Number.isFinite(seconds)) return value;
  const date = new Date(seconds * 1000);
  const two = (part: number) => String(part).padStart(2, "0");
  return `${String(date.getFullYear())}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}`;
}
