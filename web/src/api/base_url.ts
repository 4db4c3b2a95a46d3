// The server's address, taken from the URL of the page or of the worker's script. A reverse proxy may add a path.
const HERE =
  typeof location === 'undefined' || location.protocol === 'file:' ? '/' : new URL('.', location.href).pathname;

// The address of `path` on the server, for example "/api/status".
export const serverUrl = (path: string): string => HERE + path.slice(1);
