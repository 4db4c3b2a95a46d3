// Machine code for the mock server: a function with a loop, a call, the data of a jump table and two copies;
// and a source file of many lines.

const SOURCE = '/build/city/traffic.cc';
const VECTOR = '/usr/include/c++/12/bits/stl_vector.h';
const strings = [
  '',
  'city::visit_quadrant',
  SOURCE,
  'std::vector<Car>::size',
  VECTOR,
  'distance(Car, Car)',
  'city::move_car',
];
// function, file, line of each frame, innermost first
const places = [[1, 2, 6], [1, 2, 7], [3, 4, 987, 1, 2, 8], [1, 2, 9], [1, 2, 10], []];
// text, flow, target, name, place, self in percent, total in percent
const rows = [
  ['push %rbx', 0, -1, 0, 0, 0, 0],
  ['mov %rdi,%rbx', 0, -1, 0, 0, 0.2, 0.2],
  ['pxor %xmm0,%xmm0', 0, -1, 0, 1, 0, 0],
  ['mov 0x8(%rbx),%rax', 0, -1, 0, 2, 4.1, 4.1],
  ['cmp %rax,%rcx', 0, -1, 0, 2, 8.4, 8.4],
  ['jae 0x1030', 2, 11, 0, 2, 0.3, 0.3],
  ['mov %rcx,%rdi', 0, -1, 0, 3, 3.2, 3.2],
  ['call 0x2000', 3, -1, 5, 3, 0, 12.5],
  ['addsd %xmm1,%xmm0', 0, -1, 0, 3, 28.0, 28.0],
  ['add $0x61,%rcx', 0, -1, 0, 2, 0.6, 0.6],
  ['jmp 0x100c', 1, 3, 0, 2, 0.2, 0.2],
  ['test %edx,%edx', 0, -1, 0, 4, 0, 0],
  ['pop %rbx', 0, -1, 0, 4, 0, 0],
  ['ret', 4, -1, 0, 4, 0, 0],
  ['.byte 0xc4,0xe1,0xfb,0x92,0xc9', 0, -1, 0, 5, 0, 0],
];

export function disassemblyOf(view, params, total) {
  const name = params.get('function') || 'city::visit_quadrant';
  const first = Number(params.get('at')) >= 0x9000 ? 0x9000 : 0x1000;
  const address = rows.map((_, i) => first + 4 * i);
  const column = (of) => rows.map(of);
  const copies = [
    {
      name,
      module: 'city-demo',
      build_id: 'ab12',
      address: 0x1000,
      size: 60,
      inlined: false,
      self: total.weight * 0.45,
      self_samples: 400,
      total: total.weight * 0.57,
    },
    {
      name: `${name} [clone .cold]`,
      module: 'city-demo',
      build_id: 'ab12',
      address: 0x9000,
      size: 60,
      inlined: false,
      self: 0,
      self_samples: 0,
      total: 0,
    },
  ];
  const code = {
    ...view,
    total,
    copies,
    chosen: first === 0x9000 ? 1 : 0,
    file: '/home/me/city/city-demo',
    machine: 62,
    problem: '',
    remedy: '',
    note: '',
    next: 0,
    first: 0,
    instructions: {
      address,
      size: column(() => 4),
      text: column((row) => row[0]),
      flow: column((row) => row[1]),
      known: column((row) => (row[0].startsWith('.') ? 0 : 1)),
      target: column((row) => row[2]),
      target_address: column((row) => (row[2] >= 0 ? address[row[2]] : row[3] ? 0x2000 : 0)),
      target_name: column((row) => row[3]),
      reference: column(() => 0),
      place: column((row) => row[4]),
      self: column((row) => (row[5] / 100) * total.weight),
      self_samples: column((row) => row[5] * 10),
      total: column((row) => (row[6] / 100) * total.weight),
      total_samples: column((row) => row[6] * 10),
    },
    places,
    strings,
  };
  if (!name.includes('irq')) return code;
  const none = Object.fromEntries(Object.keys(code.instructions).map((key) => [key, []]));
  return {
    ...code,
    file: '',
    instructions: none,
    places: [],
    strings: [''],
    problem: "the kernel's code is not in a file here: /proc/kallsyms and the agent give only its names",
    remedy: "give the target's own vmlinux with --binary FILE",
  };
}

export const inlinedCalls = (total) => [
  {
    line: 8,
    name: 'std::vector<Car>::size',
    module: 'city-demo',
    file: VECTOR,
    function_line: 987,
    total: total.weight * 0.13,
    total_samples: 130,
    total_percent: 13,
  },
  {
    line: 9,
    name: 'distance(Car, Car)',
    module: 'city-demo',
    file: SOURCE,
    function_line: 3,
    total: total.weight * 0.21,
    total_samples: 210,
    total_percent: 21,
  },
];

// A source file of `lineCount` lines: one in fifty is hot, and the hottest is far down. Returns a window around it.
export function manyLines(view, file, total, lineCount) {
  const window = 20_000;
  const hottest = Math.floor(lineCount * 0.8);
  const first = Math.max(1, Math.min(hottest - window / 2, lineCount - window + 1));
  const lines = Array.from({ length: Math.min(window, lineCount) }, (_, i) => {
    const line = first + i;
    const percent = line === hottest ? 30 : line % 50 === 0 ? 0.1 : 0;
    const source =
      line % 10 === 1
        ? `static double step_${line}(const World& world, double scale) {  // generated`
        : line % 10 === 0
          ? '}'
          : `    sum += world.cells[${line} % size] * ${line}.5 / scale; /* part ${line} */ log("step ${line}");`;
    return {
      line,
      source,
      samples: percent * 10,
      weight: percent * 1e7,
      total: percent * 1e7,
      total_samples: percent * 10,
      percent,
      total_percent: percent,
    };
  });
  return {
    file,
    resolved: file,
    ...view,
    total,
    lines,
    inlined: [],
    first_line: first,
    line_count: lineCount,
    hottest,
    note: '',
  };
}
