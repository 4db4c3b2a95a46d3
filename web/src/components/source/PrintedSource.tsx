// A source file for printing. The editor renders only visible lines; this renders all lines, or a thousand around the hottest.
import type { Source } from '../../api/types';
import { heatOf, linesOnPaper } from '../../text/heat';
import { count } from '../../text/format';

const share = (percent: number) => (percent > 0 ? `${percent.toFixed(1)} %` : '');

export function PrintedSource({ data }: { data: Source }) {
  const lines = linesOnPaper(data.lines, data.hottest);
  return (
    <>
      {lines.length < data.line_count && (
        <p class="faint">
          Lines {count(lines[0]?.line ?? 0)} to {count(lines.at(-1)?.line ?? 0)} of {count(data.line_count)}
        </p>
      )}
      <table class="printed-source">
        <thead>
          <tr>
            <th>Line</th>
            <th>Self</th>
            <th>Total</th>
            <th>Source</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <tr key={line.line} class={`heat-${heatOf(line.percent)}`}>
              <td>{line.line}</td>
              <td>{share(line.percent)}</td>
              <td>{share(line.total_percent)}</td>
              <td>{line.source}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
