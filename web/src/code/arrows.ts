// Arrows of jumps inside a function: each has a lane beside the instructions, short jumps nearest. Pure.

export const MOST_LANES = 6;

export interface Arrow {
  from: number; // index of the jump
  to: number; // index of the target instruction
  lane: number; // 0: next to the text
  conditional: boolean;
}

// Jumps without a free lane have no arrow, but can still be followed by a click.
export function arrowsOf(targets: readonly number[], flows: readonly number[]): Arrow[] {
  const jumps: Arrow[] = [];
  targets.forEach((to, from) => {
    if (to >= 0 && to !== from) jumps.push({ from, to, lane: 0, conditional: flows[from] === 2 });
  });
  jumps.sort((a, b) => Math.abs(a.to - a.from) - Math.abs(b.to - b.from) || a.from - b.from);
  // By lane: 1 for each occupied row.
  const taken = Array.from({ length: MOST_LANES }, () => new Uint8Array(targets.length));
  const placed: Arrow[] = [];
  let room = 40 * targets.length + 100_000; // a limit of work: in a function with very many jumps, only short ones get arrows
  for (const jump of jumps) {
    const first = Math.min(jump.from, jump.to);
    const last = Math.max(jump.from, jump.to);
    const lane = taken.findIndex((rows) => {
      room -= last - first + 1;
      return room > 0 && !rows.subarray(first, last + 1).includes(1);
    });
    if (lane < 0) continue;
    taken[lane]!.fill(1, first, last + 1);
    placed.push({ ...jump, lane });
  }
  return placed;
}

// The part of an arrow in one row.
export interface Piece {
  arrow: number; // index
  lane: number;
  up: boolean; // the line continues in the row above
  down: boolean;
  end: 'none' | 'tail' | 'head';
}

export function piecesOf(arrows: readonly Arrow[], rows: number): Piece[][] {
  const pieces: Piece[][] = Array.from({ length: rows }, () => []);
  arrows.forEach(({ from, to, lane }, arrow) => {
    const first = Math.min(from, to);
    const last = Math.max(from, to);
    for (let row = first; row <= last; row++)
      pieces[row]!.push({
        arrow,
        lane,
        up: row > first,
        down: row < last,
        end: row === from ? 'tail' : row === to ? 'head' : 'none',
      });
  });
  return pieces;
}
