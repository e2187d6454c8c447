/** The place of a run or process in a job of a launcher of parallel work, in words. */
import type { Place, RunJob } from "../api/types.ts";

export function jobWords(job: { launcher: string; id?: string | null }): string {
  return job.id == null ? `a job of ${job.launcher}` : `${job.launcher} job ${job.id}`;
}

/** Returns "rank 3 of 4", or an empty text for a place without a number. */
export function rankWords(place: Place): string {
  if (place.rank == null) return "";
  return place.size == null ? `rank ${String(place.rank)}` : `rank ${String(place.rank)} of ${String(place.size)}`;
}

/** Returns "rank 3 of 4 in Slurm job 71.0". */
export function placeWords(place: Place): string {
  const rank = rankWords(place);
  return rank ? `${rank} in ${jobWords(place)}` : `part of ${jobWords(place)}`;
}

/** The ranks of a job that are processes of one run: "2 of 4 ranks (0, 1)". */
export function ranksWords(job: RunJob, most = 8): string {
  const shown = job.ranks.slice(0, most).join(", ");
  const more = job.ranks.length > most ? ", …" : "";
  const all = job.size == null ? String(job.ranks.length) : `${String(job.ranks.length)} of ${String(job.size)}`;
  const one = (job.size ?? job.ranks.length) === 1;
  return `${all} ${one ? "rank" : "ranks"} (${shown}${more})`;
}
