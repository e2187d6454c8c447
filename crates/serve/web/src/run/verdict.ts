/** The words for what the schema of a record's type says about the record. */
import type { RecordRow } from "../api/types.ts";
import { count } from "../text/words.ts";

interface Verdict {
  tone: "good" | "bad" | "warn" | "quiet";
  text: string;
}

/** The verdict about one record. */
export function verdict(record: Pick<RecordRow, "schema">): Verdict {
  switch (record.schema?.state) {
    case undefined:
      return { tone: "quiet", text: "no schema is registered" };
    case "conforms":
      return { tone: "good", text: "valid" };
    case "violates":
      return { tone: "bad", text: "not valid" };
    default:
      return { tone: "warn", text: "not checked" };
  }
}

/** The numbers of records that are not valid or not checked: ", 2 not valid". */
export function summary(records: Pick<RecordRow, "schema">[]): string {
  const texts = records.map((record) => verdict(record).text);
  const counted = ["not valid", "not checked"].map((text) => ({ text, number: texts.filter((each) => each === text).length }));
  return counted.filter(({ number }) => number > 0).map(({ text, number }) => `, ${count(number)} ${text}`).join("");
}
