// Starts the real server, agent and workloads for a test, writes the output of each to a file, and stops only these.
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));
const bin = process.env.FLAMEWIRE_BIN ?? join(root, 'build/bin');
// The path of a program of this build. Profiled programs can come from another build.
export const built = (name) => join(name.endsWith('-workload') ? (process.env.FLAMEWIRE_TESTS_BIN ?? bin) : bin, name);

// All waits are for conditions, so the timeouts only end a test that hangs. A busy machine may be this much slower.
const PATIENCE = 4;

// `what`: a string, or a function that returns one.
export async function waitFor(condition, what, seconds = 20) {
  seconds *= PATIENCE;
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited ${seconds} s for ${typeof what === 'string' ? what : await what()}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export class Programs {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'flamewire-e2e-'));
    this.running = [];
    this.codes = new Map();
  }

  // Adds the server's pairing code for an agent that dials a server of this test, as a person copies it from the page.
  withCode(args) {
    const at = args.indexOf('--server');
    const code = this.codes.get(args[args.indexOf('--port') + 1]);
    const chosen = args.includes('--insecure') || args.includes('--pair');
    return at < 0 || !code || chosen ? args : args.toSpliced(at, 0, '--pair', code);
  }

  // `program`: the name of a program of this build, or an absolute path.
  start(program, ...words) {
    const args = this.withCode(words.map(String));
    const log = join(this.folder, `${basename(program)}-${this.running.length}.log`);
    const output = openSync(log, 'w');
    const child = spawn(isAbsolute(program) ? program : built(program), args, {
      cwd: root,
      stdio: ['ignore', output, output],
    });
    closeSync(output);
    const ended = new Promise((resolve) => {
      child.on('exit', resolve);
      child.on('error', resolve);
    });
    const entry = { child, ended, text: () => readFileSync(log, 'utf8'), pid: child.pid, program };
    this.running.push(entry);
    return entry;
  }

  // The page does not require a token unless `args` contain --http-token-file.
  async server(...args) {
    const data = join(this.folder, 'data');
    mkdirSync(data, { recursive: true });
    const server = this.start(
      'flamewire-server',
      '--port',
      0,
      '--http-port',
      0,
      '--data-dir',
      data,
      '--source-dir',
      root,
      ...(args.includes('--http-token-file') ? [] : ['--http-open']),
      ...args,
    );
    const ports = await waitFor(() => {
      if (server.child.exitCode !== null) throw new Error(`the server ended: ${server.text()}`);
      const text = server.text();
      const agent = /^agent-port: (\d+)$/m.exec(text);
      const page = /^page: (http:\/\/\S+)$/m.exec(text);
      const code = /^On a target: .* --pair ([0-9a-f-]{49})$/m.exec(text);
      return agent && page && code && { agentPort: Number(agent[1]), url: page[1], code: code[1] };
    }, 'the server to print its ports');
    this.codes.set(String(ports.agentPort), ports.code);
    return { ...server, ...ports };
  }

  async stop() {
    for (const { child } of this.running.reverse()) if (child.exitCode === null) child.kill('SIGTERM');
    const over = Promise.all(this.running.map(({ ended }) => ended));
    const late = setTimeout(
      () => this.running.forEach(({ child }) => child.exitCode === null && child.kill('SIGKILL')),
      8000,
    );
    await over;
    clearTimeout(late);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const tracefs = '/sys/kernel/tracing';
// Whether tests may use a file of tracefs, which is mounted if necessary. Otherwise prints what is not tested.
export function canUseTracefs(file, mode, untested) {
  if (!existsSync(`${tracefs}/events`)) spawnSync('mount', ['-t', 'tracefs', 'tracefs', tracefs]);
  try {
    accessSync(`${tracefs}/${file}`, mode);
    return true;
  } catch {
    console.log(`${untested} is NOT tested: it needs root and ${tracefs}/${file}`);
    return false;
  }
}
