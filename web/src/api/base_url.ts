// Where the server is: beside the page or the worker's script, which a reverse proxy may have put below a path of its own.
const HERE =
  typeof location === 'undefined' || location.protocol === 'file:' ? '/' : new URL('.', location.href).pathname;

// The address of what the server has at `path` ("/api/status").
export const served = (path: string): string => HERE + path.slice(1);
