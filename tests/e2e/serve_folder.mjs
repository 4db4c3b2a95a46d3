// Serves the files of a folder on a port of this machine, for pages of other projects.
import { createReadStream, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { join, normalize } from 'node:path';

const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.woff2': 'font/woff2' };

export function serveFolder(folder) {
  const server = createServer((request, response) => {
    const path = join(folder, normalize(new URL(request.url, 'http://x').pathname).replace(/\/$/, '/index.html'));
    if (!path.startsWith(folder) || !existsSync(path)) return response.writeHead(404).end();
    response.writeHead(200, { 'content-type': types[/\.\w+$/.exec(path)?.[0]] ?? 'application/octet-stream' });
    createReadStream(path).pipe(response);
  });
  return new Promise((ready) =>
    server.listen(0, '127.0.0.1', () =>
      ready({ url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() }),
    ),
  );
}
