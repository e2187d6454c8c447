import { expect, test } from "vitest";
import { jobWords, placeWords, ranksWords, rankWords } from "./place.ts";

test("a place in a job is shown with what the launcher tells", () => {
  const job = { launcher: "Slurm", id: "71.0" };
  expect([jobWords(job), jobWords({ launcher: "PMI", id: null })]).toEqual(["Slurm job 71.0", "a job of PMI"]);
  const ranks = [{ rank: 0, size: 4 }, { rank: 3, size: null }, { rank: null, size: null }];
  expect(ranks.map((rank) => rankWords({ ...job, ...rank }))).toEqual(["rank 0 of 4", "rank 3", ""]);
  expect(ranks.map((rank) => placeWords({ ...job, ...rank })).slice(1)).toEqual(["rank 3 in Slurm job 71.0", "part of Slurm job 71.0"]);
});

test("of many ranks the first are named", () => {
  const job = { launcher: "Slurm", id: "71.0", size: 4 };
  expect(ranksWords({ ...job, ranks: [0, 1] })).toBe("2 of 4 ranks (0, 1)");
  expect(ranksWords({ ...job, size: null, ranks: [7] })).toBe("1 rank (7)");
  expect(ranksWords({ ...job, ranks: [0, 1, 2] }, 2)).toBe("3 of 4 ranks (0, 1, …)");
});
