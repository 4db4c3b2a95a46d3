// Events per second, computed from a growing total over a sliding window.
export class Rate {
  private readonly points: { time: number; total: number }[] = [];

  constructor(private readonly windowMs: number) {}

  add(timeMs: number, total: number): void {
    const last = this.points.at(-1);
    if (last && total < last.total) this.points.length = 0;
    this.points.push({ time: timeMs, total });
    this.trim(timeMs);
  }

  perSecond(nowMs: number): number {
    this.trim(nowMs);
    const first = this.points[0];
    const last = this.points.at(-1);
    if (!first || !last || nowMs - last.time > this.windowMs || last.time - first.time < 1) return 0;
    return ((last.total - first.total) * 1000) / (last.time - first.time);
  }

  private trim(nowMs: number): void {
    while (this.points.length > 2 && nowMs - this.points[1]!.time > this.windowMs) this.points.shift();
  }
}
